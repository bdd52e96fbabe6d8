"""Start, stop and crash: what is answered, what is left, and what a restart finishes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postroad.wire.messages import find_coordinator, offset_commit, produce
from tests.broker.failing_disk import put_back, use_failing_disk
from tests.broker.fetching import fetch_request, offsets_of, receive, send, wanted
from tests.broker.harness import WAIT_S, Running, running_node
from tests.clients.wait import until
from tests.faults.raw import Closed, batch_of, frame, produce_request, request_content, send_batch
from tests.simulator.simulated_node import SimulatedNode

OFFSETS = "__consumer_offsets"
NOT_AVAILABLE = 15


# --- stopping


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop waits longer for what is under way than a thread may be held up."""
    monkeypatch.setattr("postroad.broker.node.DRAIN_S", 10.0)


@pytest.mark.usefixtures("patient")
def test_a_stop_answers_what_is_under_way_and_refuses_what_comes(start: Callable[..., Running]) -> None:
    running = start(durability_flush="sync")
    disk = use_failing_disk(running)
    running.create("t")
    disk.gate.clear()
    with running.connect() as writer, running.connect() as reader:
        writer.send(frame(request_content(produce, 9, produce_request("t", batch_of(b"x")), 1)))
        send(reader, fetch_request("t", wanted(), wait_ms=60_000))
        until(lambda: running.partition("t").producers, "the produce waits for its sync")
        until(lambda: running.partition("t").readers, "the fetch waits for it")
        threading.Timer(0.1, disk.gate.set).start()
        running.stop()
        answer = produce.decode_response(writer.receive()[5:], 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert receive(reader)
        with pytest.raises((Closed, OSError)):
            writer.receive()
    with pytest.raises(OSError, match="refused"):
        running.connect()


def test_a_stop_does_not_wait_for_clients_that_wait_for_ever(start: Callable[..., Running]) -> None:
    running = start()
    running.create("t")
    with running.connect() as reader:
        send(reader, fetch_request("t", wanted(), wait_ms=60_000))
        until(lambda: running.partition("t").readers, "it waits")
        running.stop()  # which has to be done within less than a minute


def test_many_idle_partitions_hold_up_neither_a_stop_nor_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs: list[int] = []
    with running_node(tmp_path) as running:
        running.create("wide", partitions=300)
        for name in ("fsync", "fdatasync"):
            count_calls(monkeypatch, name, syncs)
        began = time.process_time()  # others may be in the way, but they don't work for us
    assert time.process_time() - began < 1.2
    began = time.process_time()
    with running_node(tmp_path) as running:
        assert time.process_time() - began < 1.8
        assert len(syncs) < 100, "nothing was written to them"
        assert running.publish("wide", b"x", partition=299) == 0


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str, calls: list[int]) -> None:
    """How often this function of `os` was called is the list's length."""
    real = getattr(os, name)

    def counted(descriptor: int) -> None:
        calls.append(descriptor)
        real(descriptor)

    monkeypatch.setattr(os, name, counted)


@pytest.mark.usefixtures("patient")
def test_a_stop_under_load_loses_nothing_that_was_acknowledged(start: Callable[..., Running]) -> None:
    running = start(durability_flush="sync")
    running.create("t")
    acknowledged: list[int] = []

    def produce_on() -> None:
        with running.connect() as connection:
            try:
                while True:
                    answer = send_batch(connection, "t", batch_of(b"x"))
                    if answer.error_code:
                        return
                    acknowledged.append(answer.base_offset)
            except (Closed, OSError):
                return

    writers = [threading.Thread(target=produce_on) for _ in range(4)]
    for writer in writers:
        writer.start()
    until(lambda: len(acknowledged) > 50, "messages come")
    running.stop()
    for writer in writers:
        writer.join(WAIT_S)
        assert not writer.is_alive()
    assert (running.node.directory.path / "clean-shutdown").exists()
    running.start()
    end = running.fetch("t", 0).high_watermark
    assert sorted(acknowledged) == list(range(len(acknowledged)))
    assert end >= len(acknowledged)


def test_a_clean_restart_keeps_everything_and_the_leader_epoch(start: Callable[..., Running]) -> None:
    running = start()
    running.create("t", 3)
    running.publish("t", b"x", b"y", partition=2)
    epoch = running.partition("t", 2).leader_epoch
    running.stop()
    running.start()
    assert running.partition("t", 2).leader_epoch == epoch
    assert offsets_of(running.fetch("t", 0, 2)) == [0, 1]


def test_a_node_leaves_no_threads_behind(tmp_path: Path) -> None:
    before = threading.active_count()
    with running_node(tmp_path) as running:
        running.create("t")
        running.publish("t", b"x")
    assert threading.active_count() <= before


# --- the groups' own topic


def coordinator_code(running: Running, group: str = "g") -> int:
    request = find_coordinator.FindCoordinatorRequest(group, 0)
    return int(running.call(find_coordinator, 2, request).error_code)


def commit(running: Running, group: str, offset: int) -> int:
    partition = offset_commit.OffsetCommitRequestPartition(0, offset)
    topic = offset_commit.OffsetCommitRequestTopic("t", partitions=[partition])
    request = offset_commit.OffsetCommitRequest(group, -1, "", -1, None, [topic])
    return int(running.call(offset_commit, 9, request).topics[0].partitions[0].error_code)


def test_a_group_whose_partition_is_offline_waits_and_the_others_are_served(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.broker.replicas.REOPEN_S", 0.1)
    running = start(groups_offsets_partitions=3)
    running.create("t")
    groups = [f"group-{n}" for n in range(12)]
    assert [commit(running, group, 5) for group in groups] == [0] * 12
    directory = running.node.directory.logs / f"{running.node.image.topics[OFFSETS].id_text}-1"
    running.stop()
    aside = directory.with_name("aside")
    shutil.move(directory, aside)
    directory.write_text("not a directory")
    running.start()
    codes = [coordinator_code(running, group) for group in groups]
    assert set(codes) == {0, NOT_AVAILABLE}
    assert [commit(running, group, 6) for group in groups] == codes
    put_back(running, aside, directory)
    until(lambda: [commit(running, group, 7) for group in groups] == [0] * 12, "all are served again")


def test_a_node_starts_though_its_groups_can_not_be_read(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.broker.replicas.REOPEN_S", 0.1)
    running = start()
    running.create("t")
    directory = running.node.directory.logs / f"{running.node.image.topics[OFFSETS].id_text}-0"
    running.stop()
    aside = directory.with_name("aside")
    shutil.move(directory, aside)
    directory.write_text("not a directory")
    running.start()
    assert coordinator_code(running) == NOT_AVAILABLE
    running.publish("t", b"messages are served")
    put_back(running, aside, directory)
    until(lambda: coordinator_code(running) == 0, "groups are served again")


# --- housekeeping


def test_a_compacted_log_is_compacted_again_and_again(start: Callable[..., Running]) -> None:
    running = start(durability_flush="sync", storage_compaction=False)  # but when it is asked to
    running.create("t", cleanup_policy="compact", segment_bytes=2000, min_cleanable_dirty_ratio=0.01)
    partition = running.partition("t")
    for round_number in range(3):
        running.publish("t", *[b"x" * 500] * 20)
        size = partition.log.size_bytes
        running.run(running.node.housekeeping.compact(partition))
        assert partition.log.size_bytes < size, f"round {round_number}"
        assert all(segment.renamed for segment in partition.log.segments)
    assert running.publish("t", b"last") == 60


def test_a_topic_can_be_deleted_while_it_is_compacted(start: Callable[..., Running]) -> None:
    from postroad.log import compaction

    running = start()
    running.create("t", cleanup_policy="compact", segment_bytes=2000, min_cleanable_dirty_ratio=0.01)
    running.publish("t", *[b"x" * 500] * 20)
    partition, held, reached = running.partition("t"), threading.Event(), threading.Event()
    rewrite = compaction.CompactionJob._rewrite

    def slowly(job: Any, *given: Any) -> None:
        reached.set()
        held.wait(WAIT_S)
        rewrite(job, *given)

    compaction.CompactionJob._rewrite = slowly  # type: ignore[method-assign, assignment]
    try:
        job = running.node.tasks.start
        running.on_loop(lambda: job(running.node.housekeeping.compact(partition), "compact"))
        assert reached.wait(WAIT_S)
        deleting = threading.Thread(target=running.delete, args=("t",))
        deleting.start()
        until(lambda: "t" not in running.node.image.topics, "it is being deleted")
        held.set()
        deleting.join(WAIT_S)
        assert not deleting.is_alive()
    finally:
        compaction.CompactionJob._rewrite = rewrite  # type: ignore[method-assign]
    running.create("t")
    assert running.publish("t", b"anew") == 0


def test_old_segments_go_by_time_and_by_size(simulate: Callable[..., SimulatedNode]) -> None:
    running = simulate(storage_retention_check_ms=600_000)
    running.create("small", segment_bytes=1000, retention_bytes=2500)
    running.publish("small", *[b"x" * 700] * 10)
    hour_s = 3600.0
    running.create("short", segment_bytes=1000, retention_ms=int(2 * hour_s * 1000))
    running.publish("short", *[b"x" * 700] * 5)
    running.run_for(hour_s)
    small, short = running.partition("small").log, running.partition("short").log
    assert small.size_bytes < 3500, "it shrinks"
    assert small.start_offset > 0
    assert short.start_offset == 0
    running.run_for(2 * hour_s)
    assert short.start_offset == 5, "all of it goes"
    assert running.publish("short", b"x") == 5


# --- crashes inside creating and deleting a topic


def crash(data: Path, where: str, what: str) -> None:
    """A node in a process of its own kills itself when it reaches `where` while it does `what`."""
    code = f"""
        import asyncio, os, signal
        from postroad.broker.node import Node
        from postroad.broker.replicas import Replicas
        from postroad.broker.topics import Topics
        from postroad.config import load

        def killed(*_, **__):
            os.kill(os.getpid(), signal.SIGKILL)

        async def main():
            node = Node(load(environment={{}}, flags={{"kafka.port": "0", "data.dir": {str(data)!r}}}))
            await node.start()
            if "kept" not in node.image.topics:
                await node.topic_changes.create("kept")
            if {what!r} == "delete":
                await node.topic_changes.create("doomed", partitions=3)
            {where} = killed
            if {what!r} == "create":
                await node.topic_changes.create("born", partitions=3)
            else:
                await node.topic_changes.delete(node.image.topics["doomed"])
            await asyncio.sleep(60)

        asyncio.run(main())
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL


def directories(running: Running, topic_id: str) -> list[str]:
    return [name for name in os.listdir(running.node.directory.logs) if name.startswith(topic_id)]


@pytest.mark.parametrize("where", ["Topics._take", "Replicas._open_all", "Replicas._open"])
def test_a_topic_whose_creation_was_cut_short_is_there_after_a_restart(tmp_path: Path, where: str) -> None:
    crash(tmp_path, where, "create")
    with running_node(tmp_path) as running:
        assert running.publish("born", b"x", partition=2) == 0
        assert running.publish("kept", b"x") == 0
        assert len(directories(running, running.node.image.topics["born"].id_text)) == 3


@pytest.mark.parametrize(
    "where", ["Topics._take", "Replicas._remove", "Replicas.close_partition", "Replicas._try_deletion"]
)
def test_a_topic_whose_deletion_was_cut_short_is_gone_after_a_restart(tmp_path: Path, where: str) -> None:
    crash(tmp_path, where, "delete")
    assert len(os.listdir(tmp_path / "logs")) == 1 + 1 + 3, "an internal topic, what is kept, what is doomed"
    with running_node(tmp_path) as running:
        assert "doomed" not in running.node.image.topics
        until(lambda: len(os.listdir(tmp_path / "logs")) == 1 + 1, "its directories go")
        until(lambda: not running.node.image.deleted, "the store forgets it")
        assert running.publish("kept", b"x") == 0
        running.create("doomed")
        assert running.publish("doomed", b"anew") == 0
