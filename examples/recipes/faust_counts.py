"""Faust (faust-streaming) on Postroad: an agent counts words in a table, which a changelog topic keeps.

    faust -A faust_counts worker          # in earnest
    python faust_counts.py 127.0.0.1:9092

Run as a program it starts a worker, publishes words, stops it, and does so again with an empty directory,
as on another machine: the counts come back from the changelog.
"""

import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import faust

import postroad

NAME = os.environ.get("COUNTS_NAME", "counts")

app = faust.App(
    NAME,
    broker=f"kafka://{os.environ.get('POSTROAD_BOOTSTRAP', '127.0.0.1:9092')}",
    datadir=os.environ.get("COUNTS_DIR"),
    topic_partitions=2,  # of changelogs: as many as the source has
    topic_replication_factor=1,
    processing_guarantee="exactly_once",
    web_enabled=False,
)


class Word(faust.Record):
    text: str


words = app.topic(f"{NAME}-words", key_type=str, value_type=Word)
results = app.topic(f"{NAME}-results", value_serializer="raw")
counts = app.Table("seen", default=int)


@app.agent(words, sink=[results])
async def count(stream):
    async for word in stream:
        counts[word.text] += 1
        yield f"{word.text}: {counts[word.text]}"


def work(client: postroad.SyncClient, name: str, published: list[str]) -> None:
    """One worker from its start to its end."""
    with tempfile.TemporaryDirectory() as directory:
        worker = subprocess.Popen(
            [sys.executable, "-m", "faust", "-A", "faust_counts", "worker", "-l", "error"],
            cwd=Path(__file__).parent,
            env={
                **os.environ,
                "POSTROAD_BOOTSTRAP": sys.argv[1],
                "COUNTS_NAME": name,
                "COUNTS_DIR": directory,
            },
            stdout=subprocess.DEVNULL,  # its banner
        )
        for text in published:
            client.publish(f"{name}-words", {"text": text}, key=text)
        with client.receive(f"{name}-reader", topic=f"{name}-results", of=str) as messages:
            for _, message in zip(published, messages, strict=False):
                with message:
                    print(message.value)
        worker.terminate()
        worker.wait(60)


if __name__ == "__main__":
    name = f"counts-{uuid.uuid4().hex[:8]}"
    create = [sys.executable, "-m", "postroad", "topic", "create", f"{name}-words", "--partitions", "2"]
    subprocess.run([*create, "-b", sys.argv[1]], check=True, stdout=subprocess.DEVNULL)
    with postroad.SyncClient(sys.argv[1]) as client:
        work(client, name, ["cat", "cat"])
        print("on another machine:")
        work(client, name, ["cat"])
