"""The coordinator's queues: what of a group may run beside what, and that nothing is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from postroad.broker.flusher import Flusher
from postroad.broker.groups.coordinator import Coordinator, Decide
from postroad.broker.partition import Partition
from postroad.broker.turn import Turn
from postroad.errors import CoordinatorLoadInProgress, IllegalGeneration, NotCoordinator
from postroad.groups.answers import Outcome
from postroad.groups.coordinator import Groups
from postroad.groups.records import OFFSET, OffsetValue, Record, encode
from postroad.groups.requests import Topics
from postroad.groups.settings import GroupSettings
from postroad.log.disk import OsDisk
from postroad.log.partition_log import PartitionLog
from postroad.log.settings import LogSettings
from postroad.now import Now
from postroad.replication.leader import Leader
from postroad.replication.progress import LogStart
from postroad.system.clock import SystemClock
from postroad.system.workers import Threads

NO_TOPICS = Topics(0, {})


class HeldWorkers(Threads):
    """Syncs happen when the test says so."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop, 1, "held")
        self.held: list[Callable[[], None]] = []

    def run(self, job: Callable[[], object], done: Callable[[object, BaseException | None], None]) -> None:
        def now() -> None:
            job()
            done(None, None)

        self.held.append(now)

    def release(self) -> None:
        held, self.held = self.held, []
        for now in held:
            now()


class Bench:
    """A coordinator on a real log whose syncs wait for `release`."""

    def __init__(self, directory: Path) -> None:
        loop = asyncio.get_running_loop()
        self.workers = HeldWorkers(loop)
        turn = Turn(loop)
        log = PartitionLog.open(OsDisk(), str(directory), LogSettings(), 0, clean=False)
        partition = Partition("t", b"\0" * 16, 0, log, turn, Flusher(loop, self.workers))
        partition.become_leader(0, None)
        self.coordinator = Coordinator(
            partition,
            Groups(GroupSettings(), lambda: NO_TOPICS),
            SystemClock(),
            turn,
            loop,
            has_evidence=lambda: self.touch,
        )
        self.events: list[str] = []
        self.touch = True  # with the cluster

    async def load(self) -> None:
        await self.coordinator.load(self.workers)

    def decision(self, name: str, writes: bool = True, fails: Exception | None = None) -> Decide:
        """Notes when it decides; its answer is noted when it comes."""

        def decide(now: Now) -> Outcome:
            self.events.append(f"decide {name}")
            if fails is not None:
                raise fails
            outcome = Outcome(records=[offset_record(name)] if writes else [])
            outcome.reply(lambda answer: self.events.append(f"answer {name}"), None)  # type: ignore[arg-type]
            return outcome

        return decide

    def refused(self, name: str) -> Callable[[object], None]:
        return lambda answer: self.events.append(f"{type(answer).__name__} {name}")

    def alone(self, name: str, group: str = "g", **more: object) -> None:
        self.coordinator.alone(group, self.decision(name, **more), self.refused(name))  # type: ignore[arg-type]

    def shared(self, name: str, group: str = "g", **more: object) -> None:
        self.coordinator.shared(group, self.decision(name, **more), self.refused(name))  # type: ignore[arg-type]

    async def take(self) -> list[str]:
        """What has happened since the last call, once the loop has had its turn."""
        for _ in range(3):
            await asyncio.sleep(0)
        events, self.events = self.events, []
        return events

    async def release(self) -> list[str]:
        self.workers.release()
        return await self.take()


def offset_record(topic: str) -> Record:
    return encode(OFFSET, "g", topic, 0, value=OffsetValue(1, 0, 0, "", -1))


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    await made.load()
    return made


async def test_an_answer_waits_until_its_records_are_durable_and_applied(bench: Bench) -> None:
    bench.alone("a")
    assert await bench.take() == ["decide a"]
    assert bench.coordinator.groups.topics_with_offsets() == set()
    assert await bench.release() == ["answer a"]
    assert bench.coordinator.groups.topics_with_offsets() == {"a"}


async def test_what_writes_nothing_is_answered_at_once(bench: Bench) -> None:
    bench.alone("a", writes=False)
    assert await bench.take() == ["decide a", "answer a"]


async def test_decisions_that_want_to_be_alone_wait_for_each_other(bench: Bench) -> None:
    for name in "abc":
        bench.alone(name)
    assert await bench.take() == ["decide a"]
    assert await bench.release() == ["answer a", "decide b"]
    assert await bench.release() == ["answer b", "decide c"]
    assert await bench.release() == ["answer c"]


async def test_shared_ones_run_together_and_nobody_overtakes_one_that_waits(bench: Bench) -> None:
    bench.shared("a")
    bench.shared("b")
    bench.alone("c")
    bench.shared("d")
    bench.shared("e")
    assert await bench.take() == ["decide a", "decide b"]
    assert await bench.release() == ["answer a", "answer b", "decide c"]
    assert await bench.release() == ["answer c", "decide d", "decide e"]
    assert await bench.release() == ["answer d", "answer e"]


async def test_groups_do_not_wait_for_each_other(bench: Bench) -> None:
    bench.alone("a", group="one")
    bench.alone("b", group="two")
    assert await bench.take() == ["decide a", "decide b"]


async def test_a_refusal_is_told_and_the_next_in_line_follows(bench: Bench) -> None:
    bench.alone("a")
    bench.alone("b", fails=IllegalGeneration())
    bench.alone("c", writes=False)
    bench.alone("d")
    assert await bench.take() == ["decide a"]
    assert await bench.release() == [
        "answer a",
        "decide b",
        "IllegalGeneration b",
        "decide c",
        "answer c",
        "decide d",
    ]


async def test_a_defect_costs_one_request_and_not_its_group(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.alone("a", fails=KeyError("a defect"))
    assert await bench.take() == ["decide a", "UnknownServerError a"]
    bench.alone("b")
    bench.alone("c", fails=KeyError("a defect"))
    bench.alone("d")
    assert await bench.take() == ["decide b"]
    assert await bench.release() == ["answer b", "decide c", "UnknownServerError c", "decide d"]
    assert "a defect" in caplog.text


async def test_groups_with_nothing_in_flight_leave_nothing_behind(bench: Bench) -> None:
    for n in range(50):
        bench.shared(f"t{n}", group=f"g{n}")
    await bench.take()
    await bench.release()
    assert bench.coordinator._queues == {}


async def test_before_it_has_loaded_everybody_is_asked_to_come_again(tmp_path: Path) -> None:
    made = Bench(tmp_path)
    with pytest.raises(CoordinatorLoadInProgress):
        made.alone("a")
    await made.load()
    made.alone("a", writes=False)
    assert await made.take() == ["decide a", "answer a"]


async def test_loading_reads_a_large_log_in_pieces_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.broker.record_log.LOAD_BYTES", 1000)
    made = Bench(tmp_path)
    await made.load()
    for n in range(100):
        made.shared(f"topic-{n}")
        await made.take()  # a batch each: what is decided together is one batch
    await made.release()
    again = Bench(tmp_path)
    reads = 0
    workers = Threads(asyncio.get_running_loop(), 1, "load")
    read = again.coordinator.partition.log.read

    def failing_once(*given: int) -> object:
        nonlocal reads
        reads += 1
        if reads == 5:
            raise OSError(5, "for a moment")
        return read(*given)

    monkeypatch.setattr(again.coordinator.partition.log, "read", failing_once)
    with pytest.raises(OSError, match="for a moment"):
        await again.coordinator.load(workers)
    assert not again.coordinator.loaded
    await again.coordinator.load(workers)
    assert reads > 10
    assert again.coordinator.groups.topics_with_offsets() == {f"topic-{n}" for n in range(100)}
    workers.close()


async def test_groups_that_are_being_loaded_are_not_looked_at_yet(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.touch = False
    with pytest.raises(NotCoordinator):
        bench.coordinator.check_evidence()
    bench.coordinator.groups.apply(offset_record("a"))
    bench.touch = True
    bench.coordinator.check_evidence()  # its members have their full time again
    assert bench.coordinator.groups.next_deadline() is not None
    assert bench.coordinator._timer is None


async def test_what_a_coordinator_that_was_left_has_decided_is_not_decided_anew(bench: Bench) -> None:
    """It may be committed yet: another decision on the old state would contradict it in the log."""
    partition = bench.coordinator.partition
    leader = led_with_another(partition)
    bench.alone("a")
    bench.alone("b")
    assert await bench.take() == ["decide a"]
    await bench.release()
    partition.note_left(True)
    bench.coordinator.send_away()
    assert await bench.take() == ["answer a", "NotCoordinator b"], "clients look elsewhere"
    bench.alone("c")
    assert await bench.take() == []
    assert leader.fetched(2, 1, 0, 1, 1, 0)
    partition.commit(leader.watermark())
    assert await bench.take() == ["decide c"]
    assert bench.coordinator.groups.topics_with_offsets() == {"a"}, "it was committed after all"


def led_with_another(partition: Partition) -> Leader:
    """From now on it waits for another replica, node 2."""
    nodes = {"replicas": (1, 2), "isr": (1, 2), "elr": ()}
    begin = LogStart(partition.log.end_offset, partition.safe_offset, partition.high_watermark)
    leader = Leader(1, 1, [begin], **nodes, revision=1, min_insync=1, lag_ms=1_000, now_ms=0)
    partition.become_leader(1, leader)
    return leader
