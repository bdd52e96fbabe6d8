"""Background jobs with `import postroad`: a worker, a job that fails at first, one that never will do.

    python examples/worker.py [host:port]

Here everything is one program that ends when its jobs are done. In earnest the workers run by `postroad
worker module:app`, and whoever has jobs publishes them from anywhere.
"""

import asyncio
import sys
import uuid

import msgspec

import postroad

app = postroad.App(sys.argv[1] if len(sys.argv) > 1 else None)
topic = f"pictures-{uuid.uuid4().hex[:8]}"
left = {"cat.jpg", "dog.jpg", "notes.txt"}


class Job(msgspec.Struct):
    picture: str
    width: int = 100


@app.worker(f"{topic}-resizers", topic=topic, attempts=3, backoff="100ms")
async def resize(job: Job, message: postroad.Message) -> None:
    if not job.picture.endswith(".jpg"):
        finish(job)
        raise postroad.Reject(f"{job.picture} is no picture")
    if job.picture == "dog.jpg" and message.attempt == 1:
        raise postroad.Retry("it is being uploaded", after="200ms")
    print(f"resized {job.picture} to {job.width} at attempt {message.attempt}")
    finish(job)


def finish(job: Job) -> None:
    left.discard(job.picture)
    if not left:
        app.stop()


async def main() -> None:
    async with app:
        for job in (Job("cat.jpg"), Job("dog.jpg", width=50), Job("notes.txt")):
            await app.publish(topic, job)
            print("published", job.picture)
        await app.work()
        async with app.subscribe(f"{topic}-resizers.dead", group=f"{topic}-readers") as letters:
            letter = await anext(letters)
            print("dead letter:", letter.headers["postroad-reason"])


asyncio.run(main())
