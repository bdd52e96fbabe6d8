"""A node of the model cluster: the real cores over logs that are lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from postroad.errors import FencedLeaderEpoch, NotLeaderOrFollower, OffsetOutOfRange, UnknownLeaderEpoch
from postroad.replication.divergence import EpochEnd, diverging
from postroad.replication.follower import Follower, Step
from postroad.replication.leader import Leader
from postroad.replication.progress import LogStart
from tests.replication.model_log import ModelLog, Record
from tests.replication.model_store import ModelStore, PartitionKey

LAG_MS = 1_000


@dataclass(frozen=True)
class Rules:
    """The rules as they are; each mutant takes one away."""

    leader: type[Leader] = Leader
    follower: type[Follower] = Follower
    compares_broker_epochs: bool = True
    diverging_is_no_promise: bool = True
    truncates_by_epoch: bool = True
    checks_epoch_of_fetch: bool = True
    syncs_before_promise: bool = True
    promises_what_is_safe: bool = True  # also where it reads ahead
    leaves_after_power_cut: bool = True
    empties_elr: bool = True  # with the commit that lowers min.insync


class Fetch(NamedTuple):
    """A follower's request on its way."""

    follower: int
    life: int  # its connection ends with its process
    leader: int
    log: int
    epoch: int
    offset: int  # where to read
    last_epoch: int
    broker_epoch: int
    promised: int  # everything below is safe


class FetchAnswer(NamedTuple):
    fetch: Fetch
    error: int = 0
    parting: EpochEnd | None = None
    watermark: int = 0
    records: tuple[Record, ...] = ()


@dataclass
class ModelNode:
    node_id: int
    store: ModelStore
    logs: list[ModelLog]
    rules: Rules
    is_up: bool = True
    has_lost_data: bool = False  # a power cut since the last start
    life: int = 0
    broker_epoch: int = -1
    view: PartitionKey | None = None
    leader: Leader | None = None
    followers: list[Follower] = field(default_factory=list)

    # -- roles -----------------------------------------------------------------------------------------

    def start(self) -> None:
        self.is_up = True
        self.life += 1
        self.store.started(self.node_id, lost_data=self.has_lost_data and not self.logs[0].syncs)
        self.has_lost_data = False
        self.broker_epoch = self.store.register(self.node_id)
        self.view, self.leader = None, None
        self._open_followers()

    def stop(self) -> None:
        self.is_up = False
        self.view, self.leader, self.followers = None, None, []

    def learn(self, now_ms: int) -> None:
        """The image reaches the store's newest revision."""
        state = self.store.partition
        before, self.view = self.view, state
        if state.leader != self.node_id:
            if self.leader is not None:
                self.leader = None
                self._open_followers()
            if before is None or before.epoch != state.epoch:
                for follower in self.followers:
                    follower.follow(state.leader, state.epoch)
                self._truncate_at_change()
        elif self.leader is None or self.leader.epoch != state.epoch:
            self._become_leader(state, now_ms)
        else:
            self.leader.confirmed(state.isr, state.elr, state.revision, now_ms)
            if before is not None and before.min_insync != state.min_insync:
                self.leader.min_insync_changed(state.min_insync)
        self._keep_watermarks()

    def _become_leader(self, state: PartitionKey, now_ms: int) -> None:
        for log in self.logs:
            log.epochs.begin(state.epoch, log.end)
        self.followers = []
        self.leader = self.rules.leader(
            self.node_id,
            state.epoch,
            [LogStart(log.end, log.safe, log.watermark) for log in self.logs],
            replicas=self.store.replicas,
            isr=state.isr,
            elr=state.elr,
            revision=state.revision,
            min_insync=state.min_insync,
            lag_ms=LAG_MS,
            now_ms=now_ms,
        )

    def _open_followers(self) -> None:
        self.followers = [
            self.rules.follower(
                log_start=0,
                end_offset=log.end,
                last_epoch=log.last_epoch,
                safe_offset=log.safe if self.rules.syncs_before_promise else log.end,
                watermark=log.watermark,
            )
            for log in self.logs
        ]

    def _truncate_at_change(self) -> None:
        if not self.rules.truncates_by_epoch:  # as Kafka did before KIP-101
            for log, follower in zip(self.logs, self.followers, strict=True):
                log.truncate(log.watermark)
                follower.truncated(log.end, log.last_epoch)

    def _keep_watermarks(self) -> None:
        for number, log in enumerate(self.logs):
            log.watermark = self.leader.watermark(number) if self.leader else self.followers[number].watermark

    # -- a leader --------------------------------------------------------------------------------------

    def produce(self, number: int, value: int) -> None:
        assert self.leader is not None
        log = self.logs[number]
        log.append(Record(self.leader.epoch, value))
        self.leader.own(number, log.safe)
        self._keep_watermarks()

    def answer(self, fetch: Fetch, now_ms: int) -> FetchAnswer:
        leader = self.leader
        if leader is None:
            return FetchAnswer(fetch, NotLeaderOrFollower.code)
        if fetch.epoch != leader.epoch and self.rules.checks_epoch_of_fetch:
            is_old = fetch.epoch < leader.epoch
            return FetchAnswer(fetch, FencedLeaderEpoch.code if is_old else UnknownLeaderEpoch.code)
        log = self.logs[fetch.log]
        parting = diverging(log.epochs, log.end, fetch.last_epoch, fetch.offset)
        if parting is None and fetch.offset > log.end:
            return FetchAnswer(fetch, OffsetOutOfRange.code)
        if parting is None or not self.rules.diverging_is_no_promise:
            leader.fetched(fetch.follower, fetch.broker_epoch, fetch.log, fetch.promised, log.end, now_ms)
            self._keep_watermarks()
        if parting is not None:
            return FetchAnswer(fetch, parting=parting)
        records = tuple(log.records[fetch.offset :])
        return FetchAnswer(fetch, 0, None, leader.watermark(fetch.log), records)

    # -- a follower ------------------------------------------------------------------------------------

    def fetch(self, number: int, now_ms: int) -> Fetch | None:
        if self.leader is not None or not self.is_up:
            return None
        follower = self.followers[number]
        if not follower.may_fetch(now_ms) and not follower.may_read_ahead(now_ms):
            return None
        promised = follower.safe_offset if self.rules.promises_what_is_safe else follower.offset
        return Fetch(
            self.node_id,
            self.life,
            follower.leader,
            number,
            follower.epoch,
            follower.offset,
            follower.last_epoch,
            self.broker_epoch,
            min(promised, follower.offset),
        )

    def apply(self, answer: FetchAnswer, now_ms: int) -> Step:
        fetch = answer.fetch
        if self.leader is not None or fetch.life != self.life or not self.is_up:
            return Step.STALE
        follower, log = self.followers[fetch.log], self.logs[fetch.log]
        if answer.error:
            step = follower.refused(fetch.epoch, fetch.offset, answer.error, 0, now_ms)
        elif answer.parting is not None:
            step = follower.diverged(fetch.epoch, fetch.offset, answer.parting, log.epochs, 0)
        else:
            step = follower.answered(fetch.epoch, fetch.offset, answer.watermark, 0)
        self._do(step, follower, log, answer)
        follower.check()
        self._keep_watermarks()
        return step

    def _do(self, step: Step, follower: Follower, log: ModelLog, answer: FetchAnswer) -> None:
        if step is Step.APPEND:
            for record in answer.records:
                log.append(record)
            follower.appended(log.end, log.last_epoch)
            follower.safe(log.safe if self.rules.syncs_before_promise else log.end)
        elif step is Step.TRUNCATE:
            log.truncate(follower.target)
            follower.truncated(log.end, log.last_epoch)
        elif step is Step.RESET:
            log.truncate(0)
            follower.reset(0)

    # -- both ------------------------------------------------------------------------------------------

    def sync(self, number: int) -> None:
        log = self.logs[number]
        log.synced = log.end
        if self.leader is not None:
            self.leader.own(number, log.safe)
        else:
            self.followers[number].safe(log.safe)
        self._keep_watermarks()

    def power_cut(self, kept: list[int]) -> None:
        """The machine stops; each log keeps this much, and all that was synced."""
        self.stop()
        self.has_lost_data = self.rules.leaves_after_power_cut
        for log, length in zip(self.logs, kept, strict=True):
            log.truncate(max(length, log.synced if log.syncs else 0))
