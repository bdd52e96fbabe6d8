"""Celery on Redis: acknowledged when a job is done, no results kept, as Postroad does."""

import os
import sys
import time

import notes
from celery import Celery

app = Celery("celery_jobs", broker=os.environ["BENCH_URL"])
app.conf.update(task_ignore_result=True, task_acks_late=True, worker_prefetch_multiplier=100)


@app.task(name="work")
def work(sent_at: float) -> None:
    notes.job(sent_at)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        app.worker_main(
            ["worker", "--concurrency", "1", "--loglevel", "ERROR", "--without-gossip", "--without-mingle"]
        )
    for _ in range(int(sys.argv[2])):
        work.delay(time.monotonic() if sys.argv[1] == "pace" else 0.0)
        if sys.argv[1] == "pace":
            time.sleep(notes.PACE_S)
