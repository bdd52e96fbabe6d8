"""The SQS dialect: Amazon's Simple Queue Service on topics and subscriptions.

A queue is a subscription, and CreateQueue makes a topic of the same name for it. Messages that Kafka clients
published are received like any other, and the other way round.

Start reading at `routes.py`, the way of one request; `actions.py` is the table of all actions.
`protocol_json` and `protocol_query` read and write the two protocols, and know nothing of queues; `requests`
and `answers` lie between them and the actions. `outgoing.py` says how a message becomes a record.
"""

from postroad.gateway.sqs.routes import routes

__all__ = ["routes"]
