"""ListOffsets: places in a log by name and by time."""

from __future__ import annotations

import time
from typing import Any

import pytest

from postroad.wire.messages import list_offsets as api
from postroad.wire.records import Record, encode_batch
from tests.broker.harness import Running
from tests.faults.raw import send_batch

LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
UNKNOWN_TOPIC, UNSUPPORTED_VERSION, FENCED_EPOCH, UNKNOWN_EPOCH = 3, 35, 74, 75
ALL_VERSIONS = range(api.MIN_VERSION, api.MAX_VERSION + 1)
NOW = int(time.time() * 1000)


def ask(
    running: Running, topic: str, timestamp: int, version: int = 11, index: int = 0, epoch: int = -1
) -> Any:
    partition = api.ListOffsetsPartition(index, epoch, timestamp)
    request = api.ListOffsetsRequest(replica_id=-1, topics=[api.ListOffsetsTopic(topic, [partition])])
    return running.call(api, version, request).topics[0].partitions[0]


def place(running: Running, topic: str, timestamp: int, version: int = 11) -> tuple[int, int]:
    answer = ask(running, topic, timestamp, version)
    assert answer.error_code == 0
    return answer.offset, answer.timestamp


@pytest.fixture(scope="module")
def timed(shared: Running) -> str:
    """A topic with six records in three batches, the newest in the middle."""
    shared.create("timed")
    with shared.connect() as connection:
        for times in ((-1000, -900), (-500, -100), (-400, -300)):
            records = [Record(n, NOW + ms, b"k", b"v") for n, ms in enumerate(times)]
            assert send_batch(connection, "timed", encode_batch(records)).error_code == 0
    return "timed"


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_version_knows_the_ends_and_a_time(shared: Running, timed: str, version: int) -> None:
    assert place(shared, timed, LATEST, version) == (6, -1)
    assert place(shared, timed, EARLIEST, version) == (0, -1)
    assert place(shared, timed, NOW - 900, version) == (1, NOW - 900)


@pytest.mark.parametrize(
    ("ms", "offset", "found"),
    [(-5000, 0, -1000), (-1000, 0, -1000), (-999, 1, -900), (-450, 3, -100), (-100, 3, -100)],
)
def test_a_time_finds_the_first_record_that_is_not_older(
    shared: Running, timed: str, ms: int, offset: int, found: int
) -> None:
    assert place(shared, timed, NOW + ms) == (offset, NOW + found)


def test_a_time_after_all_records_finds_nothing(shared: Running, timed: str) -> None:
    assert place(shared, timed, NOW - 99) == (-1, -1)


def test_the_record_with_the_largest_timestamp(shared: Running, timed: str) -> None:
    assert place(shared, timed, NEWEST) == (3, NOW - 100)


def test_an_empty_log_has_ends_but_no_records(shared: Running, topic: str) -> None:
    shared.create(topic)
    assert [place(shared, topic, t) for t in (LATEST, EARLIEST, NEWEST, 0)] == [
        (0, -1),
        (0, -1),
        (-1, -1),
        (-1, -1),
    ]


def test_all_that_is_local_is_all_and_nothing_is_remote(shared: Running, timed: str) -> None:
    assert place(shared, timed, EARLIEST_LOCAL) == (0, -1)
    assert place(shared, timed, LATEST_TIERED) == (-1, -1)
    assert place(shared, timed, PENDING_UPLOAD) == (-1, -1)


@pytest.mark.parametrize(
    ("name", "version"),
    [(NEWEST, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (PENDING_UPLOAD, 10), (-7, 11)],
)
def test_a_name_is_refused_in_versions_before_its_own(
    shared: Running, timed: str, name: int, version: int
) -> None:
    assert ask(shared, timed, name, version).error_code == UNSUPPORTED_VERSION


def test_deleted_records_are_not_found(shared: Running, topic: str) -> None:
    shared.create(topic)
    shared.publish(topic, b"a", b"b", b"c")
    shared.on_loop(lambda: shared.partition(topic).log.delete_before(2, 2))
    assert place(shared, topic, EARLIEST) == (2, -1)
    assert place(shared, topic, 0)[0] == 2
    assert place(shared, topic, NEWEST)[0] == 2


def test_what_is_not_there_is_told(shared: Running, timed: str) -> None:
    assert ask(shared, "nowhere", LATEST).error_code == UNKNOWN_TOPIC
    assert ask(shared, timed, LATEST, index=1).error_code == UNKNOWN_TOPIC


def test_the_leader_epoch_is_fenced_and_told(shared: Running, topic: str) -> None:
    shared.create(topic)
    shared.publish(topic, b"x")
    current = shared.partition(topic).leader_epoch
    assert ask(shared, topic, LATEST, epoch=current + 1).error_code == UNKNOWN_EPOCH
    assert ask(shared, topic, LATEST, epoch=current).leader_epoch == current
    assert ask(shared, topic, 0).leader_epoch == current
    shared.on_loop(lambda: shared.partition(topic).become_leader(current + 1, None))
    assert ask(shared, topic, LATEST, epoch=current).error_code == FENCED_EPOCH
