"""Tasks, and the process that works on them: `… celery_worker URL QUEUE JOURNAL VISIBILITY_S`.

The journal is a file with a line for each run of a task: its name, its argument, how often it was retried,
and when.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import botocore.httpsession
from celery import Celery

FOR_EVER_S = 600.0
TRIES, RETRY_S = 3, 1


class Run(NamedTuple):
    task: str
    argument: str
    retries: int
    at: float


def application(url: str, queue: str, visibility_s: int) -> Celery:
    believe(os.environ.get("AWS_CA_BUNDLE", ""))
    address = url.partition("://")[2]
    login = "" if "@" in address else "key:secret@"
    app = Celery("tasks", broker=f"sqs://{login}{address}//")
    app.conf.update(
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "is_secure": url.startswith("https:"),
            "region": "eu-west-1",
            "visibility_timeout": visibility_s,
            "wait_time_seconds": 1,
            "polling_interval": 0.1,
        },
        task_default_queue=queue,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
    )
    return app


def believe(ca: str) -> None:
    """Kombu (5.7) fetches tasks by a client of its own, which believes certifi's CAs and no setting."""
    if ca:
        botocore.httpsession.where = lambda: ca


def add_tasks(app: Celery, journal: Path) -> None:
    def note(task: Any, argument: str) -> None:
        """One write of one line: several workers may share the journal."""
        line = f"{task.name} {argument} {task.request.retries} {time.time()}\n"
        with journal.open("ab", buffering=0) as file:
            file.write(line.encode())

    @app.task(name="simple", bind=True)
    def simple(self: Any, argument: str) -> None:
        note(self, argument)

    @app.task(
        name="flaky", bind=True, autoretry_for=(ValueError,), max_retries=5, default_retry_delay=RETRY_S
    )
    def flaky(self: Any, argument: str) -> None:
        note(self, argument)
        if self.request.retries < TRIES - 1:
            raise ValueError("not yet")

    @app.task(name="deadly", bind=True, acks_late=True)
    def deadly(self: Any, argument: str) -> None:
        """Whoever runs it first never comes to its end."""
        is_first = not any(run.task == "deadly" for run in runs(journal))
        note(self, argument)
        if is_first:
            time.sleep(FOR_EVER_S)


def runs(journal: Path) -> list[Run]:
    if not journal.exists():
        return []
    lines = (line.split() for line in journal.read_text().splitlines())
    return [Run(task, argument, int(retries), float(at)) for task, argument, retries, at in lines]


def main(url: str, queue: str, journal: str, visibility_s: str) -> None:
    app = application(url, queue, int(visibility_s))
    add_tasks(app, Path(journal))
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING"]
    app.worker_main(["worker", "--pool=solo", f"--hostname={os.getpid()}@worker", *quiet])


if __name__ == "__main__":
    main(*sys.argv[1:])
