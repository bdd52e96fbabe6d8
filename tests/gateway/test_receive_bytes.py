"""How many bytes a receive asks a node for, and what becomes of those that its caller does not take."""

from __future__ import annotations

import asyncio

from postroad.client.metadata import TopicPartition
from postroad.config.sections import Http
from postroad.gateway import receiver as receiver_module
from postroad.gateway.memory import FETCH_BYTES_MIN, Memory
from postroad.gateway.receiver import RECEIVE_BYTES_MAX
from postroad.gateway.unpacking import unpack
from postroad.wire import compression
from postroad.wire.messages.share_fetch import AcquiredRecords, PartitionData
from postroad.wire.records import Record, encode_batch
from tests.clients.wait import until_async
from tests.gateway.cluster import Cluster, Partition
from tests.gateway.test_receiver import receiving, run

LOCK_MS = 30_000


def filled(cluster: Cluster, messages: int, value_bytes: int, key: bytes | None = None) -> Partition:
    (partition,) = cluster.topics["jobs"]
    partition.value_bytes, partition.key = value_bytes, key
    for _ in range(messages):
        partition.publish()
    return partition


def test_a_node_is_asked_for_what_the_caller_takes_and_no_more() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        filled(cluster, 2, 100)
        async with receiving(cluster) as receiver:
            await receiver.receive(1, 0, LOCK_MS, max_bytes=70_000)
            await receiver.receive(1, 0, LOCK_MS)
        assert cluster.fetch_bytes[:2] == [70_000, RECEIVE_BYTES_MAX]

    run(work)


def test_many_callers_together_ask_for_a_bounded_number_of_bytes() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        filled(cluster, 50, 100)
        async with receiving(cluster) as receiver:
            await asyncio.gather(*(receiver.receive(1, 1000, LOCK_MS) for _ in range(50)))
        assert max(cluster.fetch_bytes) == receiver_module.FETCH_BYTES_MAX

    run(work)


def test_messages_beyond_the_callers_bytes_are_returned_and_cost_no_delivery() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        partition = filled(cluster, 5, 400_000)
        async with receiving(cluster) as receiver:
            received = await receiver.receive(10, 0, LOCK_MS, max_bytes=1_000_000)
            assert [each.message.offset for each in received] == [0, 1]
            await until_async(lambda: partition.available == [2, 3, 4], "the others are returned")
            assert partition.deliveries[2] == partition.deliveries[4] == 0

    run(work)


def test_a_run_of_one_key_is_cut_by_bytes_and_goes_on_in_order() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        partition = filled(cluster, 5, 400_000, key=b"k")
        async with receiving(cluster) as receiver:
            received = await receiver.receive(10, 0, LOCK_MS, run_max=10, max_bytes=1_000_000)
            assert [each.message.offset for each in received] == [0, 1]
            await until_async(lambda: partition.available == [2, 3, 4], "the others are returned")
            assert partition.deliveries[2] == 0
            received = await receiver.receive(10, 0, LOCK_MS, run_max=10, max_bytes=1_000_000)
            assert [each.message.offset for each in received] == [2, 3]

    run(work)


def test_a_message_that_is_larger_than_the_bound_is_received_alone() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        filled(cluster, 2, 400_000)
        async with receiving(cluster) as receiver:
            for offset in range(2):
                received = await receiver.receive(10, 0, LOCK_MS, max_bytes=1000)
                assert [each.message.offset for each in received] == [offset]

    run(work)


# --- memory --------------------------------------------------------------------------------------------


def test_fetches_count_in_the_memory_for_answers_until_their_messages_are_handed_out() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        memory: Memory[object] = Memory(Http())
        async with receiving(cluster, memory=memory) as receiver:
            waiting = asyncio.ensure_future(receiver.receive(1, 30_000, LOCK_MS, max_bytes=500_000))
            await until_async(lambda: bool(cluster.fetch_bytes), "a node is asked")
            assert memory.fetching_bytes == 500_000
            filled(cluster, 1, 100)
            assert len(await waiting) == 1
            await until_async(lambda: memory.fetching_bytes == 0, "nothing counts any more")

    run(work)


def test_messages_whose_locks_are_being_set_still_count() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        cluster.slow_acknowledge_s = 0.05
        filled(cluster, 1, 200_000)
        memory: Memory[object] = Memory(Http())
        async with receiving(cluster, memory=memory) as receiver:
            short = asyncio.ensure_future(receiver.receive(1, 0, 500, max_bytes=50_000))  # locked for longer
            await until_async(lambda: memory.fetching_bytes > 200_000, "it counts")
            assert len(await short) == 1
            assert memory.fetching_bytes == 0

    run(work)


def test_fetches_ask_for_little_when_memory_is_short_and_still_bring_messages() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        filled(cluster, 1, 100)
        memory: Memory[object] = Memory(Http(send_bytes_max=1 << 20))
        memory.count_unread("a client that does not read", (1 << 20) - 1)
        async with receiving(cluster, memory=memory) as receiver:
            assert len(await receiver.receive(1, 0, LOCK_MS)) == 1
        assert cluster.fetch_bytes == [FETCH_BYTES_MIN]

    run(work)


# --- compressed messages -------------------------------------------------------------------------------


def packed(first: int, count: int, value_bytes: int) -> bytes:
    records = [Record(first + at, 0, None, b"0" * value_bytes) for at in range(count)]
    return bytes(encode_batch(records, base_offset=first, compression=compression.GZIP))


def test_of_compressed_batches_no_more_are_unpacked_than_callers_take() -> None:
    data = b"".join(packed(first, 2, 1_000_000) for first in range(0, 10, 2))
    assert len(data) < 50_000
    acquired = [AcquiredRecords(1, 4, 3), AcquiredRecords(6, 8, 1)]  # 0, 5 and 9 are others'
    answer = PartitionData(records=data, acquired_records=acquired)
    messages, left = unpack(TopicPartition("jobs", 0), answer, 2_000_000)
    assert [(message.offset, message.delivery_count) for message in messages] == [(1, 3), (2, 3), (3, 3)]
    assert [(run.first_offset, run.last_offset, run.delivery_count) for run in left] == [
        (4, 4, 3),
        (6, 7, 1),
        (8, 8, 1),
    ]


def test_of_a_compressed_batch_alone_everything_is_unpacked() -> None:
    answer = PartitionData(records=packed(0, 3, 1_000_000), acquired_records=[AcquiredRecords(0, 2, 1)])
    messages, left = unpack(TopicPartition("jobs", 0), answer, 1)
    assert [message.offset for message in messages] == [0, 1, 2]
    assert not left
