"""A task: what was asked for, how far it is, and who carries it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct, field

W = TypeVar("W", bound=Struct)

REASONS_MAX: Final = 20
TEXT_MAX: Final = 200
OTHERS: Final = "other reasons"

State = Literal["running", "cancelling", "completed", "cancelled", "failed"]
ENDED: Final = frozenset({"completed", "cancelled", "failed"})


class Progress(Struct, omit_defaults=True, frozen=True):
    """The letters of a redrive: `total` when it began, `seen` so far, `sent` back, and `kept`
    because they don't match; `failed` counts others by why they could not be sent."""

    total: int = 0
    seen: int = 0
    sent: int = 0
    kept: int = 0
    failed: Mapping[str, int] = {}


class Task(Struct, omit_defaults=True, frozen=True):
    """`request` is what was asked for, in words of its `kind`. `owner` is the gateway that carries it out,
    empty if one is looked for; `beat` changes as long as that lives. `cancelling` is never written: it is
    shown of a running task that somebody wants to be cancelled."""

    id: str
    kind: str
    began_ms: int
    request: dict[str, Any] = field(default_factory=dict, name="wish")  # as it is stored
    state: State = "running"
    owner: str = ""
    beat: int = 0
    progress: Progress = field(default_factory=Progress)
    failure: str | None = None
    by: str = ""  # in whose name (`Access.owner`); "": nobody was asked

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


def shown_request(task: Task, words: type[W], unreadable: W) -> W:
    """For a look at it: an operator may have written anything into the config."""
    try:
        return msgspec.convert(task.request, words, strict=False)
    except msgspec.ValidationError:
        return unreadable


class Work(Protocol):
    """What carries a task out. Made anew from the task's record if another gateway goes on with it."""

    def progress(self) -> Progress: ...

    async def run(self) -> bool:
        """True: all is done. False: `stop` was called, or the gateway ends. Raises PostroadError."""

    def stop(self) -> None:
        """`run` returns soon; what is under way is seen through."""


# Makes the work of a task of this subscription. Raises msgspec.ValidationError if the request can't be read.
Kind = Callable[[str, Task], Work]


class AlreadyRunning(Exception):
    """A subscription has one task at a time."""


class TooMany(Exception):
    """This gateway carries out as many tasks as it may."""


def bounded(failed: Mapping[str, int]) -> dict[str, int]:
    """The most frequent reasons: what letters say may be anything, and the record has to stay short."""
    by_count = sorted(failed.items(), key=lambda item: -item[1])
    found: dict[str, int] = {}
    for number, (reason, count) in enumerate(by_count):
        name = reason[:TEXT_MAX] if number < REASONS_MAX else OTHERS
        found[name] = found.get(name, 0) + count
    return found
