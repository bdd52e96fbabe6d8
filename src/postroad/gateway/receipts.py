"""Receipts: what a receiver shows to say what became of a message, at any gateway.

    version (1) · subscription length (2) · subscription · topic id (16) · partition (4) · offset (8) ·
    owner (16) · deliveries (4) · seal (16)

in URL-safe base64. The seal is an HMAC-SHA256 over all that stands before it, with the key that all gateways
of a cluster share: a receipt can't be made up, nor bent to another message. The owner is a random word for
each fetch, in whose name the message is locked (`client.owned_locks`): a receipt of an earlier delivery opens
nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from struct import Struct
from typing import Final, NamedTuple

VERSION: Final = 1
OWNER_BYTES: Final = 16
CHARACTERS_MAX: Final = 2048

_OWNER: Final = re.compile(f"[0-9a-f]{{{2 * OWNER_BYTES}}}")
_HEAD: Final = Struct(">BH")
_PLACE: Final = Struct(">16siq16sI")
_SEAL_BYTES: Final = 16


class Receipt(NamedTuple):
    subscription: str
    topic_id: bytes
    partition: int
    offset: int
    owner: bytes
    deliveries: int


class WrongReceipt(ValueError):
    """Not one that a gateway of this cluster has made."""


def holder(name: str | None) -> str | None:
    """Who holds a message, as anybody may see it. An owner's name is half of a receipt: a part of its hash
    stands for it, the same for all that was fetched together."""
    if name is None or not _OWNER.fullmatch(name):
        return name  # a member of Kafka's
    return hashlib.sha256(name.encode()).hexdigest()[:16]


class Receipts:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def write(self, receipt: Receipt) -> str:
        name = receipt.subscription.encode()
        body = _HEAD.pack(VERSION, len(name)) + name + _PLACE.pack(*receipt[1:])
        return base64.urlsafe_b64encode(body + self._seal(body)).decode()

    def read(self, text: str) -> Receipt:
        """Raises WrongReceipt."""
        if len(text) > CHARACTERS_MAX:
            raise WrongReceipt
        try:
            data = base64.b64decode(text.encode(), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            raise WrongReceipt from None
        body, seal = data[:-_SEAL_BYTES], data[-_SEAL_BYTES:]
        if len(body) < _HEAD.size or not hmac.compare_digest(seal, self._seal(body)):
            raise WrongReceipt
        version, length = _HEAD.unpack_from(body)
        if version != VERSION:
            raise WrongReceipt
        name = body[_HEAD.size : _HEAD.size + length].decode()
        return Receipt(name, *_PLACE.unpack_from(body, _HEAD.size + length))

    def derived_key(self, purpose: bytes) -> bytes:
        """A key for something else that all gateways of a cluster must agree on."""
        return hmac.digest(self._key, b"postroad " + purpose, hashlib.sha256)

    def _seal(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, hashlib.sha256)[:_SEAL_BYTES]
