"""Access keys: a user's id and secret for signed requests (AWS's Signature Version 4).

    id           PRAK and 16 letters or digits, random: it tells which user signs
    secret       40 characters, an HMAC of the master key over id and version: it is stored nowhere
    signing key  HMACs of the secret over day, region and service, as AWS scopes it

A signing key is good for one day, region and service: a gateway that has it can check that day's requests,
and can find out neither the secret nor the next day's key.
"""

from __future__ import annotations

import hmac
from base64 import b32encode, urlsafe_b64encode
from typing import Final

from postroad.security.master_key import derive

ID_BYTES: Final = 10  # of chance
ID_PREFIX: Final = "PRAK"
ID_CHARACTERS_MAX: Final = 128  # beyond any that there is; a longer one is not looked for
FIRST_VERSION: Final = 1
TERMINATOR: Final = "aws4_request"

_SECRET_BYTES: Final = 30  # 40 characters, as AWS's secrets have


def new_id(chance: bytes) -> str:
    assert len(chance) == ID_BYTES
    return ID_PREFIX + b32encode(chance).decode()


def secret_of(master: bytes, key_id: str, version: int) -> str:
    """Without characters that would have to be escaped in a URL: Celery's has the secret in it."""
    secret = derive(master, "sigv4", key_id, str(version))[:_SECRET_BYTES]
    return urlsafe_b64encode(secret).decode()


def signing_key(secret: str, day: str, region: str, service: str) -> bytes:
    """Day and region may be anything that a request claims."""
    key = b"AWS4" + secret.encode()
    for part in (day, region, service, TERMINATOR):
        key = hmac.digest(key, part.encode(errors="surrogateescape"), "sha256")
    return key
