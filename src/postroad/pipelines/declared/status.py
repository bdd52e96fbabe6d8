"""What each step tells of itself: a file beside its checkpoint, replaced as a whole, that other processes
read.

    step, kind      which it is
    state           starting | running | waiting (it failed, and is tried again) | done | stopped | failed
    rows            of this run and those before
    rate            rows a second, over the last minute
    bytes           of these rows, about and without compression; of all runs, too
    byte_rate       bytes a second, over the last minute
    behind          messages, or batches of a table, that are there and not worked at yet; null: not known
    lag_s           for how long it has been behind, or has not been running
    restarts        after errors, since `postroad pipeline run` began
    error           the last one, and when it was
    updated         when this was written; a program that runs writes it every few seconds
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from postroad.metrics.page import COUNTER, GAUGE, Page, labels
from postroad.pipelines.declared.declaration import Pipeline, Step
from postroad.pipelines.running import Progress

FILE: Final = "status.json"
RATE_S: Final = 60.0
WRITTEN_EVERY_S: Final = 2.0
SILENT_S: Final = 30.0  # a program that writes nothing for so long doesn't run, whatever its file says

log = logging.getLogger(__name__)

State = Literal["new", "starting", "running", "waiting", "done", "stopped", "failed", "silent"]


@dataclass
class Status:
    """One step at one moment."""

    step: str
    kind: str
    state: State = "new"
    rows: int = 0
    rate: float = 0.0
    behind: int | None = None
    lag_s: float = 0.0
    restarts: int = 0
    bytes: int = 0
    byte_rate: float = 0.0
    error: str | None = None
    error_at: float | None = None
    updated: float = 0.0


class StepStatus:
    """The status of a step that runs in this process. For several threads."""

    def __init__(self, directory: Path, step: Step, now: Callable[[], float] = time.time) -> None:
        self._path = directory / FILE
        self._now = now
        self._lock = threading.Lock()
        self._recent: deque[tuple[float, int, int]] = deque()  # when, rows, bytes
        self._written = 0.0
        before = _read(self._path)
        self._status = Status(step.name, step.kind)
        if before is not None:
            self._status.rows, self._status.bytes = before.rows, before.bytes
        self._good_at = before.updated - before.lag_s if before and before.updated else now()

    @property
    def status(self) -> Status:
        """As it is now."""
        with self._lock:
            return self._current()

    def change(self, state: State, error: str | None = None) -> None:
        """It is written at once."""
        with self._lock:
            self._status.state = state
            if error is not None:
                self._status.error, self._status.error_at = error, self._now()
                self._status.restarts += 1
            self._write()

    def advance(self, progress: Progress) -> None:
        """After a step or micro-batch."""
        with self._lock:
            self._status.state = "running"
            self._status.rows += progress.rows
            self._status.bytes += progress.bytes
            self._recent.append((self._now(), progress.rows, progress.bytes))
            self._status.behind = progress.behind
            if not progress.behind:
                self._good_at = self._now()
            self._write()

    def beat(self, behind: int | None = None) -> None:
        """Now and then while it runs, with how far it is behind if that is known."""
        with self._lock:
            if behind is not None:
                self._status.behind = behind
            if not self._status.behind and self._status.state in ("running", "done"):
                self._good_at = self._now()
            if self._now() - self._written >= WRITTEN_EVERY_S:
                self._write()

    def _current(self) -> Status:
        now = self._now()
        while self._recent and self._recent[0][0] < now - RATE_S:
            self._recent.popleft()
        self._status.rate = round(sum(rows for _, rows, _ in self._recent) / RATE_S, 1)
        self._status.byte_rate = round(sum(size for _, _, size in self._recent) / RATE_S, 1)
        self._status.lag_s = round(max(0.0, now - self._good_at), 1)
        self._status.updated = now
        return Status(**asdict(self._status))

    def _write(self) -> None:
        """Rows come first: a status that can't be written stops no step."""
        self._written = self._now()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside = self._path.with_name(f"{FILE}.{os.getpid()}")
            beside.write_text(json.dumps(asdict(self._current())))
            beside.replace(self._path)
        except OSError as error:
            log.warning("the status of step %s can't be written: %s", self._status.step, error)


def read_status(pipeline: Pipeline, now: float | None = None) -> list[Status]:
    """All steps as they are, in their order; `silent` is one whose program seems to have died."""
    moment = time.time() if now is None else now
    found = []
    for step in pipeline.steps:
        status = _read(pipeline.directory(step) / FILE) or Status(step.name, step.kind)
        is_live = status.state in ("starting", "running", "waiting")
        if is_live and moment - status.updated > SILENT_S:
            status.state = "silent"
        if status.state not in ("new", "done", "running", "starting"):
            status.lag_s = round(status.lag_s + max(0.0, moment - status.updated), 1)
        found.append(status)
    return found


def _read(path: Path) -> Status | None:
    with suppress(OSError, ValueError, TypeError):
        told: Any = json.loads(path.read_text())
        return Status(**told)
    return None


def page(pipeline: str, statuses: Iterable[Status]) -> str:
    """The same for Prometheus."""
    out = Page()
    rows = out.family("postroad_pipeline_rows_total", COUNTER, "Rows of all runs.")
    rate = out.family("postroad_pipeline_rows_per_second", GAUGE, "Rows a second, over the last minute.")
    size = out.family("postroad_pipeline_bytes_total", COUNTER, "Bytes of these rows, without compression.")
    byte_rate = out.family(
        "postroad_pipeline_bytes_per_second", GAUGE, "Bytes a second, over the last minute."
    )
    behind = out.family("postroad_pipeline_behind", GAUGE, "Messages, or batches of a table, that wait.")
    lag = out.family("postroad_pipeline_lag_seconds", GAUGE, "For how long the step has been behind.")
    restarts = out.family("postroad_pipeline_restarts_total", COUNTER, "Restarts after errors, of this run.")
    up = out.family("postroad_pipeline_up", GAUGE, "Whether the step runs, or has done what there was.")
    for status in statuses:
        given = labels(pipeline=pipeline, step=status.step, kind=status.kind)
        rows.add(status.rows, given)
        rate.add(status.rate, given)
        size.add(status.bytes, given)
        byte_rate.add(status.byte_rate, given)
        if status.behind is not None:
            behind.add(status.behind, given)
        lag.add(status.lag_s, given)
        restarts.add(status.restarts, given)
        up.add(int(status.state in ("running", "done")), given)
    return out.text()
