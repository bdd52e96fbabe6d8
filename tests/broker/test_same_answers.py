"""Whichever way a produce or fetch takes through the node, it is answered alike and leaves the same log.

Two nodes get the same requests, one of them with its short ways turned off.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from select import POLLIN, poll
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postroad.broker.partition import Partition
from postroad.system.clock import SystemClock
from postroad.wire import batch as batches
from postroad.wire.messages import api_versions, produce
from postroad.wire.records import Record, encode_batch
from tests.broker.fetching import fetch_request, send, wanted
from tests.broker.harness import Running, running_node
from tests.clients.wait import until
from tests.faults.raw import Closed, RawConnection, frame, request_content, send_batch

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
FENCE = 999_999  # the correlation of a request that ends a conversation
PRODUCER = 77
BYTES_MAX = 700
TOPIC_IDS_FROM = 13
SHORT_WAYS_FROM = 5


class FixedClock(SystemClock):
    """Wall time stands still, so that both nodes append at the same time."""

    def now_ms(self) -> int:
        return NOW_MS


# --- batches, good and bad


def good(
    n: int, *, records: int = 1, key: bytes | None = b"k", size: int = 9, at: int = NOW_MS, **more: Any
) -> bytes:
    values = [Record(i, at + i, key, b"%d" % n + b"." * size) for i in range(records)]
    return bytes(encode_batch(values, **more))


def mixed_keys(*keys: bytes | None) -> bytes:
    return bytes(encode_batch([Record(i, NOW_MS, key, b"v") for i, key in enumerate(keys)]))


def signed(batch: bytearray) -> bytes:
    """With the CRC that belongs to its bytes."""
    struct.pack_into(">I", batch, 17, batches.crc32c(bytes(batch[batches.CRC_START :])))
    return bytes(batch)


def patched(n: int, at: int, layout: str, value: int) -> bytes:
    batch = bytearray(good(n, records=2))
    struct.pack_into(layout, batch, at, value)
    return signed(batch) if at >= batches.CRC_START else bytes(batch)


def wrong_crc(n: int) -> bytes:
    batch = bytearray(good(n))
    batch[-3] ^= 1
    return bytes(batch)


ATTRIBUTES, DELTA, COUNT, MAGIC_AT = 21, 23, 57, 16
BATCHES: dict[str, Callable[[int], bytes | None]] = {
    "good": good,
    "good of several": lambda n: good(n, records=5),
    "good and compressed": lambda n: good(n, records=9, compression=4),
    "good and gzip": lambda n: good(n, records=9, compression=1),
    "without a key": lambda n: good(n, key=None),
    "one without a key": lambda n: mixed_keys(b"k", None, b"k"),
    "next of a producer": lambda n: good(n, producer_id=PRODUCER, producer_epoch=0, base_sequence=n),
    "first of a producer": lambda n: good(n, producer_id=PRODUCER, producer_epoch=0, base_sequence=0),
    "out of sequence": lambda n: good(n, producer_id=PRODUCER, producer_epoch=0, base_sequence=n + 50),
    "newer epoch": lambda n: good(n, producer_id=PRODUCER, producer_epoch=1, base_sequence=0),
    "producer without sequence": lambda n: good(n, producer_id=PRODUCER, producer_epoch=0, base_sequence=-1),
    "too large": lambda n: good(n, size=BYTES_MAX),
    "from the future": lambda n: good(n, at=NOW_MS + DAY_MS),
    "from the past": lambda n: good(n, at=NOW_MS - 400 * DAY_MS),
    "control": lambda n: patched(n, ATTRIBUTES, ">h", batches.CONTROL),
    "transactional": lambda n: patched(n, ATTRIBUTES, ">h", batches.TRANSACTIONAL),
    "control and transactional": lambda n: patched(n, ATTRIBUTES, ">h", 0x30),
    "log append time": lambda n: patched(n, ATTRIBUTES, ">h", batches.LOG_APPEND_TIME),
    "unknown compression": lambda n: patched(n, ATTRIBUTES, ">h", 5),
    "compressed as it claims, but not": lambda n: patched(n, ATTRIBUTES, ">h", 2),
    "delta too small": lambda n: patched(n, DELTA, ">i", 0),
    "delta too large": lambda n: patched(n, DELTA, ">i", 7),
    "delta below zero": lambda n: patched(n, DELTA, ">i", -1),
    "count of none": lambda n: patched(n, COUNT, ">i", 0),
    "count too large": lambda n: patched(n, COUNT, ">i", 3),
    "magic 1": lambda n: patched(n, MAGIC_AT, ">b", 1),
    "magic 3": lambda n: patched(n, MAGIC_AT, ">b", 3),
    "length too large": lambda n: patched(n, 8, ">i", 9_999),
    "wrong crc": wrong_crc,
    "cut off": lambda n: good(n)[:-1],
    "a header alone": lambda n: good(n)[:61],
    "half a header": lambda n: good(n)[:30],
    "two batches": lambda n: good(n) + good(n),
    "nothing": lambda n: b"",
    "null": lambda n: None,
}  # fmt: skip

CONFIGS: dict[str, Sequence[str]] = {
    "min.insync.replicas": ("1", "2"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "message.timestamp.before.max.ms": (str(2**63 - 1), str(DAY_MS)),
    "compression.type": ("producer", "uncompressed", "zstd"),
    "cleanup.policy": ("delete", "compact", "compact,delete"),
    "max.message.bytes": ("1048588", str(BYTES_MAX)),
    "segment.bytes": (str(1 << 30), "1000"),
    "postroad.flush": ("sync", "os", "interval"),
}

TIMEOUT_MS = 60_000  # of a produce: no answer depends on how long a sync takes


class Ask(NamedTuple):
    """One produce request."""

    batch: str
    acks: int
    partition: int


# Most of what a client sends repeats what it sent before, or no short way would be taken.
common = st.sampled_from(["good", "good of several", "good and compressed", "next of a producer"])
batch_names = st.one_of(common, common, st.sampled_from(sorted(BATCHES)))
asks = st.builds(
    Ask,
    batch_names,
    st.sampled_from([-1, -1, -1, 1, 1, 2]),
    st.sampled_from([0, 0, 0, 0, 1, 9]),
)


def run_of(ask: Ask, names: list[str]) -> list[Ask]:
    return [ask._replace(batch=name) for name in names]


def joined(runs: list[list[Ask]]) -> list[Ask]:
    return [ask for run in runs for ask in run]


runs = st.builds(run_of, asks, st.lists(batch_names, min_size=1, max_size=6))
conversations = st.lists(runs, min_size=1, max_size=4).map(joined)


def request_for(ask: Ask, n: int, topic: str, topic_id: bytes, version: int) -> bytes:
    data = produce.PartitionProduceData(index=ask.partition, records=BATCHES[ask.batch](n))
    named = {"topic_id": topic_id} if version >= TOPIC_IDS_FROM else {"name": topic}
    topics = [produce.TopicProduceData(**named, partition_data=[data])]
    request = produce.ProduceRequest(acks=ask.acks, timeout_ms=TIMEOUT_MS, topic_data=topics)
    return frame(request_content(produce, version, request, n))


def fence() -> bytes:
    return frame(request_content(api_versions, 0, api_versions.ApiVersionsRequest(), FENCE))


class Outcome(NamedTuple):
    answers: list[bytes]  # whole frames but their lengths; the last is empty if the connection was closed
    logs: list[tuple[int, int, bytes]]  # of each partition: its start, its end and its bytes


def converse(
    running: Running,
    topic: str,
    config: dict[str, str],
    frames: Callable[[bytes], list[bytes]],
    together: bool,
) -> Outcome:
    topic_id = running.create(topic, 2, **{name.replace(".", "_"): value for name, value in config.items()})
    answers = []
    with running.connect() as connection:
        for sent in [b"".join(frames(topic_id))] if together else frames(topic_id):
            connection.send(sent)
            if not together:
                answers.append(connection.receive())
        connection.send(fence())
        answers += until_fence(connection)
    answers = [answer.replace(topic_id, b"the topic's id.."[:16]) for answer in answers]
    return Outcome(answers, [log_of(running, topic, index) for index in (0, 1)])


def until_fence(connection: RawConnection) -> list[bytes]:
    answers: list[bytes] = []
    try:
        while (answer := connection.receive())[:4] != struct.pack(">i", FENCE):
            answers.append(answer)
    except Closed:
        answers.append(b"")
    return answers


def log_of(running: Running, topic: str, index: int) -> tuple[int, int, bytes]:
    """As it lies on the disk, once all that was staged is committed."""
    partition = running.partition(topic, index)
    until(lambda: partition.high_watermark == partition.log.end_offset, "all is committed")
    home = running.node.directory.logs / f"{running.node.image.topics[topic].id_text}-{index}"
    data = b"".join(path.read_bytes() for path in sorted(home.glob("*.log")))
    return partition.log.start_offset, partition.log.end_offset, data


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Running]]:
    """Two nodes that are told the same time; the second has no short ways."""
    with ExitStack() as stack:
        yield (
            stack.enter_context(running_node(tmp_path_factory.mktemp("short"), FixedClock())),
            stack.enter_context(
                running_node(tmp_path_factory.mktemp("long"), FixedClock(), kafka_short_ways="false")
            ),
        )


def short_way_taken(running: Running, api: str = "produce") -> int:
    return next(stats.short_way for stats in running.node.dispatcher.stats if stats.name == api)


numbers = count()


@pytest.mark.parametrize("version", range(3, 14))
def test_short_and_long_ways_answer_alike_and_leave_the_same_log(
    pair: tuple[Running, Running], version: int
) -> None:
    taken_before = short_way_taken(pair[0])

    @settings(max_examples=20, suppress_health_check=list(HealthCheck))
    @given(
        conversation=conversations,
        config=st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in CONFIGS.items()}),
        together=st.booleans(),
    )
    def compare(conversation: list[Ask], config: dict[str, str], together: bool) -> None:
        topic = f"t-{next(numbers)}"

        def frames(topic_id: bytes) -> list[bytes]:
            return [request_for(ask, n, topic, topic_id, version) for n, ask in enumerate(conversation)]

        short, long = (converse(running, topic, config, frames, together) for running in pair)
        assert short.answers == long.answers
        assert short.logs == long.logs

    compare()
    assert short_way_taken(pair[1]) == 0
    assert (short_way_taken(pair[0]) > taken_before) == (version >= SHORT_WAYS_FROM)


# --- fetches


class Read(NamedTuple):
    """One fetch, and the batch that is published once it is answered or waits."""

    ahead: int  # of the log's end
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int
    epoch: int
    wait_ms: int
    batches: int
    size: int  # of the first of them


reads = st.builds(
    Read,
    st.sampled_from([0, 0, 0, 0, 0, -1, -3, 1]),
    st.sampled_from([0, 1, 1, 1]),
    st.sampled_from([1 << 20, 1 << 20, 100]),
    st.sampled_from([1 << 20, 1 << 20, 100]),
    st.sampled_from([-1, -1, 0, 1]),
    st.sampled_from([20_000, 20_000, 20_000, 0]),
    st.sampled_from([1, 2]),
    st.sampled_from([10, 2000, 30_000]),
)


def fetch_while_publishing(running: Running, topic: str, reading: list[Read], version: int) -> list[bytes]:
    topic_id = running.create(topic, postroad_flush="os")
    partition, found = running.partition(topic), []
    with running.connect() as reader, running.connect() as writer:
        for n, read in enumerate(reading):
            offset = max(partition.log.end_offset + read.ahead, 0)
            request = fetch_request(
                topic_id if version >= TOPIC_IDS_FROM else topic,
                wanted(0, offset, read.partition_max_bytes, read.epoch),
                wait_ms=read.wait_ms,
                min_bytes=read.min_bytes,
                max_bytes=read.max_bytes,
            )
            send(reader, request, version, n)
            until(lambda: waits_or_is_answered(partition, reader), "the fetch has been looked at")
            for size in (read.size, 10)[: read.batches]:
                assert send_batch(writer, topic, good(n, size=size)).error_code == 0
            found.append(reader.receive().replace(topic_id, b"the topic's id.."))
    return found


def waits_or_is_answered(partition: Partition, reader: RawConnection) -> bool:
    answered = poll()
    answered.register(reader.socket, POLLIN)
    return bool(partition.readers or answered.poll(0))


@pytest.mark.parametrize("version", range(4, 19))
def test_short_and_long_ways_of_a_fetch_answer_alike(pair: tuple[Running, Running], version: int) -> None:
    @settings(max_examples=8, suppress_health_check=list(HealthCheck))
    @given(st.lists(reads, min_size=3, max_size=8))
    def compare(reading: list[Read]) -> None:
        topic = f"t-{next(numbers)}"
        short, long = (fetch_while_publishing(running, topic, reading, version) for running in pair)
        assert short == long

    compare()
    assert short_way_taken(pair[0], "fetch") > 0
    assert short_way_taken(pair[1], "fetch") == 0
