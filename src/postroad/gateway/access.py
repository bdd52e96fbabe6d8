"""Access keys: who may use the gateway, and who may delete what others need.

They come from the setting `http.access_keys`, read once. Without any, nobody is asked for one and everybody
is an admin: that is for a loopback address (`http.insecure` says so for others).
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from typing import Final, Self

from postroad.errors import ConfigurationError

ADMIN: Final = "admin"

_ID: Final = re.compile(r"[A-Za-z0-9._/+=-]{1,128}")
_SECRET: Final = re.compile(r"[!-+\--9;-~]{1,256}")  # what can be seen, but for commas and colons


@dataclass(frozen=True)
class Key:
    id: str
    secret: str = field(repr=False)
    admin: bool = False


# What an unknown id is compared with, so that it takes as long as a known one.
_NOBODY: Final = Key("", "no key has a secret with blanks in it")


class Keys:
    """All access keys of a gateway. `required`: there are some, so a request must show one."""

    def __init__(self, keys: list[Key]) -> None:
        self._by_id = {key.id: key for key in keys}

    @classmethod
    def parse(cls, text: str) -> Self:
        """`id:secret` or `id:secret:admin` with commas between. Raises ConfigurationError."""
        parts = [part.strip() for part in text.split(",") if part.strip()]
        keys = [_read_key(part, number) for number, part in enumerate(parts, 1)]
        if len({key.id for key in keys}) < len(keys):
            raise ConfigurationError("http.access_keys: an id stands there twice")
        return cls(keys)

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


def _read_key(text: str, number: int) -> Key:
    """What is wrong with a key is told without the key: the text may end in a log."""
    key_id, secret, *rest = [*text.split(":"), ""]
    rights = rest[:-1]
    if not (_ID.fullmatch(key_id) and _SECRET.fullmatch(secret)) or rights not in ([], [ADMIN]):
        raise ConfigurationError(
            f"http.access_keys: key {number} is not id:secret or id:secret:{ADMIN} "
            "(visible characters without commas and colons)"
        )
    return Key(key_id, secret, rights == [ADMIN])
