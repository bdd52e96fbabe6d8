"""Access keys as they stand in `http.access_keys`: `id:secret` or `id:secret:admin` with commas between."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from postroad.cluster.config_definition import ConfigType
from postroad.config.values import ValueKind, text

ADMIN: Final = "admin"

_ID: Final = re.compile(r"[A-Za-z0-9._/+=-]{1,128}")
_SECRET: Final = re.compile(r"[!-+\--9;-~]{1,256}")  # what can be seen, but for commas and colons
_RIGHT: Final = f"id:secret or id:secret:{ADMIN} for each key, with commas between"


@dataclass(frozen=True)
class Key:
    id: str
    secret: str = field(repr=False)
    admin: bool = False


def read_keys(keys: str) -> list[Key]:
    """Raises ValueError with what would be right, without the keys: the text may end in a log."""
    parts = [part.strip() for part in keys.split(",") if part.strip()]
    found = [_read_key(part, number) for number, part in enumerate(parts, 1)]
    if len({key.id for key in found}) < len(found):
        raise ValueError(f"{_RIGHT}; an id is given twice")
    return found


def access_keys() -> ValueKind:
    line = text()

    def read(given: object) -> str:
        keys: str = line.read(given)
        return keys if read_keys(keys) else ""  # commas alone are no keys

    return ValueKind(read, ConfigType.PASSWORD)


def _read_key(key: str, number: int) -> Key:
    key_id, _, rest = key.partition(":")
    secret, *rights = rest.split(":")
    if not (_ID.fullmatch(key_id) and _SECRET.fullmatch(secret)) or rights not in ([], [ADMIN]):
        raise ValueError(f"{_RIGHT} (visible characters but commas and colons); key {number} is not")
    return Key(key_id, secret, rights == [ADMIN])
