"""ARQ on Redis."""

import asyncio
import os
import sys
import time

import notes
from arq import create_pool
from arq.connections import RedisSettings

SETTINGS = RedisSettings.from_dsn(os.environ["BENCH_URL"])


async def work(context: dict[str, object], sent_at: float) -> None:
    notes.job(sent_at)


class WorkerSettings:
    functions = (work,)
    redis_settings = SETTINGS
    max_jobs = 100
    keep_result = 0
    poll_delay = 0.01  # half a second by default, which would be its latency


async def publish(how: str, count: int) -> None:
    pool = await create_pool(SETTINGS)
    for first in range(0, count, 500 if how == "publish" else 1):
        if how == "pace":
            await pool.enqueue_job("work", time.monotonic())
            await asyncio.sleep(notes.PACE_S)
        else:
            await asyncio.gather(*(pool.enqueue_job("work", 0.0) for _ in range(min(500, count - first))))


if __name__ == "__main__":
    asyncio.run(publish(sys.argv[1], int(sys.argv[2])))
