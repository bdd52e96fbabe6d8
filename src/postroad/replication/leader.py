"""`Leader`: a partition's leadership in one leader epoch, on the node that leads.

    own, fetched ──▶ the watermark            what is below is committed
    expire, fetched ──▶ wants_change ──▶ propose ──▶ IsrChange ──▶ (the store) ──▶ confirmed
                                                        │ a compare failed: refused
                                                        └ no answer: unknown; the key's next revision tells

Two sets of in-sync replicas matter. The *committed* one is what the store says, as far as this node has seen
it. The *maximal* one has the joiners of every proposal that may still come true as well: it is all who could
be elected behind this leader's back. A partition has one log (its messages) or two (and the ledger of its
queues), which share the replicas, the epoch and both sets.

The rules, with the numbers that `check` cites:

R1 a log's watermark is the lowest safe offset in the maximal ISR: joiners count as soon as they are proposed,
   leavers until their leaving is confirmed (KIP-497). It never falls.
R2 it stands still while the committed ISR is smaller than the effective minimum (L11), or the ELR is not
   empty: what is committed without a member of the ELR would be lost if that were elected (KIP-966).
R3 who joins has reached the watermark *and* the start of this leader epoch, in all logs (KAFKA-7128), by
   fetches of its present registration (KIP-903), and its node is serving (KIP-841).
R4 one proposal is under way at most. One of unknown outcome counts until the key has another revision: a read
   of the old one proves nothing, since the commit may still arrive.
R5 the leader is in the committed ISR, and the ISR is among the replicas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from postroad.replication.in_sync import IsrChange, effective_minimum, elr_after
from postroad.replication.progress import FollowerProgress, LogProgress, LogStart, Position

MESSAGES: Final = 0  # the first log of a partition
LEDGER: Final = 1  # the second one, where the partition has queues

ANYWHERE: Final = 1 << 62  # beyond all offsets
RETRY_MS: Final = 100  # until a proposal follows one that failed: the store's watch is faster, mostly
RETRY_MAX_MS: Final = 3_200  # doubled up to this: a thousand partitions must not flood a store in trouble
SWEEPS: Final = 4  # how often in the lag time idle followers are noted as caught up, which bounds its error


class Leader:
    __slots__ = (
        "_change",
        "_counted",
        "_deadline_ms",
        "_failures",
        "_followers",
        "_in_doubt",
        "_joining",
        "_lag_ms",
        "_min_insync",
        "_retry_ms",
        "_started_ms",
        "elr",
        "enough_replicas",
        "epoch",
        "isr",
        "logs",
        "node_id",
        "replicas",
        "revision",
        "wants_change",
    )

    def __init__(
        self,
        node_id: int,
        epoch: int,
        logs: Sequence[LogStart],
        *,
        replicas: Sequence[int],
        isr: Iterable[int],
        elr: Iterable[int],
        revision: int,
        min_insync: int,
        lag_ms: int,
        now_ms: int,
    ) -> None:
        """`logs`: the messages, and the ledger if there is one. `isr`, `elr` and `replicas` are what the
        store says in `revision` of the partition's key. `lag_ms`: how long a follower may lag and be in
        sync."""
        self.node_id = node_id
        self.epoch = epoch
        self.logs = [LogProgress(begin) for begin in logs]
        self.replicas = tuple(replicas)
        self.isr = tuple(isr)
        self.elr = tuple(elr)
        self.revision = revision
        self.enough_replicas = False  # acks=all is possible: read for each produce request
        self.wants_change = False  # `propose` may have something to say
        self._min_insync = min_insync
        self._lag_ms = lag_ms
        self._started_ms = now_ms
        self._followers: dict[int, FollowerProgress] = {}
        self._counted: list[FollowerProgress] = []  # the maximal ISR but for the leader
        self._joining: set[int] = set()  # joiners of all proposals that may still come true
        self._change: IsrChange | None = None  # what is under way
        self._in_doubt = False  # an earlier proposal at this revision may still arrive
        self._failures = 0  # of proposals since the key's last revision
        self._retry_ms = now_ms  # nothing is proposed before
        self._deadline_ms = now_ms + self._sweep_ms
        self._meet_followers(now_ms)
        self._recount()

    # -- the hot path ----------------------------------------------------------------------------------

    def own(self, log: int, safe_offset: int) -> bool:
        """Everything below is safe on the leader itself. True if the log's watermark has moved."""
        progress = self.logs[log]
        progress.safe_offset = safe_offset
        if safe_offset > progress.end_offset:
            progress.end_offset = safe_offset
        return safe_offset > progress.watermark and self._advance(log)

    def fetched(
        self, replica: int, broker_epoch: int, log: int, offset: int, end_offset: int, now_ms: int
    ) -> bool:
        """A replica fetches at this offset in this leader epoch. True if the log's watermark has moved.

        `end_offset` is the end of the leader's log. Not for a fetch whose answer is a diverging epoch, nor
        for one of a node that is no replica.
        """
        follower = self._followers[replica]
        if broker_epoch != follower.broker_epoch:
            if broker_epoch < follower.broker_epoch:
                return False  # of a process that has been replaced since
            follower.registered(broker_epoch)
        progress = self.logs[log]
        progress.end_offset = end_offset
        follower.positions[log].fetched(offset, end_offset, now_ms)
        if follower.is_counted:
            return offset > progress.watermark and self._advance(log)
        if offset >= progress.watermark and self._may_join(follower):
            self.wants_change = True
        return False

    def starts_at(self, replica: int, broker_epoch: int, log: int, log_start: int) -> None:
        """The log of a replica, which has just fetched, starts here."""
        follower = self._followers[replica]
        if broker_epoch == follower.broker_epoch:
            follower.positions[log].log_start = log_start

    def known_start(self, log: int = MESSAGES) -> int:
        """Nobody who could be elected has a log that starts before this offset, but for the leader itself."""
        nodes = self._counted_nodes() | {*self.elr}
        starts = [self._followers[node].positions[log].log_start for node in nodes - {self.node_id}]
        return min(starts, default=ANYWHERE)

    def watermark(self, log: int = MESSAGES) -> int:
        return self.logs[log].watermark

    def reached_start(self, log: int = MESSAGES) -> bool:
        """Whether the watermark has reached the epoch's start: before, one that was shown may be higher
        (KIP-207)."""
        progress = self.logs[log]
        return progress.watermark >= progress.start_offset

    # -- what the coordination store says --------------------------------------------------------------

    def confirmed(
        self,
        isr: Iterable[int],
        elr: Iterable[int],
        revision: int,
        now_ms: int,
        replicas: Sequence[int] | None = None,
    ) -> bool:
        """The partition's key has this revision, still in this leader epoch. True if a watermark has moved.

        It need not be this partition's state that has changed: a key holds many. Whatever was proposed before
        has happened by now, or never will. `replicas`: where these have changed.
        """
        if revision <= self.revision:
            return False
        before = self.isr
        if replicas is not None:
            self.replicas = tuple(replicas)
            self._meet_followers(now_ms)
        self.isr, self.elr, self.revision = tuple(isr), tuple(elr), revision
        for node in self.isr:
            if node not in before:
                self._followers[node].caught_up_now(now_ms)  # it has the lag time, too
        self._change, self._in_doubt = None, False
        self._joining.clear()
        self._failures, self._retry_ms = 0, now_ms
        self.wants_change = True
        return self._recount()

    def refused(self, change: IsrChange, now_ms: int) -> bool:
        """A compare of the commit failed: it changed nothing. True if a watermark has moved.

        Not after `unknown`, for the same or an earlier proposal: the compare may have met what that one
        wrote.
        """
        if change is not self._change:
            return False
        self._end_proposal(now_ms)
        if self._in_doubt:
            return False
        self._joining.clear()
        return self._recount()

    def unknown(self, change: IsrChange, now_ms: int) -> None:
        """The store did not answer: the commit may have happened, or may yet (R4)."""
        if change is self._change:
            self._end_proposal(now_ms)
            self._in_doubt = True

    def min_insync_changed(self, min_insync: int) -> bool:
        """The topic's config has another minimum. True if a watermark has moved."""
        self._min_insync = min_insync
        self.wants_change = True
        return self._recount()

    def serving_changed(self) -> None:
        """Other nodes serve than before: one that caught up already, and fetches nothing more, may join."""
        self.wants_change = self.wants_change or self._has_candidate()

    def add_log(self, begin: LogStart, now_ms: int) -> None:
        """The partition has a ledger from now on. Who is in sync has the lag time to begin with it."""
        self.logs.append(LogProgress(begin))
        for follower in self._followers.values():
            follower.positions.append(Position(now_ms))
        self._advance(len(self.logs) - 1)

    # -- proposals -------------------------------------------------------------------------------------

    def propose(self, now_ms: int, serving: Mapping[int, int]) -> IsrChange | None:
        """What to commit to the store now, if anything; then call `refused` or `unknown`, or let `confirmed`
        come.

        `serving`: the broker epochs of the nodes that may join and lead, as the store has them. Where the
        change resigns, all services that need a current lease have ended before it is sent. A change may
        repeat what is committed: it is there for the revision, which ends the doubt about an earlier one.
        """
        self.wants_change = False
        if self._change is not None or now_ms < self._retry_ms:
            return None
        change = self._join(serving) or self._resign(now_ms, serving) or self._leave(now_ms)
        if change is None and (self._in_doubt or self._has_needless_elr()):
            change = self._change_to(self.isr, ())  # another revision ends the doubt
        if change is not None:
            self._change = change
            self._joining.update(node for node, _ in change.joiners)
            self._recount()
        return change

    # -- time ------------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """When (monotonic ms) to call `expire`; None where nothing depends on time."""
        return self._deadline_ms if self._followers else None

    def expire(self, now_ms: int) -> None:
        """See who has lagged for too long. `wants_change` is set if there is something to propose.

        A follower that has everything fetches nothing of this partition; it counts as caught up at each
        sweep.
        """
        if not self._followers or now_ms < self._deadline_ms:
            return
        due = now_ms + self._sweep_ms
        if self._failures and now_ms < self._retry_ms:
            due = min(due, self._retry_ms)
        for follower in self._counted:
            for progress, position in zip(self.logs, follower.positions, strict=True):
                if position.offset >= progress.end_offset:
                    position.caught_up_ms = now_ms
                elif now_ms < position.caught_up_ms + self._lag_ms:
                    due = min(due, position.caught_up_ms + self._lag_ms)
        self._deadline_ms = due
        if now_ms >= self._retry_ms and self._has_reason(now_ms):
            self.wants_change = True

    # -- what others ask -------------------------------------------------------------------------------

    @property
    def maximal_isr(self) -> frozenset[int]:
        """All who could be elected behind this leader's back, and the leader."""
        return frozenset(self._counted_nodes())

    @property
    def minimum(self) -> int:
        """How many replicas must be in sync for the watermark to move."""
        return effective_minimum(self._min_insync, self.replicas)

    def heard_ms(self) -> int | None:
        """When somebody who counts for the watermark last fetched; None where nobody but the leader does."""
        return max((follower.seen_ms() for follower in self._counted), default=None)

    def promise(self, replica: int, log: int = MESSAGES) -> int:
        """The offset below which the replica has everything; -1 if it has not fetched yet."""
        return self._followers[replica].positions[log].offset

    def check(self) -> None:
        """Asserts every invariant; for tests."""
        counted = {follower.node_id for follower in self._counted} | {self.node_id}
        assert counted >= {*self.isr, *self._joining}, "R1: maximal"
        assert {node for node, each in self._followers.items() if each.is_counted} == counted - {self.node_id}
        for log, progress in enumerate(self.logs):
            assert progress.watermark <= progress.safe_offset <= progress.end_offset, "R1: the own offset"
            assert not self._advance(log), "R1: the watermark could have moved"
        assert not self.enough_replicas or (len(self.isr) >= self.minimum and not self.elr), "R2"
        assert self._joining <= counted, "R4"
        assert self._change is None or self._change.revision == self.revision, "R4"
        assert self.node_id in self.isr, "R5"
        assert {*self.isr} <= {*self.replicas} == {self.node_id, *self._followers}, "R5"
        assert not {*self.isr} & {*self.elr}, "R5"

    # -- rules, one each -------------------------------------------------------------------------------

    def _counted_nodes(self) -> set[int]:
        """R1: the maximal ISR."""
        return {self.node_id, *self.isr, *self._joining}

    def _has_enough(self) -> bool:
        """R2."""
        return len(self.isr) >= self.minimum and not self.elr

    def _may_join(self, follower: FollowerProgress) -> bool:
        """R3, as far as offsets go."""
        return all(
            position.offset >= progress.watermark and position.offset >= progress.start_offset
            for progress, position in zip(self.logs, follower.positions, strict=True)
        )

    def _has_candidate(self) -> bool:
        return any(
            not follower.is_counted and self._may_join(follower) for follower in self._followers.values()
        )

    def _has_reason(self, now_ms: int) -> bool:
        """Whether time alone is a reason to propose something."""
        return (
            self._failures > 0
            or self._is_alone(now_ms)
            or self._has_candidate()
            or bool(self._leavers(now_ms))
        )

    def _is_behind(self, follower: FollowerProgress, now_ms: int) -> bool:
        return any(
            position.offset < progress.end_offset and now_ms >= position.caught_up_ms + self._lag_ms
            for progress, position in zip(self.logs, follower.positions, strict=True)
        )

    def _is_alone(self, now_ms: int) -> bool:
        """Whether only the leader is in sync, which is too few, and nobody has fetched for the lag time."""
        if len(self.isr) > 1 or self.minimum <= 1:
            return False
        return all(
            now_ms >= max(self._started_ms, follower.seen_ms()) + self._lag_ms
            for follower in self._followers.values()
        )

    def _has_needless_elr(self) -> bool:
        return bool(self.elr) and len(self.isr) >= self.minimum

    # -- steps -----------------------------------------------------------------------------------------

    @property
    def _sweep_ms(self) -> int:
        return max(self._lag_ms // SWEEPS, 1)

    def _advance(self, log: int) -> bool:
        if not self.enough_replicas:
            return False
        progress = self.logs[log]
        lowest = progress.safe_offset
        for follower in self._counted:
            offset = follower.positions[log].offset
            if offset < lowest:
                lowest = offset
        if lowest <= progress.watermark:
            return False
        progress.watermark = lowest
        return True

    def _recount(self) -> bool:
        """One of the sets has changed. True if a watermark has moved."""
        nodes = self._counted_nodes()
        self._counted.clear()
        for follower in self._followers.values():
            follower.is_counted = follower.node_id in nodes
            if follower.is_counted:
                self._counted.append(follower)
        self.enough_replicas = self._has_enough()
        moved = [self._advance(log) for log in range(len(self.logs))]
        return any(moved)

    def _meet_followers(self, now_ms: int) -> None:
        known = self._followers
        self._followers = {
            node: known.get(node) or FollowerProgress(node, len(self.logs), now_ms)
            for node in self.replicas
            if node != self.node_id
        }

    def _join(self, serving: Mapping[int, int]) -> IsrChange | None:
        joiners = tuple(
            (node, follower.broker_epoch)
            for node, follower in self._followers.items()
            if node not in self.isr
            and self._may_join(follower)
            and serving.get(node) == follower.broker_epoch
        )
        if not joiners:
            return None
        return self._change_to((*self.isr, *(node for node, _ in joiners)), (), joiners)

    def _leavers(self, now_ms: int) -> list[int]:
        return [
            node
            for node, follower in self._followers.items()
            if node in self.isr and self._is_behind(follower, now_ms)
        ]

    def _leave(self, now_ms: int) -> IsrChange | None:
        leavers = self._leavers(now_ms)
        if not leavers:
            return None
        return self._change_to([node for node in self.isr if node not in leavers], leavers)

    def _resign(self, now_ms: int, serving: Mapping[int, int]) -> IsrChange | None:
        """A leader that has lost all its followers, and can commit nothing more, makes way for one of them.

        It leaves the ISR in the same commit, to the end of the ELR, or it would be elected again for ever.
        """
        others = [node for node in self.isr if node != self.node_id]
        lost_all = len(self._leavers(now_ms)) == len(others) if others else self._is_alone(now_ms)
        if not lost_all or self.minimum <= 1:
            return None
        if not any(node in serving for node in (*others, *self.elr)):
            return None
        return self._change_to(others, [self.node_id], resigns=True)

    def _change_to(
        self,
        isr: Iterable[int],
        leavers: Sequence[int],
        joiners: tuple[tuple[int, int], ...] = (),
        *,
        resigns: bool = False,
    ) -> IsrChange:
        members = {*isr}
        elr = elr_after(members, self.elr, leavers, self.minimum)
        ordered = tuple(node for node in self.replicas if node in members)
        return IsrChange(self.revision, ordered, elr, joiners, resigns)

    def _end_proposal(self, now_ms: int) -> None:
        self._change = None
        self._retry_ms = now_ms + min(RETRY_MS << min(self._failures, 8), RETRY_MAX_MS)
        self._failures += 1
        self._deadline_ms = min(self._deadline_ms, self._retry_ms)
