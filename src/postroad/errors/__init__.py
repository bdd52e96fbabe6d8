"""Every error that Postroad answers with, in one tree.

    PostroadError
    ├── ApiError              has a Kafka code; an API answers with it
    │   ├── RequestRefused    the peer asked for something wrong: repeating it won't help
    │   └── TryAgain          right request, wrong moment: clients retry by themselves
    ├── ProtocolError         bytes that are no Kafka request: the connection is closed
    ├── CoordinationError     the coordination store can't do what was asked of it
    │   ├── StoreUnavailable  it does not answer, or failed: a commit's outcome is unknown (also a TryAgain)
    │   ├── LeaseLost         the lease has ended and its keys are gone
    │   ├── StoreChanged      somebody else's commit came first: read again, then decide anew
    │   └── HistoryCompacted  a watch asks for revisions that are no longer kept: list again
    ├── SchemaError           the schema registry refuses a request; has a code of Confluent's registry
    └── ConfigurationError    a setting is wrong: says which, where, and what would be right
        └── NodeIdTaken       another process is registered under this node's id

"The peer is wrong" is an ApiError or a ProtocolError; "we are wrong" is an assert.
`by_code` finds the class for a code that another broker answered; a code is used once.
The texts are for people: they say what happened and what to do.
"""

from __future__ import annotations

from postroad.errors.base import *
from postroad.errors.groups import *
from postroad.errors.producers import *
from postroad.errors.queues import *
from postroad.errors.requests import *
from postroad.errors.schemas import *
from postroad.errors.security import *
from postroad.errors.storage import *
from postroad.errors.topics import *
