"""A disk that refuses: who is told what, who is not disturbed, and when it is over."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from typing import Any

import pytest

from postroad.wire.messages import list_offsets, offset_commit, produce
from tests.broker.failing_disk import log_of, use_failing_disk
from tests.broker.fetching import offsets_of
from tests.broker.harness import WAIT_S, Running
from tests.clients.wait import until
from tests.faults.raw import RawConnection, batch_of, frame, produce_request, request_content, send_batch

NOT_LEADER, NOT_AVAILABLE, STORAGE_ERROR = 6, 15, 56


def pipelined(running: Running, *topics: str, acks: int = -1) -> list[Any]:
    """One request for each topic, all sent before the first answer is read."""
    with running.connect() as connection:
        together = [
            frame(request_content(produce, 9, produce_request(topic, batch_of(b"x"), acks=acks), n))
            for n, topic in enumerate(topics)
        ]
        connection.send(b"".join(together))
        answers = [produce.decode_response(connection.receive()[5:], 9) for _ in topics]
    return [answer.responses[0].partition_responses[0] for answer in answers]


def codes(answers: list[Any]) -> list[int]:
    return [answer.error_code for answer in answers]


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("flush", ["sync", "os"])
def test_a_full_disk_refuses_one_partition_and_heals_without_a_restart(
    start: Callable[..., Running], flush: str, acks: int
) -> None:
    running = start(durability_flush=flush)
    disk = use_failing_disk(running)
    running.create("full")
    running.create("fine")
    assert codes(pipelined(running, "full", "fine", acks=acks)) == [0, 0]
    disk.fail("append", log_of(running, "full"), errno.ENOSPC)
    refused = pipelined(running, "full", "fine", "full", "fine", acks=acks)
    assert codes(refused) == [STORAGE_ERROR, 0, STORAGE_ERROR, 0]
    assert [a.base_offset for a in refused] == [-1, 1, -1, 2]
    until(lambda: offsets_of(running.fetch("full", 0)) == [0], "reads go on")
    disk.heal()
    healed = pipelined(running, "full", acks=acks)
    assert (codes(healed), healed[0].base_offset) == ([0], 1)
    until(lambda: offsets_of(running.fetch("full", 0)) == [0, 1], "what was refused left no trace")


def test_a_message_with_acks_zero_on_a_full_disk_ends_its_connection(start: Callable[..., Running]) -> None:
    running = start()
    disk = use_failing_disk(running)
    running.create("full")
    disk.fail("append", log_of(running, "full"), errno.ENOSPC)
    with running.connect() as connection:
        silent = produce_request("full", batch_of(b"x"), acks=0)
        connection.send(frame(request_content(produce, 9, silent, 1)))
        assert connection.is_closed_by_broker()


def test_a_repeated_batch_after_a_full_disk_is_taken_once(start: Callable[..., Running]) -> None:
    running = start()
    disk = use_failing_disk(running)
    running.create("full")
    batches = [batch_of(b"%d" % n, producer_id=9, producer_epoch=0, base_sequence=n) for n in range(3)]
    with running.connect() as connection:
        assert send_batch(connection, "full", batches[0]).base_offset == 0
        disk.fail("append", log_of(running, "full"), errno.ENOSPC)
        assert send_batch(connection, "full", batches[1]).error_code == STORAGE_ERROR
        disk.heal()
        assert send_batch(connection, "full", batches[2]).error_code != 0, "the one before is missing"
        assert send_batch(connection, "full", batches[1]).base_offset == 1
        assert send_batch(connection, "full", batches[2]).base_offset == 2


def test_a_failed_write_is_final_for_its_log_and_for_no_other(start: Callable[..., Running]) -> None:
    running = start()
    disk = use_failing_disk(running)
    running.create("broken")
    running.create("fine")
    running.publish("broken", b"kept")
    disk.fail("append", log_of(running, "broken"), errno.EIO)
    assert codes(pipelined(running, "broken", "fine")) == [STORAGE_ERROR, 0]
    disk.heal()
    assert codes(pipelined(running, "broken", "fine")) == [STORAGE_ERROR, 0]
    assert offsets_of(running.fetch("broken", 0)) == [0]


def test_a_failed_sync_is_told_to_all_who_wait_and_never_acknowledged(start: Callable[..., Running]) -> None:
    running = start(durability_flush="sync")
    disk = use_failing_disk(running)
    running.create("broken")
    running.create("fine")
    disk.gate.clear()
    disk.fail("sync", log_of(running, "broken"), errno.EIO)
    with running.connect() as first, running.connect() as second:
        for connection in (first, second):
            request = produce_request("broken", batch_of(b"x"))
            connection.send(frame(request_content(produce, 9, request, 1)))
        until(lambda: len(running.partition("broken").producers.waiting) == 2, "both wait")
        disk.gate.set()
        for connection in (first, second):
            answer = produce.decode_response(connection.receive()[5:], 9)
            [refused] = answer.responses[0].partition_responses
            assert refused.error_code == STORAGE_ERROR
            assert "will show whether this was kept" in str(refused.error_message), (
                "it may be there after a restart"
            )
    disk.heal()
    assert codes(pipelined(running, "broken", "fine")) == [STORAGE_ERROR, 0], "it stays offline"
    found = running.fetch("broken", 0)
    assert (found.high_watermark, offsets_of(found)) == (0, [])


def test_a_sync_that_finds_no_descriptor_is_tried_again_until_it_is_done(
    start: Callable[..., Running],
) -> None:
    running = start(durability_flush="sync")
    disk = use_failing_disk(running)
    running.create("short")
    disk.fail("sync", log_of(running, "short"), errno.EMFILE)
    with running.connect() as connection:
        connection.send(frame(request_content(produce, 9, produce_request("short", batch_of(b"x")), 1)))
        until(lambda: disk.refusals >= 2, "it is tried again")
        assert running.fetch("short", 0).high_watermark == 0, "nobody sees what is not durable"
        disk.heal()
        answer = produce.decode_response(connection.receive()[5:], 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    assert offsets_of(running.fetch("short", 0)) == [0]


def send_to(connection: RawConnection, topic: str) -> None:
    connection.send(frame(request_content(produce, 9, produce_request(topic, batch_of(b"x")), 1)))


def answered(connection: RawConnection) -> tuple[int, int]:
    answer = produce.decode_response(connection.receive()[5:], 9)
    partition = answer.responses[0].partition_responses[0]
    return partition.error_code, partition.base_offset


def test_what_was_synced_while_a_later_write_failed_is_acknowledged(start: Callable[..., Running]) -> None:
    running = start(durability_flush="sync")
    disk = use_failing_disk(running)
    running.create("broken")
    partition = running.partition("broken")
    disk.gate.clear()
    with running.connect() as synced, running.connect() as unsynced, running.connect() as refused:
        send_to(synced, "broken")
        until(lambda: partition.syncing and len(partition.producers.waiting) == 1, "its sync is under way")
        send_to(unsynced, "broken")
        until(lambda: len(partition.producers.waiting) == 2, "it waits for the next sync")
        disk.fail("append", log_of(running, "broken"), errno.EIO)
        send_to(refused, "broken")
        assert answered(refused) == (STORAGE_ERROR, -1)
        disk.gate.set()
        assert answered(synced) == (0, 0)
        assert answered(unsynced) == (STORAGE_ERROR, -1), "there won't be another sync"
    found = running.fetch("broken", 0)
    assert (found.high_watermark, offsets_of(found)) == (1, [0])


def test_those_who_wait_for_a_sync_that_was_put_off_are_told_when_a_write_fails_for_good(
    start: Callable[..., Running],
) -> None:
    running = start(durability_flush="sync")
    disk = use_failing_disk(running)
    running.create("broken")
    disk.fail("sync", log_of(running, "broken"), errno.EMFILE)
    with running.connect() as waiting, running.connect() as refused:
        send_to(waiting, "broken")
        until(lambda: disk.refusals >= 1, "the sync is put off")
        disk.fail("append", log_of(running, "broken"), errno.EIO)
        send_to(refused, "broken")
        assert answered(refused) == (STORAGE_ERROR, -1)
        assert answered(waiting) == (STORAGE_ERROR, -1)


def test_while_one_sync_runs_others_gather_for_the_next(start: Callable[..., Running]) -> None:
    running = start(durability_flush="sync")
    disk = use_failing_disk(running)
    running.create("t")
    partition = running.partition("t")
    disk.gate.clear()
    connections = [running.connect() for _ in range(10)]
    for connection in connections:
        connection.send(frame(request_content(produce, 9, produce_request("t", batch_of(b"x")), 1)))
    until(lambda: len(partition.producers.waiting) == 10, "all wait")
    disk.gate.set()
    for connection in connections:
        answer = produce.decode_response(connection.receive()[5:], 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        connection.socket.close()
    assert partition.high_watermark == 10


def test_a_slow_sync_holds_up_nobody_else(start: Callable[..., Running]) -> None:
    running = start(durability_flush="sync")
    disk = use_failing_disk(running)
    running.create("slow")
    disk.gate.clear()
    with running.connect() as waiting:
        waiting.send(frame(request_content(produce, 9, produce_request("slow", batch_of(b"x")), 1)))
        until(lambda: running.partition("slow").syncing, "the sync runs")
        running.node.replicas._disk = type(running.node.replicas._disk)()
        running.create("quick")
        assert running.publish("quick", b"x") == 0
        assert running.fetch("quick", 0).high_watermark == 1
        disk.gate.set()
        assert produce.decode_response(waiting.receive()[5:], 9)


def test_a_log_that_can_not_be_opened_is_offline_and_comes_back(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.broker.replicas.REOPEN_S", 0.05)
    running = start()
    disk = use_failing_disk(running)
    disk.fail("open", "00000.log", errno.EIO)
    running.create("offline")
    assert codes(pipelined(running, "offline")) == [STORAGE_ERROR]
    assert running.fetch("offline", 0).error_code == STORAGE_ERROR
    assert running.node.partitions.offline() == [("offline", 0)]
    disk.heal()
    until(lambda: not running.node.partitions.offline(), "it is opened again")
    assert running.publish("offline", b"x") == 0


def test_a_topic_deleted_while_its_log_is_reopened_stays_deleted(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.broker.replicas.REOPEN_S", 0.05)
    running = start()
    disk = use_failing_disk(running)
    disk.fail("open", "00000.log", errno.EIO)
    topic_id = running.create("doomed")
    name = running.node.image.topics["doomed"].id_text
    disk.gate.clear()
    opening = running.node.replicas._open

    async def slowly(*given: Any, **more: Any) -> None:
        disk.heal()
        assert running.node.image.topics_by_id.pop(topic_id)  # as if the deletion came in between
        await opening(*given, **more)

    monkeypatch.setattr(running.node.replicas, "_open", slowly)
    disk.gate.set()
    directory = running.node.directory.logs / f"{name}-0"
    until(lambda: topic_id not in running.node.image.topics_by_id, "it is being reopened")
    until(lambda: not directory.exists(), "the directory goes again")
    assert running.node.partitions.find("doomed", 0) is None
    monkeypatch.undo()


def test_a_failed_read_is_told_as_such_by_list_offsets(start: Callable[..., Running]) -> None:
    running = start(durability_flush="os")
    disk = use_failing_disk(running)
    running.create("unreadable")
    running.publish("unreadable", b"x")
    disk.fail("read", log_of(running, "unreadable"), errno.EIO)
    assert ends_code(running, "unreadable") == STORAGE_ERROR
    disk.heal()


def ends_code(running: Running, topic: str) -> int:
    """What the question for a topic's end is answered with."""
    partition = list_offsets.ListOffsetsPartition(0, -1, 0)
    request = list_offsets.ListOffsetsRequest(-1, 0, [list_offsets.ListOffsetsTopic(topic, [partition])])
    return int(running.call(list_offsets, 7, request).topics[0].partitions[0].error_code)


def test_a_topic_that_is_told_of_while_its_log_is_being_opened_is_not_unknown(
    start: Callable[..., Running],
) -> None:
    running = start(durability_flush="os")
    disk = use_failing_disk(running)
    disk.door.clear()
    creating = threading.Thread(target=running.create, args=["slow"])
    creating.start()
    try:
        until(lambda: "slow" in running.node.image.topics, "metadata tell of it")
        assert ends_code(running, "slow") == NOT_LEADER
        assert running.fetch("slow", 0).error_code == NOT_LEADER
        assert codes(pipelined(running, "slow")) == [NOT_LEADER]
        assert running.node.partitions.offline() == []
    finally:
        disk.door.set()
        creating.join(WAIT_S)
    assert codes(pipelined(running, "slow")) == [0]


# --- what the node does by itself


def test_one_failed_rename_does_not_end_the_compaction_of_a_log(start: Callable[..., Running]) -> None:
    running = start(durability_flush="os", storage_compaction_check_ms=20)
    disk = use_failing_disk(running)
    running.create("state", cleanup_policy="compact", segment_bytes=1000, min_cleanable_dirty_ratio="0.01")
    disk.fail("rename", ".swap", errno.EIO)
    running.publish("state", *[b"x" * 100] * 40)
    sync_now(running, "state")
    until(lambda: disk.refusals >= 2, "the old files can't go, again and again")
    disk.heal()
    log = running.partition("state").log
    until(lambda: log.unfinished_compaction is None, "they are gone")
    running.publish("state", *[b"x" * 100] * 40)
    sync_now(running, "state")
    until(lambda: log.size_bytes < 3000, "it is compacted as before")


def sync_now(running: Running, topic: str) -> None:
    """Only what is synced is compacted."""
    partition = running.partition(topic)
    running.on_loop(lambda: partition.change_flush("sync", 0))
    until(lambda: partition.log.synced_offset == partition.log.written_offset, "it is synced")


def test_a_deletion_that_meets_an_error_is_tried_again(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.broker.tasks.RETRY_FIRST_S", 0.02)
    running = start(durability_flush="os")
    disk = use_failing_disk(running)
    running.create("doomed")
    running.publish("doomed", b"x")
    directory = running.node.directory.logs / log_of(running, "doomed")
    disk.fail("remove", log_of(running, "doomed").rstrip("/"), errno.EIO)
    assert running.delete("doomed") == 0
    until(lambda: disk.refusals >= 2, "it is tried again")
    assert directory.exists()
    disk.heal()
    until(lambda: not directory.exists(), "the files go")
    until(lambda: not running.node.image.deleted, "the store forgets it")


def test_files_of_old_segments_that_could_not_be_removed_are_removed_later(
    start: Callable[..., Running],
) -> None:
    running = start(durability_flush="os", storage_retention_check_ms=20)
    disk = use_failing_disk(running)
    running.create("old", segment_bytes=1000, retention_bytes=1000)
    directory = running.node.directory.logs / log_of(running, "old")
    disk.fail("remove", log_of(running, "old"), errno.EIO)
    running.publish("old", *[b"x" * 100] * 40)
    until(lambda: disk.refusals >= 3, "files can't be removed")
    disk.heal()
    until(lambda: len(list(directory.glob("*.log"))) <= 2, "they are gone")


def test_segments_that_are_full_are_synced_also_where_the_operating_system_may_choose(
    start: Callable[..., Running],
) -> None:
    """Or a start after a crash would have to read and to write anew all that came since the last stop."""
    running = start(durability_flush="os")
    running.create("t", segment_bytes=1000)
    log = running.partition("t").log
    for _ in range(40):
        running.publish("t", b"x" * 100)
    until(lambda: log.checkpoint.current.point.segment > 0, "the point has left the first segment")
    assert log.checkpoint.current.point.offset <= log.written_offset


# --- the coordinator's own log


def commit_request(n: int) -> Any:
    partition = offset_commit.OffsetCommitRequestPartition(0, n)
    topic = offset_commit.OffsetCommitRequestTopic("t", partitions=[partition])
    return offset_commit.OffsetCommitRequest("g", -1, "", -1, None, [topic])


def commit(running: Running, n: int) -> int:
    answer = running.call(offset_commit, 9, commit_request(n))
    return int(answer.topics[0].partitions[0].error_code)


def test_a_commit_on_a_full_disk_is_refused_and_the_next_one_is_taken(start: Callable[..., Running]) -> None:
    running = start()
    running.create("t")
    log = running.partition("__consumer_offsets").log
    disk = use_failing_disk(running)
    running.on_loop(lambda: setattr(log, "disk", disk))
    running.on_loop(lambda: setattr(log.active, "_file", disk.open(log.active.path)))
    disk.fail("append", ".log", errno.ENOSPC)
    assert commit(running, 5) == NOT_AVAILABLE
    disk.heal()
    assert commit(running, 6) == 0


def test_a_partition_that_can_not_be_written_is_said_once_and_once_when_it_is_over(
    start: Callable[..., Running], caplog: pytest.LogCaptureFixture
) -> None:
    running = start()
    disk = use_failing_disk(running)
    running.create("full")
    disk.fail("append", log_of(running, "full"), errno.ENOSPC)
    assert [codes(pipelined(running, "full")) for _ in range(5)] == [[STORAGE_ERROR]] * 5
    disk.heal()
    assert codes(pipelined(running, "full", "full")) == [0, 0]
    said = [line.getMessage() for line in caplog.records if line.name.endswith("broker.partition")]
    assert [line.partition(":")[0] for line in said] == [
        "partition full-0 can't be written",
        "partition full-0 can be written again, after 5 failures",
    ]


def test_state_that_can_not_be_written_is_said_once_and_once_when_it_is_over(
    start: Callable[..., Running], caplog: pytest.LogCaptureFixture
) -> None:
    running = start()
    running.create("t")
    log = running.partition("__consumer_offsets").log
    disk = use_failing_disk(running)
    running.on_loop(lambda: setattr(log.active, "_file", disk.open(log.active.path)))
    disk.fail("append", ".log", errno.ENOSPC)
    assert [commit(running, n) for n in range(5)] == [NOT_AVAILABLE] * 5
    disk.heal()
    assert [commit(running, n) for n in range(5)] == [0] * 5
    disk.fail("append", ".log", errno.EIO)
    assert [commit(running, n) for n in range(5)] == [NOT_AVAILABLE] * 5, "and it is offline"
    said = [line.getMessage() for line in caplog.records if line.name.endswith("record_log")]
    state = "the state in __consumer_offsets-0 can"
    assert [line[: len(state) + 17] for line in said] == [
        f"{state}'t be written: Wr",
        f"{state} be written again",
        f"{state}'t be written: Wr",
    ]
    assert said[1].endswith("after 5 failures")


def test_hundreds_of_requests_that_wait_when_the_log_fails_are_all_told(
    start: Callable[..., Running],
) -> None:
    from postroad.wire.messages import delete_groups

    running = start()
    running.create("t")
    log = running.partition("__consumer_offsets").log
    disk = use_failing_disk(running)
    running.on_loop(lambda: setattr(log.active, "_file", disk.open(log.active.path)))
    assert commit(running, 1) == 0
    disk.gate.clear()
    disk.fail("sync", ".log", errno.EIO)
    with running.connect() as connection:
        for n in range(600):  # deletions run alone: all but the first wait
            request = delete_groups.DeleteGroupsRequest(["g"])
            connection.send(frame(request_content(delete_groups, 2, request, n)))
        [coordinator] = running.node.groups.all()
        until(lambda: "g" in coordinator._queues and len(coordinator._queues["g"].waiting) == 599, "all wait")
        disk.gate.set()
        for _ in range(600):
            answer = delete_groups.decode_response(connection.receive()[5:], 2)
            assert answer.results[0].error_code == NOT_AVAILABLE
    disk.heal()
