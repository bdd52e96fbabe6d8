"""What a setting's value may look like: read from TOML or text, and written back.

Durations are milliseconds and sizes are bytes. Both may also be written with a unit: "500ms", "30s", "10m",
"12h", "7d"; "64KiB", "100MiB", "1GiB", and in powers of ten "64KB", "100MB", "1GB".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from postroad.cluster.config_definition import INT_MAX, LONG_MAX, ConfigType
from postroad.cluster.store_address import parse
from postroad.config.listeners import parse as parse_listeners
from postroad.security.mapping_rules import MappingRules

UNLIMITED: Final = -1

# The largest unit first: `_friendly` takes the first that divides the value.
_DURATIONS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_BINARY: Final = {"TiB": 1 << 40, "GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}
_SIZES: Final = {**_BINARY, "TB": 10**12, "GB": 10**9, "MB": 10**6, "KB": 1000, "B": 1}

_QUANTITY: Final = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?)\s*([A-Za-z]+)")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")
_HOST: Final = r"(?:[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])"
_HOST_NAME: Final = re.compile(_HOST)
_BASE_URL: Final = re.compile(rf"https?://{_HOST}(?::[0-9]{{1,5}})?(?:/[!-~]*)?", re.IGNORECASE)


def _toml(value: object) -> str:
    """Numbers, booleans and texts are written as in JSON, but for two things that TOML doesn't take."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@dataclass(frozen=True)
class ValueKind:
    """How values of one kind are read and written.

    `read` takes what TOML or a program gives, or text, and raises ValueError with what would be right.
    """

    read: Callable[[object], Any]
    type: ConfigType
    toml: Callable[[Any], str] = _toml
    note: Callable[[Any], str] = lambda value: ""  # the same in friendlier words
    examples: str = ""


def text() -> ValueKind:
    def read(given: object) -> str:
        if not isinstance(given, str) or any(ord(letter) < 32 for letter in given):
            raise ValueError("a text in one line")
        return given

    return ValueKind(read, ConfigType.STRING)


def secret() -> ValueKind:
    """A text that is shown to nobody but who may read the configuration itself."""
    return ValueKind(text().read, ConfigType.PASSWORD)


def base_url() -> ValueKind:
    """Empty, or where URLs begin: scheme and host, perhaps a port and a path."""

    def read(given: object) -> str:
        if given == "" or (isinstance(given, str) and _BASE_URL.fullmatch(given)):
            return given
        raise ValueError("http:// or https:// with a host, perhaps a port and a path")

    return ValueKind(read, ConfigType.STRING)


def store_url() -> ValueKind:
    """Empty, or the address of a coordination store."""

    def read(given: object) -> str:
        if not isinstance(given, str):
            raise ValueError("a text")
        if given:
            parse(given)
        return given

    return ValueKind(read, ConfigType.STRING)


def host_names() -> ValueKind:
    """Names or addresses with commas between, without ports; `*` is any."""

    def read(given: object) -> str:
        if isinstance(given, str):
            names = [name.strip() for name in given.split(",")]
            if given == "" or all(name == "*" or _HOST_NAME.fullmatch(name) for name in names):
                return ",".join(names)
        raise ValueError("host names without ports, with commas between, or * for any")

    return ValueKind(read, ConfigType.LIST)


def listeners() -> ValueKind:
    """Listeners beside the one of `kafka.host` and `kafka.port`, with commas between."""

    def read(given: object) -> str:
        if not isinstance(given, str):
            raise ValueError("a text")
        parse_listeners(given)
        return given

    return ValueKind(read, ConfigType.LIST)


def mapping_rules() -> ValueKind:
    """How subjects of certificates become names (KIP-371)."""

    def read(given: object) -> str:
        if not isinstance(given, str):
            raise ValueError("a text")
        MappingRules.parse(given)
        return given

    return ValueKind(read, ConfigType.LIST)


def choice(*words: str) -> ValueKind:
    def read(given: object) -> str:
        if given not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return str(given)

    return ValueKind(read, ConfigType.STRING, examples=", ".join(words))


def path() -> ValueKind:
    def read(given: object) -> Path:
        if not isinstance(given, (str, Path)) or not str(given) or "\0" in str(given):
            raise ValueError("a path")
        try:
            return Path(given).expanduser()
        except RuntimeError:
            raise ValueError("a path; what begins with ~ is the home of a user of this machine") from None

    return ValueKind(read, ConfigType.STRING, toml=lambda value: _toml(str(value)))


def switch() -> ValueKind:
    words = {"true": True, "yes": True, "on": True, "1": True}
    words |= {"false": False, "no": False, "off": False, "0": False}

    def read(given: object) -> bool:
        if isinstance(given, bool):
            return given
        if isinstance(given, str) and given.strip().lower() in words:
            return words[given.strip().lower()]
        raise ValueError("true or false")

    return ValueKind(read, ConfigType.BOOLEAN, examples="true, false")


def number(low: int, high: int = INT_MAX) -> ValueKind:
    return _quantity("a whole number", {}, low, high, ConfigType.INT)


def duration(low: int, high: int = LONG_MAX) -> ValueKind:
    """`low` may be UNLIMITED: then -1 means no limit."""
    return _quantity("milliseconds, or a duration such as 500ms, 30s, 10m, 7d", _DURATIONS, low, high)


def size(low: int, high: int = LONG_MAX) -> ValueKind:
    """`low` may be UNLIMITED: then -1 means no limit."""
    return _quantity("bytes, or a size such as 64KiB, 100MiB, 1GiB", _SIZES, low, high)


def _quantity(
    what: str, units: Mapping[str, int], low: int, high: int, kind: ConfigType = ConfigType.LONG
) -> ValueKind:
    bounds = f"from {low} to {high}" if high < INT_MAX else f"at least {low}"
    limit = " (-1: no limit)" if low == UNLIMITED else ""

    def read(given: object) -> int:
        value = _parse(given, units)
        if value is None or not low <= value <= high:
            raise ValueError(f"{what}, {bounds}{limit}")
        return value

    return ValueKind(read, kind, note=lambda value: _friendly(value, units))


def _parse(given: object, units: Mapping[str, int]) -> int | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, int):
        return given
    if not isinstance(given, str):
        return None
    if _WHOLE.fullmatch(given.strip()):
        return int(given)
    found = _QUANTITY.fullmatch(given.strip())
    factor = found and {unit.lower(): factor for unit, factor in units.items()}.get(found[2].lower())
    if not found or not factor:
        return None
    value = Decimal(found[1]) * factor
    return int(value) if value == int(value) else None


def _friendly(value: int, units: Mapping[str, int]) -> str:
    if value == UNLIMITED:
        return "no limit" if units else ""
    shown = _BINARY if "KiB" in units else units
    for unit, factor in shown.items():
        if value > 0 and value % factor == 0 and factor > 1:
            return f"{value // factor}{unit}"
    return ""
