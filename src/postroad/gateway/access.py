"""Access keys: who may use the gateway, and who may delete what others need.

They come from the setting `http.access_keys`, read once. Without any, nobody is asked for one and everybody
is an admin: that is for a loopback address (`http.insecure` says so for others).
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Final, Self

from postroad.config.access_keys import Key, read_keys

__all__ = ["Key", "Keys"]

# What an unknown id is compared with, so that it takes as long as a known one.
_NOBODY: Final = Key("", "no key has a secret with blanks in it")


class Keys:
    """All access keys of a gateway. `required`: there are some, so a request must show one."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._by_id = {key.id: key for key in keys}

    @classmethod
    def parse(cls, text: str) -> Self:
        """As `http.access_keys` has them. Settings were checked before; ValueError for what was not."""
        return cls(read_keys(text))

    @property
    def required(self) -> bool:
        return bool(self._by_id)

    def find(self, key_id: str) -> Key | None:
        return self._by_id.get(key_id)

    def check(self, key_id: str, secret: str) -> Key | None:
        """The key, if the secret is right. How long it takes tells nothing about the secret or the id."""
        key = self._by_id.get(key_id, _NOBODY)
        right = hmac.compare_digest(key.secret.encode(), secret.encode(errors="surrogateescape"))
        return key if right and key is not _NOBODY else None
