"""Postroad: a worker that does nothing."""

import asyncio
import os
import sys
import time

import notes

import postroad

app = postroad.App(os.environ["BENCH_URL"])


@app.worker("bench", topic="jobs")
async def work(sent_at: float) -> None:
    notes.job(sent_at)


async def publish(how: str, count: int) -> None:
    async with app:
        if how == "publish":
            for first in range(0, count, 5000):
                await app.publish_many("jobs", [0.0] * min(5000, count - first))
        for _ in range(count if how == "pace" else 0):
            await app.publish("jobs", time.monotonic())
            await asyncio.sleep(notes.PACE_S)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        app.run()
    else:
        asyncio.run(publish(sys.argv[1], int(sys.argv[2])))
