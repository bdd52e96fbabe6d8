"""A full disk: produce is refused, reads and deletes go on, and writing resumes by itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from postroad.testing import Node, NodeFailed, node
from tests.clients.confluent import consumer, producer, read_from, refusal, send_all
from tests.clients.wait import until

from .conftest import create_topic
from .files import fill

DISK_MB = 24
VALUE = bytes(range(256)) * 1000  # 256 kB, so that a few messages fill what is left


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A node's home whose data directory is a file system of 24 MB."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=0700", "postroad-test", str(data)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(data)], check=True)


@pytest.fixture
def full(small_disk: Path) -> Iterator[Node]:
    """A node with a message in `kept` and two in `spare`, and not a byte left on its disk."""
    with node({"storage.retention_check_ms": 200}, directory=small_disk) as running:
        create_topic(running, "kept")
        create_topic(running, "spare", **{"file.delete.delay.ms": 0, "segment.bytes": 300_000})
        through = impatient(running)
        send_all(through, "kept", [{"value": b"before"}])
        for _ in range(20):
            send_all(through, "spare", [{"value": VALUE}])
        filler = fill(running)
        yield running
        filler.unlink(missing_ok=True)


def impatient(running: Node) -> Producer:
    """KAFKA_STORAGE_ERROR makes clients try again; without retries the test sees it."""
    return producer(running.bootstrap, retries=0, message_timeout_ms=25_000)


def test_produce_is_refused_with_a_storage_error_and_reads_go_on(full: Node) -> None:
    error = refusal(impatient(full), "kept", value=VALUE)
    assert error.code() == KafkaError.KAFKA_STORAGE_ERROR
    (message,) = read_from(full.bootstrap, TopicPartition("kept", 0, 0), 1)
    assert message.value() == b"before"
    assert len(read_from(full.bootstrap, TopicPartition("spare", 0, 0), 20)) == 20


def test_writing_resumes_without_a_restart_and_nothing_refused_is_stored(full: Node) -> None:
    through = impatient(full)
    for _ in range(5):
        assert refusal(through, "kept", value=VALUE).code() == KafkaError.KAFKA_STORAGE_ERROR
    (full.data_dir / "filler").unlink()
    sent = send_all(through, "kept", ({"value": b"after %d" % number} for number in range(3)))
    assert [message.offset() for message in sent] == [1, 2, 3]
    full.kill()
    full.start()
    messages = read_from(full.bootstrap, TopicPartition("kept", 0, 0), 4, check_crcs=True)
    assert [message.value() for message in messages] == [b"before", b"after 0", b"after 1", b"after 2"]


def test_patient_idempotent_producer_gets_through_when_there_is_room(full: Node) -> None:
    through = producer(full.bootstrap, enable_idempotence=True, retry_backoff_ms=50)
    acknowledged: list[int] = []
    for number in range(10):
        through.produce(
            "kept",
            b"patient %d" % number + VALUE,
            on_delivery=lambda error, message: acknowledged.append(-1 if error else message.offset()),
        )
    through.flush(1)
    assert acknowledged == []
    (full.data_dir / "filler").unlink()
    assert through.flush(60) == 0
    assert acknowledged == list(range(1, 11))


def test_records_and_topics_may_be_deleted_to_make_room(full: Node) -> None:
    admin = AdminClient({"bootstrap.servers": full.bootstrap})
    (answer,) = admin.delete_records([TopicPartition("spare", 0, 10)]).values()
    assert answer.result(60).low_watermark == 10
    until(lambda: _has_room(full), "writing resumes after records were deleted")
    fill(full)
    admin.delete_topics(["spare"])["spare"].result(60)
    until(lambda: _has_room(full), "writing resumes after the topic was deleted")


def test_refused_commit_is_an_error_and_the_next_one_holds(full: Node) -> None:
    with consumer(full.bootstrap, "bookmarks") as source:
        place = TopicPartition("kept", 0, 1)
        for _ in range(3):
            _try_commit(source, place)
        (full.data_dir / "filler").unlink()
        until(lambda: _try_commit(source, place), "the commit holds")
        assert source.committed([place], timeout=60)[0].offset == 1


def test_stop_on_a_full_disk_is_a_good_stop(full: Node) -> None:
    full.stop()  # raises unless the exit code is 0
    (full.data_dir / "filler").unlink()
    full.start()
    assert len(read_from(full.bootstrap, TopicPartition("spare", 0, 0), 20)) == 20


def test_start_on_a_full_disk_serves_or_says_why_not(full: Node) -> None:
    full.kill()
    fill(full)
    refused = _refusal_to_start(full)
    if refused is not None:
        assert "disk is full" in refused
        assert "Traceback" not in refused
        (full.data_dir / "filler").unlink()
        full.start()
    (message,) = read_from(full.bootstrap, TopicPartition("kept", 0, 0), 1)
    assert message.value() == b"before"


def _refusal_to_start(running: Node) -> str | None:
    try:
        running.start()
    except NodeFailed as refused:
        return str(refused)
    return None


def _has_room(running: Node) -> bool:
    through, errors = impatient(running), []
    through.produce("kept", b"small", on_delivery=lambda error, _: errors.append(error))
    through.flush(30)
    return errors == [None]


def _try_commit(source: Consumer, place: TopicPartition) -> bool:
    try:
        source.commit(offsets=[place], asynchronous=False)
    except KafkaException:
        return False
    return True
