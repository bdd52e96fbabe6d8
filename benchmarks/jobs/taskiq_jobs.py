"""taskiq on Redis: its broker on streams, which acknowledges."""

import asyncio
import os
import sys
import time

import notes
from taskiq_redis import RedisStreamBroker

broker = RedisStreamBroker(url=os.environ["BENCH_URL"])


@broker.task(task_name="work")
async def work(sent_at: float) -> None:
    notes.job(sent_at)


async def publish(how: str, count: int) -> None:
    await broker.startup()
    for _ in range(count):
        await work.kiq(time.monotonic() if how == "pace" else 0.0)
        if how == "pace":
            await asyncio.sleep(notes.PACE_S)
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(publish(sys.argv[1], int(sys.argv[2])))
