"""One edit for many dead letters: what is changed in each before it goes back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes | None]]


class Edit(NamedTuple):
    """`find` is replaced wherever it is in the value; `value` and `key` stand for the whole, None: as it is.
    Headers are removed first, then set in place of those of the same name."""

    find: bytes = b""
    replace: bytes = b""
    value: bytes | None = None
    key: bytes | None = None
    remove_headers: Collection[str] = ()
    set_headers: Headers = ()

    def fits(self, value: bytes | None) -> bool:
        """Whether it changes what it is meant to: a letter without it would go back as it died."""
        return not self.find or (value is not None and self.find in value)

    def value_of(self, value: bytes | None) -> bytes | None:
        if self.value is not None:
            return self.value
        return value.replace(self.find, self.replace) if self.find and value is not None else value

    def key_of(self, key: bytes | None) -> bytes | None:
        return key if self.key is None else self.key

    def headers_of(self, headers: Headers) -> list[tuple[str, bytes | None]]:
        gone = {*self.remove_headers, *(name for name, _ in self.set_headers)}
        return [*(each for each in headers if each[0] not in gone), *self.set_headers]


NO_EDIT = Edit()
