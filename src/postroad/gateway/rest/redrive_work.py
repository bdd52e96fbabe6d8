"""The work of a redrive: the client's (`client.redrive`), told what a task's record says.

Letters that it had under way when its gateway died are free at once, for they were held by a connection. What
it had kept back is looked at again by the gateway that goes on, and counted anew.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from postroad.client.redrive import Filter, Redrive
from postroad.gateway.gateway import Gateway
from postroad.gateway.redrives import Progress, Task
from postroad.gateway.redrives.task import bounded
from postroad.gateway.security.rights import WRITE
from postroad.wire import header_names

KIND: Final = "rest"


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
            may_write=self._may_write,
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
