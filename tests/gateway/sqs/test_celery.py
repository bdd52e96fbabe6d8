"""Celery with kombu's SQS transport: tasks, retries, and tasks for later."""

from __future__ import annotations

import time

import pytest
from celery import Celery
from celery.contrib.testing.worker import start_worker

from tests.gateway.conftest import RunningGateway

Event = tuple[str, int, float]


@pytest.mark.slow
def test_celery_runs_tasks_retries_them_and_keeps_their_time(gateway: RunningGateway, name: str) -> None:
    app = Celery("test", broker=f"sqs://key:secret@{gateway.url.removeprefix('http://')}//")
    app.conf.update(
        broker_transport_options={
            "is_secure": False,
            "region": "eu-west-1",
            "wait_time_seconds": 1,
            "polling_interval": 0.1,
        },
        task_default_queue=name,
        worker_hijack_root_logger=False,
    )
    events: list[Event] = []

    @app.task(name="add")
    def add(left: int, right: int) -> None:
        events.append(("add", left + right, time.monotonic()))

    @app.task(name="flaky", bind=True, max_retries=3)
    def flaky(self: Celery) -> None:
        events.append(("try", self.request.retries, time.monotonic()))
        if self.request.retries < 2:
            raise self.retry(countdown=0.1)

    began = time.monotonic()
    with start_worker(app, perform_ping_check=False, pool="solo", loglevel="WARNING"):
        for number in range(5):
            add.delay(number, 1)
        flaky.delay()
        add.apply_async((100, 1), countdown=1.5)
        while len(events) < 9 and time.monotonic() < began + 20:
            time.sleep(0.05)
    assert sorted(result for what, result, _ in events if what == "add") == [1, 2, 3, 4, 5, 101]
    assert [retries for what, retries, _ in events if what == "try"] == [0, 1, 2]
    (due,) = (at for what, result, at in events if result == 101)
    assert due - began >= 1.5
