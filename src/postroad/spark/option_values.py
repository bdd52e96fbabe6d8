"""Values of options: each is a text, and becomes what it stands for or one clear error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from postroad.errors import ConfigurationError

LONG_MAX: Final = (1 << 63) - 1
INT_MAX: Final = (1 << 31) - 1

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_WHOLE: Final = re.compile(r"-?\d{1,19}")  # more digits fit into no field of a request
_DURATION: Final = re.compile(r"(\d{1,10})\s*(ms|s|min|m|h|d)?")
_YES_NO: Final = {"true": True, "false": False}


class Values:
    """Options by name, in any case; the names in errors are written as in the documentation."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in options.items()}

    def has(self, name: str) -> bool:
        return name.lower() in self._given

    def given(self, *names: str) -> list[str]:
        """Those of the names that are set."""
        return [name for name in names if self.has(name)]

    def text(self, name: str) -> str | None:
        """None if it isn't set; an empty text is an error."""
        value = self._given.get(name.lower())
        if value is not None and not value.strip():
            raise ConfigurationError(f"Option {name} is empty: give it a value, or leave it out.")
        return None if value is None else value.strip()

    def raw(self, name: str) -> str | None:
        """As it was given, which may be empty; None if it isn't set."""
        return self._given.get(name.lower())

    def whole(self, name: str, least: int = 1, most: int = LONG_MAX) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not _WHOLE.fullmatch(value) or not least <= int(value) <= most:
            raise wrong(name, value, f"a whole number from {least} to {most}")
        return int(value)

    def yes(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in _YES_NO:
            raise wrong(name, value, "true or false")
        return _YES_NO[value.lower()]

    def one_of(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in allowed:
            raise wrong(name, value, " or ".join(allowed))
        return value.lower()

    def duration_ms(self, name: str) -> int | None:
        """`90`, `500ms`, `30s`, `15m`, `2h` or `1d`; milliseconds if there is no unit."""
        value = self.text(name)
        if value is None:
            return None
        match = _DURATION.fullmatch(value.lower())
        if match is None:
            raise wrong(name, value, "a duration such as 500ms, 30s, 15m or 2h")
        return int(match[1]) * _UNITS_MS[match[2] or "ms"]


def wrong(name: str, value: str, right: str) -> ConfigurationError:
    """The error for a value that can't be used. Never called with a secret."""
    return ConfigurationError(f"Option {name} = {value!r}: it must be {right}.")
