"""What clients notice of a node's configuration: creation, deletion, retention, compaction, sessions."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import TopicPartition as PythonPartition

from . import python_kafka
from .confluent import consumer, producer, read, refusal, send_all, send_values
from .conftest import ELSEWHERE
from .wait import until

pytestmark = pytest.mark.skipif(ELSEWHERE is not None, reason="only our own node can be configured here")


@contextmanager
def configured(**settings: Any) -> Iterator[str]:
    """A node with these settings (`__` for `.`): its address."""
    from postroad.testing import node

    with node({name.replace("__", "."): value for name, value in settings.items()}) as running:
        yield running.bootstrap


def create(bootstrap: str, name: str, partitions: int = 1, **config: str | int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    settings = {key: str(value) for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(10)


def test_topics_are_not_created_where_that_is_turned_off() -> None:
    with configured(topics__auto_create=False) as bootstrap:
        through = producer(bootstrap, message_timeout_ms=25_000, topic_metadata_propagation_max_ms=0)
        error = refusal(through, "never-created", value=b"v")
        assert error.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}
        admin = AdminClient({"bootstrap.servers": bootstrap})
        assert "never-created" not in admin.list_topics(timeout=10).topics


def test_default_partitions_hold_for_topics_that_clients_create() -> None:
    with configured(topics__partitions=3) as bootstrap:
        send_values(bootstrap, "made-by-the-way", 1)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        assert len(admin.list_topics(timeout=10).topics["made-by-the-way"].partitions) == 3


def test_topics_are_not_deleted_where_that_is_turned_off() -> None:
    with configured(topics__deletable=False) as bootstrap:
        create(bootstrap, "kept")
        admin = AdminClient({"bootstrap.servers": bootstrap})
        with pytest.raises(KafkaException) as refused:
            admin.delete_topics(["kept"])["kept"].result(10)
        assert refused.value.args[0].code() == KafkaError.TOPIC_DELETION_DISABLED


def test_old_segments_go_and_the_consumer_starts_at_what_is_left() -> None:
    with configured(storage__retention_check_ms=100) as bootstrap:
        create(bootstrap, "short-lived", **{"retention.ms": 600_000, "segment.bytes": 2000})
        through, an_hour_ago = producer(bootstrap), int(time.time() * 1000) - 3_600_000
        for _ in range(10):
            send_all(through, "short-lived", [{"value": b"x" * 1000, "timestamp": an_hour_ago}])
        send_all(through, "short-lived", [{"value": b"new"}])
        with consumer(bootstrap) as source:
            place = TopicPartition("short-lived", 0, OFFSET_BEGINNING)
            until(lambda: source.get_watermark_offsets(place, timeout=10)[0] > 0, "the start has moved")
            source.assign([place])
            left = read(source, 1)
            while left[-1].value() != b"new":  # how much is left of the old ones may change meanwhile
                left += read(source, 1)
        offsets = [message.offset() for message in left]
        assert offsets[0] > 0
        assert offsets[-1] == 10


def test_log_stays_within_its_size() -> None:
    with configured(storage__retention_check_ms=100) as bootstrap:
        create(bootstrap, "bounded", **{"retention.bytes": 5000, "segment.bytes": 2000})
        through = producer(bootstrap)
        for _ in range(30):
            send_all(through, "bounded", [{"value": b"x" * 1000}])
        with consumer(bootstrap) as source:
            place = TopicPartition("bounded", 0)
            until(lambda: source.get_watermark_offsets(place, timeout=10)[0] >= 20, "old segments are gone")


def test_compaction_keeps_the_last_value_of_each_key_and_forgets_the_deleted_ones() -> None:
    config: dict[str, Any] = {
        "cleanup.policy": "compact",
        "segment.bytes": 5000,
        "min.cleanable.dirty.ratio": 0.01,
        "delete.retention.ms": 0,
    }
    with configured(storage__compaction_check_ms=50) as bootstrap:
        create(bootstrap, "compacted", **config)
        through = producer(bootstrap, compression_type="gzip")
        for number in range(100):
            send_all(through, "compacted", [{"key": b"%d" % (number % 5), "value": b"%d" % number * 50}])
        send_all(through, "compacted", [{"key": b"3", "value": None}])

        def kept() -> dict[bytes, list[int]]:
            found: dict[bytes, list[int]] = {}
            with consumer(bootstrap, check_crcs=True, enable_partition_eof=True) as source:
                source.assign([TopicPartition("compacted", 0, OFFSET_BEGINNING)])
                for message in iter(lambda: source.poll(10), None):
                    if message.error():
                        break
                    found.setdefault(message.key(), []).append(message.offset())
            return found

        def is_compacted() -> bool:
            # The newest segment is never compacted: fillers push the others into the past.
            send_all(through, "compacted", [{"key": b"filler", "value": random.randbytes(3000)}])
            seen = kept()
            seen.pop(b"filler", None)
            return seen == {b"0": [95], b"1": [96], b"2": [97], b"4": [99]}

        until(is_compacted, "only the last value of each key is left, at its old offset")


def test_evicted_fetch_sessions_are_begun_anew_and_nothing_is_lost() -> None:
    with configured(limits__fetch_sessions_max=2) as bootstrap, ExitStack() as opened:
        create(bootstrap, "shared", 4)
        readers = [
            opened.enter_context(python_kafka.consumer(bootstrap, fetch_max_wait_ms=50)) for _ in range(6)
        ]
        for reader in readers:
            reader.assign([PythonPartition("shared", partition) for partition in range(4)])
        for _ in range(3):
            for partition in range(4):
                send_values(bootstrap, "shared", 1, partition)
            for reader in readers:
                assert len(python_kafka.read(reader, 4)) == 4


MEMBER_THAT_DIES = """
import sys
from confluent_kafka import Consumer
member = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "mortals", "group.protocol": "consumer"})
member.subscribe(["inherited"])
while not member.assignment():
    member.poll(0.1)
print("joined", flush=True)
while True:
    member.poll(0.1)
"""


def test_killed_848_member_loses_its_partitions_after_the_nodes_session_timeout() -> None:
    with configured(groups__consumer_session_ms=1500, groups__consumer_heartbeat_ms=200) as bootstrap:
        create(bootstrap, "inherited", 2)
        command = [sys.executable, "-c", MEMBER_THAT_DIES, bootstrap]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dying:
            assert dying.stdout is not None
            assert dying.stdout.readline() == "joined\n"
            dying.send_signal(signal.SIGKILL)
        send_values(bootstrap, "inherited", 3)
        with consumer(bootstrap, "mortals", group_protocol="consumer") as heir:
            heir.subscribe(["inherited"])
            assert [message.value() for message in read(heir, 3)] == [b"0", b"1", b"2"]
