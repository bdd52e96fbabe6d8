"""What is said over a WebSocket, whatever the format: JSON (`json_frames`) or binary (`binary_frames`).

The client grants credit and settles messages, alone or in a transaction that publishes others; the gateway
sends messages and tells what became of settlements and transactions. Messages have ids, which count from 1
and mean something in this connection only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from postroad.client.share_message import AckType, ShareMessage
from postroad.gateway.rest.problems import Problem
from postroad.gateway.rest.publish import Published
from postroad.gateway.rest.pull import RECEIVE_MAX
from postroad.gateway.rest.transactions import MessageToTopic

FRAME_BYTES_MAX: Final = 1 << 20  # of a client's frame; some 100,000 ids
IDS_MAX: Final = 10_000  # and receipts, each, in one frame
TAKEN_MAX: Final = RECEIVE_MAX  # ids and receipts, each, in one transaction
CREDIT_MAX: Final = 100_000  # granted and not used, in all
MS_MAX: Final = 43_200_000  # 12 h, the longest lock; delays may be as long
REASON_MAX: Final = 1000  # characters, as nodes take them


class BadFrame(Exception):
    """The client's frame can't be read; the text says why. The connection ends."""


class Credit(NamedTuple):
    """The client allows this many more messages to be sent."""

    messages: int


class Settlement(NamedTuple):
    """What became of messages. With a `request` its outcome is told, else only what failed."""

    type: AckType
    ids: Sequence[int]
    receipts: Sequence[str]
    request: int | None = None
    lock_ms: int | None = None
    delay_ms: int | None = None
    reason: str = ""  # of a rejection


class NewTransaction(NamedTuple):
    """These messages are accepted and those published, all or nothing; the outcome is told."""

    request: int
    ids: Sequence[int]
    receipts: Sequence[str]
    publish: Sequence[MessageToTopic]


class Outgoing(NamedTuple):
    id: int
    message: ShareMessage
    receipt: str  # "": not asked for


Failures = Mapping[str, tuple[Sequence[int], Sequence[str]]]
"""By their reason: ids and receipts that nothing was changed of."""


class Format(Protocol):
    """How frames are written. `is_text`: in frames of text."""

    subprotocol: str
    is_text: bool

    def read(self, frame: str | bytes) -> Credit | Settlement | NewTransaction:
        """Raises BadFrame."""

    def messages(self, outgoing: Sequence[Outgoing]) -> bytes: ...

    def settled(self, request: int | None, failures: Failures) -> bytes: ...

    def committed(self, request: int, published: Sequence[Published]) -> bytes:
        """The transaction is; where its messages are now, in their order."""

    def refused(self, request: int, problem: Problem) -> bytes:
        """Nothing of the transaction has happened, unless the problem says that nobody knows."""

    def expired(self, ids: Sequence[int]) -> bytes:
        """The locks of these have ended: their ids mean nothing any more."""

    def error(self, code: int, text: str) -> bytes:
        """Why the connection ends; the same code closes it."""
