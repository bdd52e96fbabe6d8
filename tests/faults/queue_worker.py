"""A worker on a queue, to be killed: `python queue_worker.py BOOTSTRAP GROUP TOPIC DIARY`.

It writes each delivery into its diary before it answers, and each confirmed answer after it; a line is
written at once or not at all:

    got  MILLISECONDS PARTITION OFFSET DELIVERY
    done MILLISECONDS PARTITION OFFSET
"""

from __future__ import annotations

import os
import sys
import time

from confluent_kafka import KafkaException, ShareConsumer


def main(bootstrap: str, group: str, topic: str, diary: str) -> None:
    source = ShareConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "share.acknowledgement.mode": "explicit",
            "max.poll.records": 20,
            "log_level": 3,
        }
    )
    source.subscribe([topic])
    with open(diary, "ab", buffering=0) as file:

        def note(word: str, *numbers: int) -> None:
            os.write(file.fileno(), f"{word} {int(time.monotonic() * 1000)} {_joined(numbers)}\n".encode())

        while True:
            try:
                messages = [message for message in source.poll(1.0) if not message.error()]
            except KafkaException:
                continue
            for message in messages:
                note("got", message.partition(), message.offset(), message.delivery_count())
            time.sleep(0.005)  # the work
            for message in messages:
                source.acknowledge(message)
            errors = {place.partition: error for place, error in source.commit_sync(60.0).items()}
            for message in messages:
                if errors[message.partition()] is None:
                    note("done", message.partition(), message.offset())


def _joined(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))


if __name__ == "__main__":
    main(*sys.argv[1:])
