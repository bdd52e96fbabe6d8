"""Dead letters, seen from inside: none is lost or stuck, however large it is, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import errno
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from postroad.queues.update import Key
from postroad.wire.batch import walk
from postroad.wire.records import Record, decode_records, encode_batch
from tests.broker.failing_disk import put_back, use_failing_disk
from tests.broker.harness import Running, running_node
from tests.broker.test_queues import GROUP, acquire_as, configure, settle_as
from tests.clients.share_session import Error, Fate, Word, session
from tests.clients.wait import until
from tests.faults.raw import send_batch

DEAD = f"{GROUP}.dead"
MEGABYTE = 1_000_000


def test_letter_larger_than_its_topic_takes_from_publishers_is_stored_and_blocks_no_other(
    start: Callable[..., Running],
) -> None:
    running = start()
    running.create("jobs", max_message_bytes=8 * MEGABYTE)
    running.create(DEAD, segment_bytes=MEGABYTE)
    configure(running)
    running.publish("jobs", b"x" * 2 * MEGABYTE, b"a", b"b")
    reject(running, 3)
    assert [letter.value for letter in letters(running, 3)] == [b"x" * 2 * MEGABYTE, b"a", b"b"]


@pytest.mark.parametrize("compression", [0, 4])
def test_messages_that_die_together_become_letters_however_much_they_amount_to(
    start: Callable[..., Running], compression: int
) -> None:
    running = start()
    running.create("jobs")
    configure(running)
    now, headers = int(time.time() * 1000), [("trace", b"h" * 9000)]
    for first in range(0, 200, 100):
        records = [Record(n, now, None, b"%d" % (first + n), headers) for n in range(100)]
        with running.connect() as connection:
            batch = encode_batch(records, compression=compression)
            assert send_batch(connection, "jobs", batch).error_code == 0
    reject(running, 200)
    assert [letter.value for letter in letters(running, 200)] == [b"%d" % n for n in range(200)]
    assert max(header.size for _, header in walk(stored(running))) < MEGABYTE


def test_message_that_a_seek_brings_back_is_delivered_though_it_was_being_buried(
    start: Callable[..., Running],
) -> None:
    running = start()
    topic_id = running.create("jobs")
    disk = use_failing_disk(running)
    running.create(DEAD)
    configure(running)
    running.publish("jobs", b"x")
    disk.gate.clear()
    reject(running, 1)
    until(lambda: running.partition(DEAD).producers, "the copy waits for the disk")
    running.run(running.node.subscriptions.administration.reset(Key(GROUP, topic_id, 0), 0))
    disk.gate.set()
    assert [letter.value for letter in letters(running, 1)] == [b"x"]
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some().offsets == [0]


def test_letters_of_a_partition_that_was_offline_are_written_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.broker.replicas.REOPEN_S", 0.1)
    with running_node(tmp_path) as running:
        running.create("jobs")
        disk = use_failing_disk(running)
        running.create(DEAD)
        disk.fail("append", "", errno.ENOSPC)
        configure(running)
        running.publish("jobs", b"x")
        reject(running, 1)
        home = Path(running.partition("jobs").log.directory)
    home.rename(tmp_path / "elsewhere")
    home.write_bytes(b"no directory")
    with running_node(tmp_path) as running:
        assert running.node.partitions.offline() == [("jobs", 0)]
        put_back(running, tmp_path / "elsewhere", home)
        assert [letter.value for letter in letters(running, 1)] == [b"x"]


def test_a_message_that_its_leader_does_not_know_to_be_committed_yet_is_not_taken_for_deleted(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after the death of all nodes, where the ledger is committed again before its messages are."""
    monkeypatch.setattr("postroad.broker.subscriptions.dead_letters.RETRY_S", (0.01,))
    running = start()
    running.create("jobs")
    disk = use_failing_disk(running)
    running.create(DEAD)
    disk.fail("append", "", errno.ENOSPC)
    configure(running)
    running.publish("jobs", b"x")
    reject(running, 1)
    until(lambda: disk.refusals, "the letter can't be written")
    jobs = running.partition("jobs")
    running.on_loop(lambda: jobs.set_watermark(0))
    disk.heal()
    running.run(asyncio.sleep(0.2))
    assert running.partition(DEAD).high_watermark == 0
    running.on_loop(lambda: jobs.set_watermark(1))
    assert [letter.value for letter in letters(running, 1)] == [b"x"]


@pytest.mark.parametrize("order", ["none", "key", "partition"])
def test_message_with_a_time_that_can_not_be_read_is_a_dead_letter_that_says_so(
    start: Callable[..., Running], order: str
) -> None:
    running = start()
    running.create("jobs")
    configure(running, postroad_order=order)
    headers: list[tuple[str, bytes | None]] = [("postroad-delay-ms", b"soon")]
    records = [Record(0, running.began_ms, b"k", b"late", headers), Record(1, running.began_ms, b"k", b"x")]
    with running.connect() as connection:
        assert send_batch(connection, "jobs", encode_batch(records)).error_code == 0
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some().offsets == [1]
    (letter,) = letters(running, 1)
    told = dict(letter.headers)
    assert (letter.value, told["postroad-dead-reason"]) == (b"late", b"invalid")
    assert told["postroad-dead-delay-ms"] == b"soon"
    assert told["postroad-reason"] == (
        b"postroad-delay-ms is 'soon'; it must be milliseconds in up to 15 digits"
    )


def test_message_with_a_time_that_can_not_be_read_is_delivered_where_no_letters_are_kept(
    start: Callable[..., Running],
) -> None:
    running = start()
    running.create("jobs")
    configure(running, postroad_dead_letters="false")
    record = Record(0, running.began_ms, None, b"late", [("postroad-deliver-at", b"-5")])
    with running.connect() as connection:
        assert send_batch(connection, "jobs", encode_batch([record])).error_code == 0
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch_some().offsets == [0]


def test_reason_of_a_rejection_is_in_the_letter_whatever_happens_before_it_is_written(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        topic_id = running.create("jobs")
        disk = use_failing_disk(running)
        running.create(DEAD)
        configure(running)
        running.publish("jobs", b"a", b"b", b"c")
        disk.fail("append", "", errno.ENOSPC)
        assert acquire_as(running, topic_id, "me") == [0, 1, 2]
        for offset, reason in enumerate(["no such customer: Müller", "", "x" * 1000]):
            assert settle_as(running, topic_id, "me", offset, Fate.REJECT, reason=reason) == Error.NONE
    with running_node(tmp_path) as running:
        told = [dict(letter.headers).get("postroad-reason") for letter in letters(running, 3)]
        assert told == ["no such customer: Müller".encode(), None, b"x" * 1000]


def test_reason_that_is_too_long_is_refused_and_changes_nothing(start: Callable[..., Running]) -> None:
    running = start()
    topic_id = running.create("jobs")
    configure(running)
    running.publish("jobs", b"a")
    assert acquire_as(running, topic_id, "me") == [0]
    long = "x" * 1001
    assert settle_as(running, topic_id, "me", 0, Fate.REJECT, reason=long) == Error.INVALID_REQUEST
    assert settle_as(running, topic_id, "me", 0, Fate.ACCEPT) == Error.NONE


def test_graceful_stop_while_letters_are_written_leaves_one_copy_of_each(tmp_path: Path) -> None:
    with running_node(tmp_path, durability_flush="sync") as running:
        running.create("jobs")
        disk = use_failing_disk(running)
        running.create(DEAD)
        configure(running)
        running.publish("jobs", *(b"%d" % n for n in range(4)))
        disk.gate.clear()
        reject(running, 4)
        until(lambda: running.partition(DEAD).log.written_offset, "the copies wait for the disk")
        stopping = threading.Thread(target=running.stop)
        stopping.start()
        until(lambda: running.node.subscriptions.dead_letters.is_stopping, "the node stops")
        disk.gate.set()
        stopping.join()
    with running_node(tmp_path) as running:
        [ledger] = running.node.subscriptions.ledgers(GROUP)
        assert (ledger.start, list(ledger.dying)) == (4, [])
        assert [letter.value for letter in letters(running, 4)] == [b"0", b"1", b"2", b"3"]


def reject(running: Running, count: int) -> None:
    """All messages of the topic, at once."""
    held = 0
    with running.session(GROUP, "jobs") as member:
        while held < count:
            held += len(member.fetch_some().held)
        assert member.acknowledge(Word(0, count - 1, [Fate.REJECT])) == Error.NONE


def letters(running: Running, count: int) -> list[Record]:
    def are_stored() -> bool:
        partition = running.node.partitions.find(DEAD, 0)
        return partition is not None and partition.high_watermark >= count

    until(are_stored, "they are stored")
    data = stored(running)
    return [
        record
        for position, header in walk(data)
        for record in decode_records(data[position : position + header.size])
    ]


def stored(running: Running) -> memoryview:
    """All batches of the dead-letter topic."""
    partition, offset, data = running.partition(DEAD), 0, b""
    while offset < partition.high_watermark:
        data += bytes(running.fetch(DEAD, offset).records)
        *_, (_, last) = walk(memoryview(data))
        offset = last.next_offset
    return memoryview(data)
