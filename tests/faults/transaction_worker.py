"""A worker that copies a partition in transactions, to be killed.

    python transaction_worker.py CLIENT BOOTSTRAP PARTITION

It reads one partition of `numbers` from where the group `copiers` has come to, writes each value to `copies`,
and commits output and offset together; every third transaction it aborts. Whatever goes wrong, it begins anew
with new clients under the same transactional id, which aborts what was open.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import sys
import threading
import time
from contextlib import closing

import aiokafka
import kafka
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka.errors import KafkaError as KafkaPythonError
from kafka.structs import OffsetAndMetadata

SOURCE, TARGET, GROUP = "numbers", "copies", "copiers"
TARGETS = 2  # partitions of the copies
CALL_S = 10.0
BATCH = 20
TIMEOUT_MS = 10_000
AGAIN_S = 0.1
HANGS_S = 20.0  # of a client whose calls have no time-out, or don't keep to it


class Watchdog:
    """Replaces the process by a new one unless it is told often enough that there is progress.

    kafka-python (3.0.12) loses a request of a transaction when it can't connect to the coordinator: its
    sender looks for another one, and does not queue the request again. send_offsets_to_transaction of
    librdkafka (2.16) may wait without end for a group's coordinator that has left the cluster's metadata
    (librdkafka#5511), and looks at no time-out meanwhile (#5456).
    """

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def progress(self) -> None:
        self.close()
        self._timer = threading.Timer(HANGS_S, _begin_anew)
        self._timer.daemon = True
        self._timer.start()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _begin_anew() -> None:
    print(f"no progress for {HANGS_S:g} s: the process begins anew", file=sys.stderr, flush=True)
    faulthandler.dump_traceback()
    os.execv(sys.executable, [sys.executable, "-m", "tests.faults.transaction_worker", *sys.argv[1:]])


def copy_with_confluent(bootstrap: str, partition: int) -> None:
    common = {
        "bootstrap.servers": bootstrap,
        "log_level": 2,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        # Else it replaces its brokers when all nodes are away, and hangs more often (see Watchdog).
        "metadata.recovery.strategy": "none",
    }
    through = Producer(
        {**common, "transactional.id": f"copier-{partition}", "transaction.timeout.ms": TIMEOUT_MS}
    )
    through.init_transactions(CALL_S)
    source = Consumer(
        {**common, "group.id": GROUP, "enable.auto.commit": False, "isolation.level": "read_committed"}
    )
    with closing(Watchdog()) as watchdog, closing(source):
        (at,) = source.committed([TopicPartition(SOURCE, partition)], CALL_S)
        if at.error is not None:
            raise KafkaException(at.error)
        source.assign([TopicPartition(SOURCE, partition, max(at.offset, 0))])
        for turn in range(1, 1 << 30):
            watchdog.progress()
            messages = [message for message in source.consume(BATCH, 1.0) if not message.error()]
            if not messages:
                continue
            through.begin_transaction()
            for message in messages:
                through.produce(TARGET, message.value(), partition=int(message.value()) % TARGETS)
            behind = TopicPartition(SOURCE, partition, messages[-1].offset() + 1)
            through.send_offsets_to_transaction([behind], source.consumer_group_metadata(), CALL_S)
            if turn % 3:
                through.commit_transaction(CALL_S)
            else:
                through.abort_transaction(CALL_S)
                source.seek(TopicPartition(SOURCE, partition, messages[0].offset()))


def copy_with_kafka_python(bootstrap: str, partition: int) -> None:
    where = kafka.TopicPartition(SOURCE, partition)
    through = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        transactional_id=f"copier-{partition}",
        transaction_timeout_ms=TIMEOUT_MS,
        request_timeout_ms=int(CALL_S * 1000),
    )
    settings = {"isolation_level": "read_committed", "enable_auto_commit": False, "group_id": GROUP}
    watchdog = Watchdog()
    with (
        closing(watchdog),
        closing(through),
        closing(
            kafka.KafkaConsumer(bootstrap_servers=bootstrap, max_poll_records=BATCH, **settings)
        ) as source,
    ):
        through.init_transactions()
        source.assign([where])
        source.seek(where, source.committed(where) or 0)
        for turn in range(1, 1 << 30):
            watchdog.progress()
            messages = source.poll(timeout_ms=1000).get(where, [])
            if not messages:
                continue
            through.begin_transaction()
            for message in messages:
                through.send(TARGET, message.value, partition=int(message.value) % TARGETS)
            behind = OffsetAndMetadata(messages[-1].offset + 1, "", -1)
            through.send_offsets_to_transaction({where: behind}, GROUP)
            if turn % 3:
                through.commit_transaction()
            else:
                through.abort_transaction()
                source.seek(where, messages[0].offset)


async def copy_with_aiokafka(bootstrap: str, partition: int) -> None:
    where = aiokafka.TopicPartition(SOURCE, partition)
    settings = {"isolation_level": "read_committed", "enable_auto_commit": False, "group_id": GROUP}
    async with (
        aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=f"copier-{partition}",
            transaction_timeout_ms=TIMEOUT_MS,
        ) as through,
        aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, **settings) as source,
    ):
        source.assign([where])
        source.seek(where, await source.committed(where) or 0)
        for turn in range(1, 1 << 30):
            found = await source.getmany(timeout_ms=1000, max_records=BATCH)
            messages = found.get(where, [])
            if not messages:
                continue
            async with asyncio.timeout(2 * CALL_S):
                await through.begin_transaction()
                for message in messages:
                    await through.send(TARGET, message.value, partition=int(message.value) % TARGETS)
                await through.send_offsets_to_transaction({where: messages[-1].offset + 1}, GROUP)
                if turn % 3:
                    await through.commit_transaction()
                else:
                    await through.abort_transaction()
                    source.seek(where, messages[0].offset)


def main(client: str, bootstrap: str, partition: str) -> None:
    while True:
        try:
            if client == "confluent":
                copy_with_confluent(bootstrap, int(partition))
            elif client == "kafka-python":
                copy_with_kafka_python(bootstrap, int(partition))
            else:
                asyncio.run(copy_with_aiokafka(bootstrap, int(partition)))
        except (KafkaException, KafkaPythonError, AiokafkaError, TimeoutError) as error:
            print(type(error).__name__, error, file=sys.stderr, flush=True)
        time.sleep(AGAIN_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
