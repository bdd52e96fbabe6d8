"""Signatures, as of the Standard Webhooks scheme: a receiver knows that a request is ours, and fresh.

    webhook-id:        the message, the same at each attempt
    webhook-timestamp: seconds since 1970, of this attempt
    webhook-signature: v1,<base64 of HMAC-SHA256 over `id.timestamp.body`>

The key is what follows `whsec_` in the secret, from base64; a secret without that is its own UTF-8.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from typing import Final

PREFIX: Final = "whsec_"
KEY_BYTES: Final = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(os.urandom(KEY_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """Raises ValueError if it begins with `whsec_` and does not go on with base64."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("A secret that begins with whsec_ goes on with base64.") from None


def sign(secret: str, id_: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The three headers."""
    signed = f"{id_}.{timestamp}.".encode() + body
    seal = base64.b64encode(hmac.digest(key_of(secret), signed, hashlib.sha256)).decode()
    return {"webhook-id": id_, "webhook-timestamp": str(timestamp), "webhook-signature": f"v1,{seal}"}
