"""Transactions as the wire sees them: what no client does on purpose, and a node between two steps."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from postroad.broker.transactions.coordinator import Coordinator
from postroad.broker.transactions.participants import Ending
from postroad.transactions.transaction import TransactionState
from postroad.wire.batch import TRANSACTIONAL
from postroad.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    find_coordinator,
    init_producer_id,
    list_offsets,
    list_transactions,
    offset_commit,
    offset_fetch,
    produce,
    txn_offset_commit,
)
from tests.broker.failing_disk import use_failing_disk
from tests.broker.fetching import fetch_request, only, receive, send, wanted
from tests.broker.harness import Running
from tests.clients.wait import until
from tests.faults.raw import RawConnection, batch_of, produce_request

NOT_AVAILABLE, MISSING = 15, 19
INVALID_EPOCH, INVALID_STATE, CONCURRENT, UNKNOWN_TOPIC, NOT_ATTEMPTED, UNSTABLE, FENCED = (
    47,
    48,
    51,
    3,
    55,
    88,
    90,
)
REFUSED, ABORTABLE, UNKNOWN_ID = 53, 120, 49
READ_COMMITTED = 1


class Worker:
    """A transactional producer that sends what it is told, over one connection."""

    def __init__(self, connection: RawConnection, name: str, timeout_ms: int = 60_000) -> None:
        self.connection = connection
        self.name = name
        connection.call(find_coordinator, 4, find_coordinator.FindCoordinatorRequest("", 1, [name]))
        request = init_producer_id.InitProducerIdRequest(name, timeout_ms, -1, -1)
        given = connection.call(init_producer_id, 4, request)
        self.error, self.id, self.epoch = given.error_code, given.producer_id, given.producer_epoch
        self.sequence = 0

    def add(self, *topics: str) -> list[int]:
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[add_partitions_to_txn.AddPartitionsToTxnTopic(name, [0]) for name in topics],
        )
        answer = self.connection.call(add_partitions_to_txn, 3, request)
        results = answer.results_by_topic_v3_and_below
        return [topic.results_by_partition[0].partition_error_code for topic in results]

    def write(self, topic: str, value: bytes = b"x", version: int = 9) -> int:
        code = self.begin_write(topic, value, version)()
        self.sequence += not code
        return code

    def begin_write(self, topic: str, value: bytes, version: int) -> Callable[[], int]:
        """Send a batch; what is returned waits for its error code."""
        batch = batch_of(
            value,
            attributes=TRANSACTIONAL,
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )
        request = produce_request(topic, batch)
        request.transactional_id = self.name
        answered = self.connection.begin(produce, version, request)
        return lambda: int(answered().responses[0].partition_responses[0].error_code)

    def end(self, commit: bool, connection: RawConnection | None = None) -> int:
        return int((connection or self.connection).call(end_txn, 3, self.ending(commit)).error_code)

    def ending(self, commit: bool) -> Any:
        return end_txn.EndTxnRequest(self.name, self.id, self.epoch, commit)

    def add_offsets(self, group: str) -> int:
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(self.name, self.id, self.epoch, group)
        return int(self.connection.call(add_offsets_to_txn, 3, request).error_code)

    def commit_offset(self, group: str, topic: str, offset: int) -> int:
        answer = self.connection.call(txn_offset_commit, 3, self.offsets(group, topic, offset))
        return int(answer.topics[0].partitions[0].error_code)

    def offsets(self, group: str, topic: str, offset: int) -> txn_offset_commit.TxnOffsetCommitRequest:
        return txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.id,
            producer_epoch=self.epoch,
            generation_id=-1,
            member_id="",
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    topic, [txn_offset_commit.TxnOffsetCommitRequestPartition(0, offset, -1, "")]
                )
            ],
        )


def end_of(running: Running, topic: str, isolation: int = READ_COMMITTED) -> int:
    request = list_offsets.ListOffsetsRequest(
        isolation_level=isolation,
        topics=[list_offsets.ListOffsetsTopic(topic, [list_offsets.ListOffsetsPartition(0, -1, -1)])],
    )
    return int(running.call(list_offsets, 7, request).topics[0].partitions[0].offset)


def committed_offset(running: Running, group: str, topic: str, stable: bool = False) -> tuple[int, int]:
    """(error, offset)."""
    request = offset_fetch.OffsetFetchRequest(
        groups=[
            offset_fetch.OffsetFetchRequestGroup(
                group, topics=[offset_fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
            )
        ],
        require_stable=stable,
    )
    found = running.call(offset_fetch, 8, request).groups[0].topics[0].partitions[0]
    return found.error_code, found.committed_offset


def state_of(running: Running, name: str) -> str:
    request = describe_transactions.DescribeTransactionsRequest([name])
    return str(running.call(describe_transactions, 0, request).transaction_states[0].transaction_state)


def test_a_late_end_of_an_older_connection_does_not_end_the_next_transaction(
    shared: Running, topic: str
) -> None:
    """KAFKA-17754: the EndTxn was held back by the network until its producer had gone on."""
    shared.create(topic)
    with shared.connect() as first, shared.connect() as second:
        worker = Worker(first, topic)
        assert worker.add(topic) == [0]
        assert worker.write(topic) == 0
        late = worker.ending(commit=True)
        worker.connection = second
        assert worker.end(commit=True) == 0
        assert worker.add(topic) == [0]
        assert worker.write(topic) == 0
        assert first.call(end_txn, 3, late).error_code == FENCED
        assert state_of(shared, topic) == TransactionState.ONGOING.value
        assert worker.end(commit=False) == 0


def test_a_partition_must_be_added_before_it_is_written(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Worker(connection, topic)
        assert worker.write(topic) == INVALID_STATE
        assert worker.add(topic) == [0]
        assert worker.write(topic) == 0
        assert worker.end(commit=True) == 0
        until(
            lambda: state_of(shared, topic) == TransactionState.COMPLETE_COMMIT.value,
            "its markers are written",
        )
        assert worker.write(topic) == INVALID_STATE, "it is not part of the next one"
    until(lambda: shared.partition(topic).log.end_offset == 2, "a message and a marker")


def test_partitions_are_added_all_or_none(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Worker(connection, topic)
        assert worker.add(topic, "nowhere") == [NOT_ATTEMPTED, UNKNOWN_TOPIC]
        assert worker.write(topic) == INVALID_STATE


@pytest.mark.parametrize(
    ("version", "code"), [(0, INVALID_EPOCH), (1, INVALID_EPOCH), (2, FENCED), (3, FENCED)]
)
def test_a_fenced_producer_hears_it_as_its_version_knows_it(
    shared: Running, topic: str, version: int, code: int
) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        old, new = Worker(connection, topic), Worker(connection, topic)
        assert (new.id, new.epoch) == (old.id, old.epoch + 1)
        assert connection.call(end_txn, version, old.ending(commit=True)).error_code == code
        assert new.add(topic) == [0]
        assert new.write(topic) == 0
        assert old.write(topic) == INVALID_EPOCH, "Produce knows no other"
        assert new.end(commit=True) == 0


def test_requests_wait_while_markers_are_under_way(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    running.create("t")
    held: list[Ending] = []
    begin = Ending.begin
    monkeypatch.setattr(Ending, "begin", lambda ending: held.append(ending))
    with running.connect() as connection:
        worker = Worker(connection, "w")
        worker.add("t")
        worker.write("t")
        assert worker.end(commit=True) == 0, "the verdict is durable"
        answered = connection.begin(
            init_producer_id, 4, init_producer_id.InitProducerIdRequest("w", 60_000, -1, -1)
        )
        until(lambda: held, "markers are due")
        assert state_of(running, "w") == TransactionState.PREPARE_COMMIT.value
        assert end_of(running, "t") == 0
        monkeypatch.setattr(Ending, "begin", begin)
        running.on_loop(held[0].begin)
        assert answered().error_code == 0
        assert end_of(running, "t") == 2


def test_a_request_that_waited_too_long_is_told_so(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    running.create("t")
    monkeypatch.setattr("postroad.broker.transactions.coordinator.WAIT_S", 0.05)
    monkeypatch.setattr(Ending, "begin", lambda _: None)
    with running.connect() as connection:
        worker = Worker(connection, "w")
        worker.add("t")
        worker.end(commit=True)
        assert worker.add("t") == [CONCURRENT]


def nothing(patch: pytest.MonkeyPatch, running: Running) -> None:
    """No marker is written, and the offsets stay pending."""
    patch.setattr(Ending, "begin", lambda _: None)


def one_marker(patch: pytest.MonkeyPatch, running: Running) -> None:
    """The first topic has its marker, the second has none, nor do the groups hear of it."""
    first = running.node.image.topics["a"].id
    mark_here = Ending._mark_here

    def mark_first(ending: Ending, where: tuple[bytes, int]) -> None:
        if where[0] == first:
            mark_here(ending, where)

    patch.setattr(Ending, "_mark_here", mark_first)
    patch.setattr(Ending, "_complete_offsets", lambda *_: None)


def all_but_offsets(patch: pytest.MonkeyPatch, running: Running) -> None:
    patch.setattr(Ending, "_complete_offsets", lambda *_: None)


def all_but_complete(patch: pytest.MonkeyPatch, running: Running) -> None:
    """Everybody has heard of the verdict, and the coordinator has not written that down."""
    patch.setattr(Coordinator, "_complete", lambda *_: None)


@pytest.mark.parametrize("done", [nothing, one_marker, all_but_offsets, all_but_complete])
def test_a_node_that_stopped_behind_a_verdict_brings_it_to_its_end_when_it_is_back(
    start: Callable[..., Running],
    monkeypatch: pytest.MonkeyPatch,
    done: Callable[[pytest.MonkeyPatch, Running], None],
) -> None:
    running = start()
    for name in ("a", "b"):
        running.create(name)
    with monkeypatch.context() as patch, running.connect() as connection:
        done(patch, running)
        for name, commit in (("commits", True), ("aborts", False)):
            worker = Worker(connection, name)
            assert worker.add("a", "b") == [0, 0]
            assert [worker.write(topic) for topic in ("a", "b")] == [0, 0]
            assert worker.add_offsets(f"{name}-group") == 0
            assert worker.commit_offset(f"{name}-group", "a", 7) == 0
            assert worker.end(commit) == 0
        if done is not all_but_complete:
            assert committed_offset(running, "commits-group", "a") == (0, -1)
            assert committed_offset(running, "commits-group", "a", stable=True) == (UNSTABLE, -1)
        running.stop()
    running.start()
    until(lambda: state_of(running, "aborts") == TransactionState.COMPLETE_ABORT.value, "it is completed")
    until(lambda: state_of(running, "commits") == TransactionState.COMPLETE_COMMIT.value, "it is completed")
    ends = [end_of(running, topic) for topic in ("a", "b")]
    assert ends == [end_of(running, topic, isolation=0) for topic in ("a", "b")]
    assert min(ends) >= 4, "two messages and their markers, some of them perhaps twice"
    assert committed_offset(running, "commits-group", "a", stable=True) == (0, 7)
    assert committed_offset(running, "aborts-group", "a", stable=True) == (0, -1)
    with running.connect() as connection:
        request = fetch_request("a", wanted())
        request.isolation_level = READ_COMMITTED
        send(connection, request)
        answer = only(receive(connection))
    assert [entry.producer_id for entry in answer.aborted_transactions] == [worker.id], "the second one"
    assert answer.last_stable_offset == ends[0]


def test_a_commit_outside_of_the_transaction_that_comes_later_wins(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Worker(connection, topic)
        assert worker.add_offsets(topic) == 0
        assert worker.commit_offset(topic, topic, 5) == 0
        request = offset_commit.OffsetCommitRequest(
            group_id=topic,
            generation_id_or_member_epoch=-1,
            topics=[
                offset_commit.OffsetCommitRequestTopic(
                    name=topic, partitions=[offset_commit.OffsetCommitRequestPartition(0, 9)]
                )
            ],
        )
        assert connection.call(offset_commit, 8, request).topics[0].partitions[0].error_code == 0
        assert worker.end(commit=True) == 0
    until(lambda: committed_offset(shared, topic, topic, stable=True)[0] == 0, "nothing is pending")
    assert committed_offset(shared, topic, topic) == (0, 9)


def test_offsets_of_a_group_that_was_not_added_are_refused(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Worker(connection, topic)
        worker.add(topic)
        assert worker.commit_offset(topic, topic, 5) == INVALID_STATE


def test_offsets_that_come_late_by_an_older_connection_are_refused(shared: Running, topic: str) -> None:
    """They were held back by the network until their producer had gone on to its next transaction."""
    shared.create(topic)
    with shared.connect() as first, shared.connect() as second:
        worker = Worker(first, topic)
        assert (worker.add_offsets(topic), worker.commit_offset(topic, topic, 5)) == (0, 0)
        late = worker.offsets(topic, topic, 5)
        worker.connection = second
        assert worker.end(commit=True) == 0
        assert (worker.add_offsets(topic), worker.commit_offset(topic, topic, 9)) == (0, 0)
        answer = first.call(txn_offset_commit, 3, late)
        assert answer.topics[0].partitions[0].error_code == INVALID_EPOCH
        assert worker.end(commit=True) == 0
    until(lambda: committed_offset(shared, topic, topic, stable=True) == (0, 9), "the second one counts")


def test_a_transactional_batch_needs_a_transactional_id(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Worker(connection, topic)
        assert worker.add(topic) == [0]
        batch = batch_of(b"x", attributes=TRANSACTIONAL, producer_id=worker.id, base_sequence=0)
        answer = connection.call(produce, 9, produce_request(topic, batch))
        assert answer.responses[0].partition_responses[0].error_code == REFUSED
        assert worker.end(commit=True) == 0


def test_offsets_that_could_not_be_synced_do_not_outlive_their_transaction(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may be in the log all the same, and the next coordinator would have the next transaction commit
    them. So the verdict comes to the group when it is certain what its log holds."""
    running = start(durability_flush="sync")
    running.create("t")
    tries: list[object] = []
    again = Ending._again

    def count(ending: Ending, call: Callable[..., None], what: object) -> None:
        tries.append(what)
        again(ending, call, what)

    monkeypatch.setattr(Ending, "_again", count)
    log = running.partition("__consumer_offsets").log
    disk = use_failing_disk(running)
    running.on_loop(lambda: setattr(log.active, "_file", disk.open(log.active.path)))
    with running.connect() as connection:
        worker = Worker(connection, "w")
        assert (worker.add_offsets("g"), worker.commit_offset("g", "t", 5)) == (0, 0)
        assert worker.end(commit=True) == 0
        assert worker.add_offsets("g") == 0
        disk.fail("sync", log.active.path, errno.EIO)
        assert worker.commit_offset("g", "t", 9) == NOT_AVAILABLE
        assert worker.end(commit=False) == 0
        until(lambda: len(tries) > 2, "it is tried again")
        assert state_of(running, "w") == TransactionState.PREPARE_ABORT.value
    disk.heal()
    running.stop()
    running.start()
    until(lambda: state_of(running, "w") == TransactionState.COMPLETE_ABORT.value, "it is completed")
    assert committed_offset(running, "g", "t", stable=True) == (0, 5)


@pytest.mark.parametrize("full", ["__transaction_state", "t", "__consumer_offsets"])
@pytest.mark.parametrize("commit", [True, False])
def test_a_full_disk_delays_a_verdict_and_changes_nothing(
    start: Callable[..., Running], full: str, commit: bool
) -> None:
    running = start()
    running.create("t")
    with running.connect() as connection:
        worker = Worker(connection, "w")
        assert worker.add("t") == [0]
        assert worker.write("t") == 0
        assert (worker.add_offsets("g"), worker.commit_offset("g", "t", 5)) == (0, 0)
        log, disk = running.partition(full).log, use_failing_disk(running)
        running.on_loop(lambda: setattr(log.active, "_file", disk.open(log.active.path)))
        disk.fail("append", log.active.path, errno.ENOSPC)
        code = worker.end(commit)
        assert (code == 0) == (full != "__transaction_state"), "the verdict is what the client waits for"
        until(lambda: disk.refusals, "the disk was full")
        if full != "__consumer_offsets":
            assert end_of(running, "t") == 0, "readers wait"
        disk.heal()
        until(lambda: worker.end(commit) == 0, "it ends as it was asked for")
        verdict = TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
        until(lambda: state_of(running, "w") == verdict.value, "it is completed")
    assert end_of(running, "t") == end_of(running, "t", isolation=0)
    assert committed_offset(running, "g", "t", stable=True) == (0, 5 if commit else -1)
    assert len(running.partition("t").log.aborted(0, 100)) == (not commit)


def test_a_deleted_topic_counts_as_done(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    running.create("kept")
    running.create("gone")
    with running.connect() as connection:
        worker = Worker(connection, "w")
        worker.add("kept", "gone")
        worker.write("kept")
        worker.write("gone")
        running.delete("gone")
        assert worker.end(commit=True) == 0
        assert worker.add("kept") == [0], "the transaction before is complete"
    assert end_of(running, "kept") == 2


def test_a_waiting_read_committed_consumer_is_woken_by_the_marker_only(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as reader, shared.connect() as writer:
        request = fetch_request(topic, wanted(), wait_ms=20_000)
        request.isolation_level = READ_COMMITTED
        request.topics[0].partitions[0].fetch_offset = 0
        send(reader, request)
        worker = Worker(writer, topic)
        worker.add(topic)
        worker.write(topic)
        assert len(shared.partition(topic).readers) == 1, "what is open is nothing to read"
        worker.end(commit=True)
        answer = only(receive(reader))
    assert (answer.last_stable_offset, answer.high_watermark) == (2, 2)
    assert not shared.partition(topic).readers


def test_transactions_are_listed_and_described(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Worker(connection, topic)
        worker.add(topic)
        answer = connection.call(
            describe_transactions, 0, describe_transactions.DescribeTransactionsRequest([topic, "nobody"])
        )
        mine, nobody = answer.transaction_states
        assert (mine.transaction_state, mine.producer_id) == (TransactionState.ONGOING.value, worker.id)
        assert [(found.topic, found.partitions) for found in mine.topics] == [(topic, [0])]
        assert nobody.error_code == 105
        request = list_transactions.ListTransactionsRequest(["Ongoing", "Odd"], [], -1)
        listed = connection.call(list_transactions, 1, request)
        assert topic in [found.transactional_id for found in listed.transaction_states]
        assert listed.unknown_state_filters == ["Odd"]
        worker.end(commit=False)


def test_repeated_batches_of_a_transaction_take_the_short_way(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        worker = Worker(connection, topic)
        worker.add(topic)
        assert [worker.write(topic) for _ in range(5)] == [0] * 5
        worker.sequence = 7
        assert worker.write(topic) == MISSING, "out of sequence, whichever way it takes"
        worker.end(commit=True)
    until(lambda: end_of(shared, topic) == 6, "it is stable")
