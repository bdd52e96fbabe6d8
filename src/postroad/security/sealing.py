"""Values sealed with the cluster's master key, for backups: nobody else can read them, or change them unseen.

    sealed value := tag (32 bytes) ciphertext (as long as the value)

The tag is an HMAC of the value's name and the value, the ciphertext is the value xor a key stream that is
made of HMACs of the tag and a counter (a synthetic IV, as in RFC 5297, over one function). Both keys are
derived from the master key. Nothing random is needed, and the same value is sealed to the same bytes, so a
backup can tell that it has not changed.
"""

from __future__ import annotations

import hmac
from typing import Final

from postroad.security.master_key import derive

TAG_BYTES: Final = 32
_BLOCK_BYTES: Final = 32


def seal(master: bytes, name: str, value: bytes) -> bytes:
    """The value, as only holders of the master key can read it."""
    tag = _tag(master, name, value)
    return tag + _mask(master, tag, value)


def unseal(master: bytes, name: str, sealed: bytes) -> bytes:
    """The value. Raises ValueError if another key sealed it, under another name, or it was changed."""
    tag, masked = sealed[:TAG_BYTES], sealed[TAG_BYTES:]
    value = _mask(master, tag, masked)
    if not hmac.compare_digest(_tag(master, name, value), tag):
        raise ValueError(f"{name} was sealed with another master key, or was changed since")
    return value


def _tag(master: bytes, name: str, value: bytes) -> bytes:
    named = len(name.encode()).to_bytes(4) + name.encode() + value
    return hmac.digest(derive(master, "backup", "authenticate"), named, "sha256")


def _mask(master: bytes, tag: bytes, value: bytes) -> bytes:
    key = derive(master, "backup", "encrypt")
    blocks = (len(value) + _BLOCK_BYTES - 1) // _BLOCK_BYTES
    stream = b"".join(hmac.digest(key, tag + number.to_bytes(8), "sha256") for number in range(blocks))
    return bytes(byte ^ other for byte, other in zip(value, stream, strict=False))
