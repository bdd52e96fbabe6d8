"""All steps of a pipeline at once, each again where it fails, until they are done or told to stop."""

from __future__ import annotations

import fcntl
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from postroad.errors import PostroadError
from postroad.pipelines.declared.declaration import Pipeline, Step
from postroad.pipelines.declared.status import WRITTEN_EVERY_S, Status, StepStatus
from postroad.pipelines.declared.step import Runner
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.failures import reason
from postroad.pipelines.running import POLL_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BACKOFF_S: Final = 1.0  # before the first restart; twice as long before each one after it
BACKOFF_MAX_S: Final = 60.0
ATTEMPTS_ONCE: Final = 5  # of a step of a run that is to end

LOCK: Final = "lock"

Tell = Callable[[Status], None]
Serving = Callable[[Callable[[], list[Status]]], AbstractContextManager[object]]

log = logging.getLogger(__name__)


def run(
    spark: SparkSession,
    pipeline: Pipeline,
    bootstrap: str,
    *,
    once: bool = False,
    stop: threading.Event | None = None,
    tell: Tell = lambda status: None,
    serving: Serving | None = None,
) -> list[Status]:
    """Runs until `stop` is set, or, `once`, until each step has done what was there when it began.

    A step that fails is tried again after a while; PipelineError if it can't be as it is declared, before
    anything runs, if another run of it is under way, or if with `once` it failed again and again. `tell`
    hears of each change of a step's state; `serving` shows all of them while the block runs.
    """
    with _alone(pipeline):
        return _run(Runner(spark, pipeline, bootstrap, once), stop or threading.Event(), tell, serving)


@contextmanager
def _alone(pipeline: Pipeline) -> Iterator[None]:
    """No other run of the pipeline on this machine in the block: two would share checkpoints.

    The system gives the lock back however the program ends.
    """
    try:
        pipeline.state.mkdir(parents=True, exist_ok=True)
        lock = (pipeline.state / LOCK).open("w")
    except OSError as error:
        raise PipelineError(f"{pipeline.state} can't be written: {error}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PipelineError(f"{pipeline.name} runs already: {pipeline.state} is in use") from None
        yield


def _run(runner: Runner, stop: threading.Event, tell: Tell, serving: Serving | None) -> list[Status]:
    pipeline = runner.pipeline
    statuses = {step.name: StepStatus(pipeline.directory(step), step) for step in pipeline.steps}
    for step in pipeline.steps:
        _prepare(runner, step, statuses[step.name])

    def now() -> list[Status]:
        return [status.status for status in statuses.values()]

    with serving(now) if serving is not None else nullcontext():
        supervised = _Supervised(runner, statuses, stop, tell)
        if runner.once:
            for step in pipeline.steps:  # each has what those before it made
                if stop.is_set():
                    break
                supervised.finish(step)
        else:
            supervised.keep()
    return now()


def _prepare(runner: Runner, step: Step, status: StepStatus) -> None:
    status.change("starting")
    try:
        runner.prepare(step)
    except PostroadError as error:
        status.change("failed", str(error))
        raise


class _Supervised:
    def __init__(
        self,
        runner: Runner,
        statuses: Mapping[str, StepStatus],
        stop: threading.Event,
        tell: Tell,
    ) -> None:
        self._runner = runner
        self._statuses = statuses
        self._stop = stop
        self._tell = tell

    def finish(self, step: Step) -> None:
        """PipelineError if it fails again and again."""
        status = self._statuses[step.name]
        beating = threading.Event()
        heart = threading.Thread(target=self._beat, args=[beating], name="pipeline status", daemon=True)
        heart.start()
        try:
            for attempt in range(ATTEMPTS_ONCE):
                if (error := self._try(step)) is None:
                    self._change(step, "stopped" if self._stop.is_set() else "done")
                    return
                if attempt == ATTEMPTS_ONCE - 1 or self._wait(attempt):
                    self._change(step, "failed")
                    raise PipelineError(f"step {step.name}: {error}")
        finally:
            beating.set()
            heart.join()
            status.beat()

    def keep(self) -> None:
        """Until all are told to stop."""
        threads = [
            threading.Thread(target=self._keep, args=[step], name=f"step {step.name}", daemon=True)
            for step in self._runner.pipeline.steps
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(POLL_S)
            for status in self._statuses.values():
                status.beat()

    def _keep(self, step: Step) -> None:
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            error = self._try(step)
            if self._stop.is_set():
                break
            failures = 0 if time.monotonic() - began > BACKOFF_MAX_S else failures
            self._change(step, "waiting", error or "it ended by itself")
            self._wait(failures)
            failures += 1
        self._change(step, "stopped")

    def _try(self, step: Step) -> str | None:
        """What went wrong; None if nothing did."""
        self._change(step, "running")
        try:
            self._runner.run(step, self._statuses[step.name], self._stop)
        except PostroadError as error:
            return str(error)
        except Exception as error:  # of a library: a step that fails must not take the others along
            log.exception("step %s", step.name)
            return reason(f"{type(error).__name__}: {error}")
        return None

    def _wait(self, failures: int) -> bool:
        """Whether all are told to stop meanwhile."""
        return self._stop.wait(min(BACKOFF_MAX_S, BACKOFF_S * 2**failures))

    def _change(self, step: Step, state: str, error: str | None = None) -> None:
        status = self._statuses[step.name]
        status.change(state, error)  # type: ignore[arg-type]
        self._tell(status.status)

    def _beat(self, done: threading.Event) -> None:
        while not done.wait(WRITTEN_EVERY_S):
            for status in self._statuses.values():
                status.beat()
