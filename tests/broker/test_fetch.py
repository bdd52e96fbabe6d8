"""Fetch: how much is served, to whom, and how long a reader waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from postroad.wire.messages import fetch
from tests.broker.fetching import fetch_request, offsets_of, only, receive, send, wanted
from tests.broker.harness import Running
from tests.clients.wait import until
from tests.faults.raw import batch_of, send_batch
from tests.simulator.simulated_node import SimulatedNode

OUT_OF_RANGE, UNKNOWN_TOPIC, FENCED_EPOCH, UNKNOWN_EPOCH, UNKNOWN_ID = 1, 3, 74, 75, 100
ALL_VERSIONS = range(fetch.MIN_VERSION, fetch.MAX_VERSION + 1)


def key_of(version: int, name: str, topic_id: bytes) -> str | bytes:
    return topic_id if version >= 13 else name


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_version_serves_batches_as_they_were_sent(shared: Running, version: int) -> None:
    name = f"fetched-{version}"
    topic_id = shared.create(name)
    shared.publish(name, b"one", b"two")
    answer = shared.call(fetch, version, fetch_request(key_of(version, name, topic_id), wanted()))
    partition = only(answer)
    assert answer.responses[0].topic == (name if version < 13 else "")
    assert answer.responses[0].topic_id == (topic_id if version >= 13 else b"\0" * 16)
    assert (partition.error_code, partition.high_watermark, partition.last_stable_offset) == (0, 2, 2)
    assert offsets_of(partition) == [0, 1]
    if version >= 5:
        assert partition.log_start_offset == 0
    if version >= 7:
        assert (answer.error_code, answer.session_id) == (0, 0)


@pytest.mark.parametrize("version", [4, 12, 13, 18])
def test_what_does_not_exist_is_an_error_of_its_partition(shared: Running, version: int) -> None:
    name = f"missing-{version}"
    topic_id = shared.create(name)
    unknown = only(shared.call(fetch, version, fetch_request(key_of(version, "nope", b"\1" * 16), wanted())))
    assert unknown.error_code == (UNKNOWN_ID if version >= 13 else UNKNOWN_TOPIC)
    known = key_of(version, name, topic_id)
    assert (
        only(shared.call(fetch, version, fetch_request(known, wanted(partition=1)))).error_code
        == UNKNOWN_TOPIC
    )


@pytest.mark.parametrize("offset", [-1, 3, 1 << 62])
def test_an_offset_outside_the_log_is_out_of_range_at_once(shared: Running, topic: str, offset: int) -> None:
    shared.create(topic)
    shared.publish(topic, b"one", b"two")
    request = fetch_request(topic, wanted(offset=offset), wait_ms=60_000)
    assert only(shared.call(fetch, 12, request)).error_code == OUT_OF_RANGE


def test_deleted_records_are_out_of_range(shared: Running, topic: str) -> None:
    shared.create(topic)
    shared.publish(topic, b"one", b"two", b"three")
    shared.on_loop(lambda: shared.partition(topic).log.delete_before(2, 2))
    assert shared.fetch(topic, 1).error_code == OUT_OF_RANGE
    assert offsets_of(shared.fetch(topic, 2)) == [2]


def test_a_leader_epoch_that_is_old_or_unknown_is_fenced(shared: Running, topic: str) -> None:
    shared.create(topic)
    current = shared.partition(topic).leader_epoch
    codes = [
        only(shared.call(fetch, 12, fetch_request(topic, wanted(epoch=epoch), wait_ms=10_000))).error_code
        for epoch in (current + 1,)
    ]
    assert codes == [UNKNOWN_EPOCH]
    shared.on_loop(lambda: shared.partition(topic).become_leader(current + 5, None))
    request = fetch_request(topic, wanted(epoch=current), wait_ms=10_000)
    assert only(shared.call(fetch, 12, request)).error_code == FENCED_EPOCH


# --- how much


def test_the_first_batch_comes_whole_even_beyond_every_limit(shared: Running, topic: str) -> None:
    shared.create(topic)
    shared.publish(topic, b"x" * 50_000, b"y")
    for limit in (10, 0, -1):
        partition = only(shared.call(fetch, 12, fetch_request(topic, wanted(max_bytes=10), max_bytes=limit)))
        assert offsets_of(partition) == [0]
        assert len(partition.records) > 50_000


def test_a_partitions_limit_cuts_between_batches(shared: Running, topic: str) -> None:
    shared.create(topic)
    shared.publish(topic, *[b"x" * 1000] * 10)
    one = len(shared.fetch(topic, 9).records)
    for limit, count in ((one, 1), (one * 3 + 5, 3), (one * 10, 10)):
        partition = only(shared.call(fetch, 12, fetch_request(topic, wanted(max_bytes=limit))))
        assert offsets_of(partition) == list(range(count))


def test_the_requests_limit_counts_over_all_partitions(shared: Running, topic: str) -> None:
    shared.create(topic, 3)
    for index in range(3):
        shared.publish(topic, *[b"x" * 1000] * 4, partition=index)
    one = len(shared.fetch(topic, 3).records)
    request = fetch_request(topic, *(wanted(n) for n in range(3)), max_bytes=one * 6)
    partitions = shared.call(fetch, 12, request).responses[0].partitions
    assert [len(offsets_of(p)) for p in partitions] == [4, 2, 0]
    assert [p.high_watermark for p in partitions] == [4, 4, 4]


def test_the_nodes_own_limit_holds_whatever_is_asked_for(start: Callable[..., Running]) -> None:
    running = start(limits_fetch_bytes_max=5000, durability_flush="os")
    running.create("t")
    running.publish("t", *[b"x" * 1000] * 20)
    partition = only(running.call(fetch, 12, fetch_request("t", wanted())))
    assert len(offsets_of(partition)) == 4


def test_large_answers_arrive_byte_for_byte(shared: Running, topic: str) -> None:
    shared.create(topic)
    shared.publish(topic, *[bytes([n]) * 200_000 for n in range(20)])
    read = bytes(only(shared.call(fetch, 12, fetch_request(topic, wanted(max_bytes=1 << 24)))).records)
    log = shared.partition(topic).log
    assert read == log.active.file.read(0, log.active.size)


def test_a_thousand_partitions_in_one_fetch(shared: Running, topic: str) -> None:
    shared.create(topic, 250)
    shared.publish(topic, b"x", partition=249)
    request = fetch_request(topic, *(wanted(n % 250) for n in range(1000)), wait_ms=100)
    partitions = shared.call(fetch, 12, request).responses[0].partitions
    assert sum(bool(p.records) for p in partitions) == 4


# --- how long


def test_a_reader_at_the_end_waits_until_its_time_is_over(simulate: Callable[..., SimulatedNode]) -> None:
    running = simulate()
    running.create("t")
    began = running.world.now
    partition = only(running.call(fetch, 12, fetch_request("t", wanted(), wait_ms=20_000)))
    assert 20 <= running.world.now - began < 20.2
    assert (partition.error_code, offsets_of(partition)) == (0, [])
    assert not running.partition("t").readers


def test_no_minimum_means_no_waiting(shared: Running, topic: str) -> None:
    shared.create(topic)
    # nobody waits for an answer for a minute
    assert (
        offsets_of(only(shared.call(fetch, 12, fetch_request(topic, wanted(), wait_ms=60_000, min_bytes=0))))
        == []
    )


def test_a_message_wakes_every_reader_that_waits_for_it(shared: Running, topic: str) -> None:
    shared.create(topic)
    readers = [shared.connect() for _ in range(10)]
    for reader in readers:
        send(reader, fetch_request(topic, wanted(), wait_ms=15_000))
    until(lambda: len(shared.partition(topic).readers) == 10, "all wait")
    shared.publish(topic, b"news")
    for reader in readers:
        assert offsets_of(only(receive(reader))) == [0]
        reader.socket.close()
    assert not shared.partition(topic).readers


def test_a_reader_of_many_partitions_is_woken_by_one(shared: Running, topic: str) -> None:
    shared.create(topic, 3)
    with shared.connect() as reader:
        send(reader, fetch_request(topic, *(wanted(n) for n in range(3)), wait_ms=15_000))
        until(lambda: shared.partition(topic, 2).readers, "it waits")
        shared.publish(topic, b"news", partition=1)
        partitions = receive(reader).responses[0].partitions
    assert [offsets_of(p) for p in partitions] == [[], [0], []]
    assert not any(shared.partition(topic, n).readers for n in range(3))


def test_a_reader_sleeps_on_until_there_are_enough_bytes(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as reader:
        send(reader, fetch_request(topic, wanted(), wait_ms=15_000, min_bytes=2000))
        until(lambda: shared.partition(topic).readers, "it waits")
        shared.publish(topic, b"x" * 1000)
        assert shared.partition(topic).readers
        shared.publish(topic, b"x" * 1000)
        assert offsets_of(only(receive(reader))) == [0, 1]


def test_a_deleted_topic_wakes_its_readers_with_an_error(shared: Running, topic: str) -> None:
    shared.create(topic, 3)
    with shared.connect() as reader:
        send(reader, fetch_request(topic, *(wanted(n) for n in range(3)), wait_ms=15_000))
        until(lambda: shared.partition(topic, 2).readers, "it waits")
        assert shared.delete(topic) == 0
        answered = receive(reader).responses[0].partitions
        assert {p.error_code for p in answered} == {UNKNOWN_TOPIC}
    shared.create(topic)  # the node still follows its store
    shared.publish(topic, b"anew")


def test_a_reader_that_repeats_itself_gets_what_is_new_each_time(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as reader, shared.connect() as writer:
        for offset in range(20):
            send(reader, fetch_request(topic, wanted(offset=offset), wait_ms=15_000))
            assert send_batch(writer, topic, batch_of(b"%d" % offset)).base_offset == offset
            assert offsets_of(only(receive(reader))) == [offset]
