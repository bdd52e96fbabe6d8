"""One mutant: a function of the real code in another's place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """`make` gets the function that stands at `owner.function` and hands out the one to put there."""

    name: str
    meaning: str
    owner: Any
    function: str
    make: Callable[[Callable[..., Any]], Callable[..., Any]]

    def apply(self) -> None:
        """For the rest of this process."""
        setattr(self.owner, self.function, self.make(getattr(self.owner, self.function)))
