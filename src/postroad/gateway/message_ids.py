"""Message ids: where a message is, as one short word that stays the same for as long as the message exists.

    topic id (16) · partition (4) · offset (8)

in URL-safe base64 without padding: 38 characters. REST and WebSocket use it, so that what one of them
published can be asked for in the other; SQS has UUIDs (`sqs/uuids.py`). It is no secret and opens nothing;
a receipt (`receipts.py`) does.
"""

from __future__ import annotations

import base64
import binascii
from struct import Struct
from typing import Final, NamedTuple

CHARACTERS: Final = 38
PATTERN: Final = "^[A-Za-z0-9_-]{38}$"

_LAYOUT: Final = Struct(">16siq")


class MessageId(NamedTuple):
    topic_id: bytes
    partition: int
    offset: int


class WrongMessageId(ValueError):
    """Not one that `write` has made."""


def write(topic_id: bytes, partition: int, offset: int) -> str:
    return base64.urlsafe_b64encode(_LAYOUT.pack(topic_id, partition, offset)).rstrip(b"=").decode()


def read(text: str) -> MessageId:
    """Raises WrongMessageId. Each message has one id: other spellings of the same bytes are refused."""
    try:
        data = base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise WrongMessageId from None
    if len(text) != CHARACTERS or len(data) != _LAYOUT.size:
        raise WrongMessageId
    found = MessageId(*_LAYOUT.unpack(data))
    if found.partition < 0 or found.offset < 0 or write(*found) != text:
        raise WrongMessageId
    return found
