"""Celery with its SQS transport: workers as processes, in front of a node with its gateway."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from postroad.testing import Node, node
from tests.gateway.celery_worker import RETRY_S, TRIES, Run, application, runs
from tests.gateway.processes import PATIENCE_S, eventually, gateway_pid
from tests.gateway.sqs.conftest import attributes_of, connect

ROOT = Path(__file__).parents[2]
COUNTDOWN_S = 2
SLACK_S = 0.1  # Celery reckons with clocks of its own
VISIBILITY_S = 4  # of a task that is to come again
LONG_VISIBILITY_S = 20  # of others: whatever holds up a worker, it has answered by then


@pytest.fixture(scope="module")
def served() -> Iterator[Node]:
    with node({"http.enabled": True}) as running:
        yield running


class Tasks:
    """A queue of tasks, and the journal of those that ran."""

    def __init__(self, url: str, queue: str, home: Path, visibility_s: int = LONG_VISIBILITY_S) -> None:
        self.url, self.queue, self.visibility_s = url, queue, visibility_s
        self.journal = home / "journal"
        self._log = home / "workers.log"
        self._app = application(url, queue, visibility_s)

    def send(self, task: str, argument: str, countdown_s: float | None = None) -> None:
        self._app.send_task(task, [argument], countdown=countdown_s)

    def runs(self, task: str) -> list[Run]:
        return [run for run in runs(self.journal) if run.task == task]

    def wait_for(self, task: str, count: int) -> list[Run]:
        eventually(lambda: len(self.runs(task)) >= count, f"{count} × {task}; {self._said()}")
        return self.runs(task)

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        given = [self.url, self.queue, str(self.journal), str(self.visibility_s)]
        command = [sys.executable, "-m", "tests.gateway.celery_worker", *given]
        with self._log.open("ab") as log:
            process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.kill()
            process.wait(PATIENCE_S)

    def wait_until_empty(self) -> None:
        """Nothing waits, and nothing is held."""
        sqs = connect(self.url)
        queue = sqs.get_queue_url(QueueName=self.queue)["QueueUrl"]
        eventually(lambda: _left(attributes_of(sqs, queue)) == 0, "tasks are left in the queue")

    def _said(self) -> str:
        return self._log.read_text() if self._log.exists() else "no worker yet"


def _left(attributes: dict[str, str]) -> int:
    kinds = ("", "NotVisible", "Delayed")
    return sum(int(attributes[f"ApproximateNumberOfMessages{kind}"]) for kind in kinds)


@pytest.fixture
def tasks(served: Node, name: str, tmp_path: Path) -> Tasks:
    return Tasks(served.http, name, tmp_path)


@pytest.mark.slow
def test_tasks_run_once_failing_ones_again_and_later_ones_in_their_time(tasks: Tasks) -> None:
    wanted = [str(number) for number in range(20)]
    with tasks.worker():
        for argument in wanted:
            tasks.send("simple", argument)
        tasks.send("flaky", "x")
        tasks.wait_for("simple", len(wanted))
        sent_at = time.time()
        tasks.send("simple", "later", countdown_s=COUNTDOWN_S)
        *at_once, later = tasks.wait_for("simple", len(wanted) + 1)
        tries = tasks.wait_for("flaky", TRIES)
        tasks.wait_until_empty()
    assert sorted(run.argument for run in at_once) == sorted(wanted)
    assert later.argument == "later"
    assert later.at - sent_at >= COUNTDOWN_S - SLACK_S
    assert [run.retries for run in tries] == list(range(TRIES))
    assert all(after.at - before.at >= RETRY_S - SLACK_S for before, after in pairwise(tries))
    assert len(tasks.runs("simple")) == len(wanted) + 1


@pytest.mark.slow
def test_task_of_a_worker_that_is_killed_comes_again_when_its_visibility_ends(
    served: Node, name: str, tmp_path: Path
) -> None:
    tasks = Tasks(served.http, name, tmp_path, VISIBILITY_S)
    tasks.send("deadly", "x")
    with tasks.worker() as first:
        tasks.wait_for("deadly", 1)
        first.kill()
    with tasks.worker():
        begun, again = tasks.wait_for("deadly", 2)
        tasks.wait_until_empty()
    assert again.at - begun.at >= VISIBILITY_S - 2  # it was received a little before it began
    assert len(tasks.runs("deadly")) == 2


@pytest.mark.slow
def test_worker_goes_on_when_its_gateway_is_killed(served: Node, tasks: Tasks) -> None:
    with tasks.worker():
        tasks.send("simple", "before")
        tasks.wait_for("simple", 1)
        tasks.wait_until_empty()
        os.kill(gateway_pid(served), signal.SIGKILL)
        tasks.send("simple", "after")
        tasks.wait_for("simple", 2)
        tasks.wait_until_empty()
    assert [run.argument for run in tasks.runs("simple")] == ["before", "after"]
