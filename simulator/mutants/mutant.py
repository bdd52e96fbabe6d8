"""One mutant: a function of the real code in another's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Mutant(NamedTuple):
    """`make` gets the function at `owner.function` and hands out the one to put there. `also` goes
    into the code with it, where one change alone would do no harm."""

    name: str
    meaning: str
    owner: Any
    function: str
    make: Callable[[Callable[..., Any]], Callable[..., Any]]
    also: Sequence[Mutant] = ()

    def apply(self) -> None:
        """For the rest of this process."""
        setattr(self.owner, self.function, self.make(getattr(self.owner, self.function)))
        for mutant in self.also:
            mutant.apply()
