"""Secrets of machines: each is an HMAC of the cluster's master key, so none has to be handed out or stored.

The master key is a file of 32 bytes, as 64 hexadecimal digits, on every node and beside every gateway; it
is in no store and in no backup of one. Who has it can be any machine of the cluster.
"""

from __future__ import annotations

import hmac
from typing import Final

KEY_BYTES: Final = 32

NODE_USER: Final = "postroad.node"
GATEWAY_USER: Final = "postroad.gateway"
OPERATOR_USER: Final = "postroad.operator"  # who can read the key's file: makes the first users
MACHINES: Final = (NODE_USER, GATEWAY_USER, OPERATOR_USER)


def derive(master: bytes, *purpose: str) -> bytes:
    """The secret for a purpose; parts are kept apart, so no two purposes meet."""
    text = b"".join(len(part.encode()).to_bytes(4) + part.encode() for part in purpose)
    return hmac.digest(master, text, "sha256")


def machine_password(master: bytes, user: str) -> str:
    """With what a node or a gateway logs in."""
    return derive(master, "password", user).hex()


def read_key(text: str) -> bytes:
    """Raises ValueError unless the text is a master key's."""
    key = bytes.fromhex(text.strip())
    if len(key) != KEY_BYTES:
        raise ValueError(f"a master key has {KEY_BYTES} bytes, as {2 * KEY_BYTES} hexadecimal digits")
    return key
