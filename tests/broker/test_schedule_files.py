"""Delayed messages are known again after a start without reading all of them, if the log is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from postroad.broker.subscriptions import scanner, schedule_file
from postroad.queues.update import Key
from postroad.wire.records import Record, encode_batch
from postroad.wire.scan import scan as real_scan
from tests.broker.harness import Running, running_node
from tests.broker.test_queues import GROUP, configure
from tests.clients.share_session import Error, Fate, one, session
from tests.clients.wait import until
from tests.faults.raw import send_batch

DELAYED, BATCH = 2_000, 100
DAY_MS = 86_400_000
ROW_BYTES = 20  # that a delayed message takes in the file


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule_file, "DELAYED_MIN", 200)
    monkeypatch.setattr(scanner, "SCAN_BYTES", 1 << 14)  # so that what was written lags little behind


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes of the log each look took."""
    sizes: list[int] = []

    def scan(data: bytes, *given: object, **more: object) -> object:
        sizes.append(len(data))
        return real_scan(data, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(scanner, "scan", scan)
    return sizes


def publish_delayed(running: Running, count: int = DELAYED) -> None:
    at = running.began_ms + DAY_MS
    with running.connect() as connection:
        for first in range(0, count, BATCH):
            headers = [[("postroad-deliver-at", b"%d" % (at + first + n))] for n in range(BATCH)]
            records = [Record(n, running.began_ms, None, b"later", headers[n]) for n in range(BATCH)]
            assert send_batch(connection, "jobs", encode_batch(records)).error_code == 0


@contextmanager
def with_schedule(directory: Path) -> Iterator[tuple[Running, Path]]:
    """A node with delayed messages, a due one behind them, and a schedule that was written down."""
    with running_node(directory) as running:
        topic_id = running.create("jobs")
        configure(running, postroad_topics="jobs")
        publish_delayed(running)
        running.publish("jobs", b"due")
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [DELAYED]
        queue = running.node.subscriptions.queue_in_use(Key(GROUP, topic_id, 0))
        assert queue is not None
        assert queue.core.delayed == DELAYED
        yield running, until(lambda: written_schedule(directory, DELAYED), "the schedule is written")


def written_schedule(directory: Path, delayed: int) -> Path | None:
    """The file, when it tells of all but the quarter that may have come since it was written."""
    found = [path for path in schedules(directory) if path.stat().st_size >= ROW_BYTES * delayed * 0.7]
    return found[0] if found else None


def schedules(directory: Path) -> list[Path]:
    found = directory / "schedules"
    return [path for path in found.iterdir() if not path.suffix] if found.is_dir() else []


def test_delayed_messages_are_known_after_a_start_without_reading_all_of_them(
    tmp_path: Path, scanned: list[int]
) -> None:
    with with_schedule(tmp_path):
        everything = sum(scanned)
    scanned.clear()
    with running_node(tmp_path) as running:
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [DELAYED]
            assert member.acknowledge(one(DELAYED, Fate.ACCEPT)) == Error.NONE
        assert sum(scanned) < everything / 2
        assert delayed(running) == DELAYED


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:30])


def of_another_log(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8] ^= 1  # the CRC of its last batch
    path.write_bytes(data)


@pytest.mark.parametrize("spoil", [damage, cut, of_another_log])
def test_schedule_that_does_not_fit_is_passed_over(
    tmp_path: Path, scanned: list[int], spoil: Callable[[Path], None]
) -> None:
    with with_schedule(tmp_path) as (_, path):
        everything = sum(scanned)
    spoil(path)
    scanned.clear()
    with running_node(tmp_path) as running:
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [DELAYED]
        assert sum(scanned) >= everything * 0.9
        assert delayed(running) == DELAYED


def test_after_a_seek_the_schedule_of_before_says_nothing(tmp_path: Path) -> None:
    with with_schedule(tmp_path) as (running, _):
        topic_id = running.node.image.topics["jobs"].id
        running.run(running.node.subscriptions.administration.reset(Key(GROUP, topic_id, 0), DELAYED - 10))
    with running_node(tmp_path) as running:
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [DELAYED]
        assert delayed(running) == 10


def test_subscription_made_anew_gets_what_the_one_before_had_accepted(tmp_path: Path) -> None:
    with with_schedule(tmp_path) as (running, _):
        administration = running.node.subscriptions.administration
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [DELAYED]
            assert member.acknowledge(one(DELAYED, Fate.ACCEPT)) == Error.NONE
        publish_delayed(running)
        running.publish("jobs", b"due, too")
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [2 * DELAYED + 1]
        until(lambda: written_schedule(tmp_path, 2 * DELAYED), "it is written without what is done")
        running.run(administration.remove(GROUP, running.node.image.topics["jobs"]))
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert member.fetch_some().offsets == [DELAYED]


def test_schedules_of_deleted_topics_are_removed_at_the_next_start(tmp_path: Path) -> None:
    with with_schedule(tmp_path) as (running, path):
        running.delete("jobs")
        path.with_suffix(".new").write_bytes(b"half")
    with running_node(tmp_path):
        assert list((tmp_path / "schedules").iterdir()) == []


def test_what_can_not_be_removed_from_the_schedules_keeps_no_node_from_its_start(tmp_path: Path) -> None:
    (tmp_path / "schedules" / "of somebody else").mkdir(parents=True)
    with running_node(tmp_path) as running:
        assert running.create("jobs")
    (tmp_path / "schedules" / "link").symlink_to(tmp_path)
    with running_node(tmp_path) as running:
        assert running.create("more")
    assert sorted(path.name for path in (tmp_path / "schedules").iterdir()) == ["link", "of somebody else"]


def delayed(running: Running) -> int:
    topic_id = running.node.image.topics["jobs"].id
    queue = running.node.subscriptions.queue_in_use(Key(GROUP, topic_id, 0))
    assert queue is not None
    return running.on_loop(lambda: queue.core.delayed)
