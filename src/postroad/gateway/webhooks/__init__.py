"""Web hooks: a subscription's messages are sent by POST to an endpoint that its owner has shown to be theirs.

Start reading at `deliverer.py`: receive, post, settle. `sender.py` makes the request and keeps to the rules
of `addresses.py` about where it may go; `request_headers.py` and `signature.py` say what is in it;
`breaker.py` and `pace.py` say when. `supervisor.py` has a deliverer for each subscription with a web hook, on
every gateway: the subscription's locks see to it that one gateway has a message at a time. They are set up in
`rest/webhooks.py`.
"""

from postroad.gateway.webhooks.supervisor import context

__all__ = ["context"]
