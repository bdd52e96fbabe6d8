"""MD5s of messages, by which SDKs see that a message came over whole. They are no protection against anybody.

Of attributes: for each, in the order of the names,

    name length (4) · name · type length (4) · type · kind (1) · value length (4) · value

where the kind is 1 for String and Number, 2 for Binary.
"""

from __future__ import annotations

from hashlib import md5
from struct import Struct
from typing import Final

from postroad.gateway.sqs.requests import MessageAttributes

_LENGTH: Final = Struct(">I")
_TEXT: Final = b"\x01"
_BINARY: Final = b"\x02"


def of_body(body: bytes) -> str:
    return md5(body, usedforsecurity=False).hexdigest()


def of_attributes(attributes: MessageAttributes | None) -> str | None:
    """None if there are none, as SQS leaves it out then."""
    if not attributes:
        return None
    parts: list[bytes] = []
    for name in sorted(attributes):
        attribute = attributes[name]
        kind, value = _TEXT, (attribute.string_value or "").encode()
        if attribute.data_type.startswith("Binary"):
            kind, value = _BINARY, attribute.binary_value or b""
        parts += [_sized(name.encode()), _sized(attribute.data_type.encode()), kind, _sized(value)]
    return md5(b"".join(parts), usedforsecurity=False).hexdigest()


def _sized(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data
