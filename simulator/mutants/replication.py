"""Mutants of replication: rules without which committed messages are lost, or replicas differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from postroad.broker.commit_waiters import CommitWaiters
from postroad.broker.partition import Partition
from postroad.broker.replica_fetcher import ReplicaFetcher
from postroad.broker.roles import Roles
from postroad.cluster import leadership
from postroad.cluster.keys import PartitionState
from postroad.errors import OffsetOutOfRange
from postroad.log.partition_log import PartitionLog
from postroad.log.writable_log import WritableLog
from postroad.replication.follower import NOBODY, Step
from postroad.replication.in_sync import IsrChange
from postroad.replication.leader import Leader
from postroad.replication.progress import FollowerProgress
from simulator.mutants.mutant import Mutant


def _cut_to_watermark(follow: Callable[..., Any]) -> Callable[..., Any]:
    def cut(self: Roles, partition: Partition, state: PartitionState) -> None:
        is_new = state.leader_epoch != partition.leader_epoch
        follow(self, partition, state)
        follower = partition.follower
        if follower is None or follower.leader == NOBODY or not is_new:
            return
        if follower.watermark < follower.offset:
            follower._is_changing = True
            follower.target = max(follower.watermark, follower.log_start)
            self.fetchers._cut(partition, Step.TRUNCATE)

    return cut


def _read_uncommitted(read: Callable[..., Any]) -> Callable[..., Any]:
    def read_all(self: Partition, offset: int, max_bytes: int) -> Any:
        if self.leads:
            return read(self, offset, max_bytes)
        return self.log.read(offset, max_bytes, self.log.written_offset)

    return read_all


def _never_part(_: Callable[..., Any]) -> Callable[..., Any]:
    def diverging(self: PartitionLog, last_fetched_epoch: int, fetch_offset: int) -> None:
        if fetch_offset < self.start_offset:
            raise OffsetOutOfRange("It is below the start.")

    return diverging


def _any_epoch(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, leader_epoch: None


def _count_the_committed(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: {self.node_id, *self.isr}


def _shrink_at_once(propose: Callable[..., Any]) -> Callable[..., Any]:
    def shrink(self: Leader, now_ms: int, serving: Mapping[int, int]) -> IsrChange | None:
        change: IsrChange | None = propose(self, now_ms, serving)
        if change is not None and not change.resigns and set(change.isr) < set(self.isr):
            self.isr, self.elr = change.isr, change.elr
            self._recount()
        return change

    return shrink


def _trust_old_promises(_: Callable[..., Any]) -> Callable[..., Any]:
    def registered(self: FollowerProgress, broker_epoch: int) -> None:
        self.broker_epoch = broker_epoch

    return registered


def _join_in_any_name(join: Callable[..., Any]) -> Callable[..., Any]:
    def any_name(self: Leader, serving: Mapping[int, int]) -> IsrChange | None:
        for node, follower in self._followers.items():
            if node in serving:
                follower.broker_epoch = serving[node]
        change: IsrChange | None = join(self, serving)
        return change

    return any_name


def _join_at_the_watermark(_: Callable[..., Any]) -> Callable[..., Any]:
    def may_join(self: Leader, follower: FollowerProgress) -> bool:
        pairs = zip(self.logs, follower.positions, strict=True)
        return all(position.offset >= progress.watermark for progress, position in pairs)

    return may_join


def _begin_later(_: Callable[..., Any]) -> Callable[..., Any]:
    def begin_epoch(self: WritableLog, leader_epoch: int) -> None:
        self.led_epoch = leader_epoch

    return begin_epoch


def _as_if_same_boot(start: Callable[..., Any]) -> Callable[..., Any]:
    def same(image: Any, node: int, **how: Any) -> Any:
        return start(image, node, **{**how, "same_boot": True})

    return same


def _promise_what_is_written(_: Callable[..., Any]) -> Callable[..., Any]:
    def copied(self: Partition) -> None:
        self._advance(self.log.written_offset)

    return copied


def _promise_what_is_read(named: Callable[..., Any]) -> Callable[..., Any]:
    def promised(self: ReplicaFetcher) -> Any:
        return [wanted._replace(offset=max(wanted.offset, wanted.ahead)) for wanted in named(self)]

    return promised


def _expire_all(expire: Callable[..., Any]) -> Callable[..., Any]:
    def above(self: PartitionLog, now_ms: int, below: int) -> Any:
        return expire(self, now_ms, self.written_offset)

    return above


def _wait_for_nobody(_: Callable[..., Any]) -> Callable[..., Any]:
    def when_deleted(self: Partition, offset: int, call: Callable[..., Any], deadline_ms: int) -> None:
        call(None)

    return when_deleted


ALL: Final = (
    Mutant(
        "follower-reads-uncommitted",
        "a consumer that reads from a follower is sent what is not committed yet",
        Partition,
        "read",
        _read_uncommitted,
    ),
    Mutant(
        "truncate-to-watermark",
        "whoever follows a new leader cuts its log at its own watermark",
        Roles,
        "_follow",
        _cut_to_watermark,
    ),
    Mutant(
        "never-part",
        "a leader does not tell its followers where their logs part from its own",
        PartitionLog,
        "diverging",
        _never_part,
    ),
    Mutant(
        "skip-epoch-check",
        "a fetch of any leader epoch is answered",
        Partition,
        "check_epoch",
        _any_epoch,
    ),
    Mutant(
        "committed-isr",
        "the watermark does not wait for replicas that may be in sync by now",
        Leader,
        "_counted_nodes",
        _count_the_committed,
    ),
    Mutant(
        "shrink-unconfirmed",
        "a replica that is to leave the ISR is not waited for while nobody has confirmed it",
        Leader,
        "propose",
        _shrink_at_once,
    ),
    Mutant(
        "join-without-broker-epoch",
        "what a follower's last process has promised counts for the next one",
        FollowerProgress,
        "registered",
        _trust_old_promises,
        also=(Mutant("any-name", "and it joins in that one's name", Leader, "_join", _join_in_any_name),),
    ),
    Mutant(
        "join-below-start",
        "a replica joins at the watermark, below the start of the leader's epoch",
        Leader,
        "_may_join",
        _join_at_the_watermark,
    ),
    Mutant(
        "epoch-not-begun",
        "a leader epoch begins with the first batch, not with the election",
        WritableLog,
        "begin_epoch",
        _begin_later,
    ),
    Mutant(
        "keep-isr-after-reboot",
        "a node whose power failed stays in sync",
        leadership,
        "start",
        _as_if_same_boot,
    ),
    Mutant(
        "promise-before-sync",
        "a follower fetches on before what came last is synced",
        Partition,
        "copied",
        _promise_what_is_written,
    ),
    Mutant(
        "promise-ahead",
        "a follower that reads ahead promises what is not synced yet",
        ReplicaFetcher,
        "_named",
        _promise_what_is_read,
    ),
    Mutant(
        "retention-above-watermark",
        "retention takes what is not committed yet",
        PartitionLog,
        "expire",
        _expire_all,
    ),
    Mutant(
        "delete-alone",
        "a request to delete records is answered before the followers have followed",
        Partition,
        "when_deleted",
        _wait_for_nobody,
    ),
    Mutant(
        "coordinator-sent-away",
        "a coordinator that was left takes what it has written for lost, and decides anew",
        CommitWaiters,
        "send_away",
        lambda _: CommitWaiters.fail,
    ),
)
