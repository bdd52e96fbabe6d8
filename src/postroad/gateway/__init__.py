"""The HTTP gateway: the same topics and subscriptions for everyone who speaks HTTP.

A process of its own, and a Kafka client of the nodes: whatever it does, any Kafka client could do. It keeps
no state that matters; any number of gateways may stand in front of the same nodes, and whoever received a
message from one may acknowledge it at another.

Start reading at `gateway.py`, what all dialects share: publish, receive, settle. `sqs/`, `rest/`, `push/` and
`webhooks/` are the dialects; `app.py` puts them together and `serve.py` runs them.
"""
