"""The work of a redrive: the client's (`client.redrive`), told what a task's record says.

Letters that it had under way when its gateway died are free at once, for they were held by a connection. What
it had kept back is looked at again by the gateway that goes on, and counted anew.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from postroad.client.letter_edit import NO_EDIT, Edit
from postroad.client.redrive import Filter, Redrive
from postroad.gateway.gateway import Gateway
from postroad.gateway.redrives import Progress, Task
from postroad.gateway.redrives.task import bounded
from postroad.gateway.security.rights import WRITE
from postroad.wire import header_names

KIND: Final = "rest"


# What a redrive looks for and does is written down with it, and has to be short.
ShortText = Annotated[str, Meta(max_length=1000)]
LongText = Annotated[str, Meta(max_length=4000)]
HeaderName = Annotated[str, Meta(max_length=200)]


class RedriveEdit(Struct, omit_defaults=True, forbid_unknown_fields=True):
    """One edit for each of the letters. A letter whose value lacks `find` is kept."""

    find: Annotated[ShortText, Meta(description="What is replaced wherever it is in the value.")] = ""
    replace: LongText = ""
    value: Annotated[LongText | None, Meta(description="In place of the whole value.")] = None
    key: ShortText | None = None
    headers: Annotated[
        dict[HeaderName, ShortText], Meta(max_length=20, description="Set, in place of those of the name.")
    ] = {}
    remove_headers: Annotated[list[HeaderName], Meta(max_length=20)] = []

    def read(self) -> Edit:
        return Edit(
            self.find.encode(),
            self.replace.encode(),
            None if self.value is None else self.value.encode(),
            None if self.key is None else self.key.encode(),
            self.remove_headers,
            [(name, value.encode()) for name, value in self.headers.items()],
        )


class RedriveRequest(Struct, omit_defaults=True):
    """`ends`: letters before these offsets, by partition."""

    dead_letter_topic: str
    ends: dict[int, int]
    to: str | None = None
    reasons: list[str] = []
    headers: dict[str, str] = {}
    key_matches: str | None = None
    died_since_ms: int = 0
    rate: float | None = None
    limit: int | None = None
    dry_run: bool = False
    to_all: bool = False
    letters: list[str] = []  # `partition:offset`; empty: all
    edit: RedriveEdit | None = None
    discard: bool = False


class RedriveWork:
    """Sends back the dead letters of one subscription; their topic may hold those of others too."""

    def __init__(self, gateway: Gateway, subscription: str, task: Task) -> None:
        self._gateway = gateway
        self._by = task.by
        request = msgspec.convert(
            task.request, RedriveRequest, strict=False
        )  # numbers of partitions are texts in JSON
        self._before = task.progress
        self._total = task.progress.total
        self._limit = None if request.limit is None else request.limit - task.progress.sent
        self._stopped = False
        own = (header_names.DEAD_SUBSCRIPTION, subscription.encode())
        which = Filter(
            request.reasons,
            [own, *((name, value.encode()) for name, value in request.headers.items())],
            request.key_matches,
            request.died_since_ms,
        )
        self._redrive = Redrive(
            gateway.client, request.dead_letter_topic, filter_=which, to=request.to, to_all=request.to_all,
            rate=request.rate, limit=self._limit, dry=request.dry_run, ends=request.ends,
            may_write=self._may_write, chosen=_chosen(request.letters) if request.letters else None,
            edit=NO_EDIT if request.edit is None else request.edit.read(), discard=request.discard,
        )  # fmt: skip

    def _may_write(self, topic: str) -> bool:
        """A letter may name any topic: it goes where who began the redrive may write."""
        access = self._gateway.identities.of_owner(self._by)
        return access is not None and access.may_topic(topic, WRITE)

    def progress(self) -> Progress:
        report, sent_before = self._redrive.report, self._before.sent
        return Progress(
            self._total,
            sent_before + report.seen,
            sent_before + report.sent,
            report.kept,
            bounded(report.failed),
        )

    async def run(self) -> bool:
        if self._limit is not None and self._limit <= 0:
            return True

        def note(_: int, total: int) -> None:
            self._total = self._before.total or total

        await self._redrive.run(note)
        return not self._stopped

    def stop(self) -> None:
        self._stopped = True
        self._redrive.stop()


def _chosen(letters: list[str]) -> list[tuple[int, int]]:
    """By partition and offset."""
    found = (each.partition(":") for each in letters)
    return [(int(partition), int(offset)) for partition, _, offset in found]
