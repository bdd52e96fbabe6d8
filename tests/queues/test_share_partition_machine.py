"""The share partition against the model, step by step, with failing writes, crashes and seeks in between."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from postroad.errors import CoordinatorNotAvailable, InvalidRecordState
from postroad.now import Now
from postroad.queues.acknowledgement import LATE_CHANGES
from postroad.queues.entry import QueueEntry
from postroad.queues.holdings import Holdings
from postroad.queues.ledger import Ledger
from postroad.queues.settings import Order, QueueSettings
from postroad.queues.settlement import Settlement
from postroad.queues.share_partition import AckBatch, SharePartition
from postroad.queues.update import Key, Update, decode, encode_key, encode_update
from tests.queues.model import Held, Model, Outcome
from tests.queues.shell import RETURN, batches_of
from tests.queues.strategies import MEMBERS, MESSAGES, SETTINGS

KEY = Key("workers", b"\x01" * 16, 3)


def seldom(machine: Any) -> bool:
    """What throws away what was going on, only when something was."""
    return bool(machine.decisions >= 5)


class SharePartitionMachine(RuleBasedStateMachine):
    order: Order | None = None  # None: any, and it changes

    def __init__(self) -> None:
        super().__init__()
        self.now = Now(5_000, 1_700_000_000_000)
        self.model = Model(QueueSettings(order=self.order or Order.NONE))
        self.holdings = Holdings()
        self.log: list[Update] = []  # of the state, as it is on the disk
        self.snapshots: list[tuple[int, list[Update]]] = []  # taken when the log was so long
        self.pending: list[tuple[Settlement, Outcome]] = []
        self.lowest_start = 0
        self.decisions = 0  # since the last catastrophe
        self.partition = SharePartition(Ledger(KEY), self.model.settings, self.holdings, lambda: 0.5)

    def teardown(self) -> None:
        """S1: whatever is left is delivered to someone who accepts it all, or archived."""
        while self.pending:
            self.commit()
        left = {offset for offset in self.model.messages if not self.model.finished(offset)}
        settings = QueueSettings(delivery_limit=0, order=self.model.settings.order)
        self.partition.change_settings(settings)
        for _ in range(2 * len(left) + 2):
            self.now = Now(self.now.ms + 10**7, self.now.wall_ms + 10**7)
            self._settle(self.partition.expire(self.now))
            upto = max(self.partition.frontier, self.model.log_end)
            self._settle(
                self.partition.extend(upto, self.model.entries(self.partition.frontier, upto), self.now)
            )
            got = self.partition.acquire("anna", 1000, self.now)
            self._settle(self.partition.take_expired(self.now))
            batches = [AckBatch(each.first, each.last, (1,)) for each in got]
            self._settle(self.partition.acknowledge("anna", batches, self.now))
        assert all(self._is_finished(offset) for offset in left), "S1"
        self.partition.check()

    def _settle(self, settlement: Settlement | None) -> None:
        if settlement is not None and settlement.update is not None:
            self.partition.ledger.apply(settlement.update)
            self.partition.settled(settlement, self.now)

    def _is_finished(self, offset: int) -> bool:
        ledger = self.partition.ledger
        return offset < ledger.start or ledger.done.contains(offset) or ledger.dying.contains(offset)

    # -- the log ---------------------------------------------------------------------------------------

    @initialize(settings=SETTINGS, batches=st.lists(MESSAGES, min_size=3, max_size=8))
    def begin(self, settings: QueueSettings, batches: list[tuple[Any, ...]]) -> None:
        self.change_settings(settings)
        for batch in batches:
            self.append(batch)

    @rule(batch=MESSAGES)
    def append(self, batch: tuple[Any, ...]) -> None:
        count, key, tenant, delay, expiry, gap = batch
        if self.model.log_end > 60:
            return
        first = self.model.log_end + gap
        entry = QueueEntry(
            first,
            first + count - 1,
            key,
            tenant,
            self.now.wall_ms + delay if delay else 0,
            self.now.wall_ms + expiry if expiry else 0,
        )
        for offset in range(first, first + count):
            self.model.messages[offset] = entry
        self.model.log_end = first + count

    def _scan(self, upto: int) -> None:
        if upto > self.partition.frontier:
            entries = self.model.entries(self.partition.frontier, upto)
            expired = self.model.extend(upto, self.now)
            settlement = self.partition.extend(upto, entries, self.now)
            self._archived(settlement, expired | self.model.doomed)

    def _archived(self, settlement: Settlement | None, doomed: set[int]) -> None:
        """Expired messages, or what was delivered too often, are on their way out."""
        if not doomed:
            assert settlement is None
            return
        assert settlement is not None
        outcome = Outcome()
        for offset in doomed:
            self.model.archive(outcome, offset)
        self._decided(settlement, outcome)

    def _decided(self, settlement: Settlement, outcome: Outcome) -> None:
        assert (settlement.update is None) == (not outcome.offsets())
        if settlement.update is not None:
            self.decisions += 1
            self.model.decide(outcome)
            self.pending.append((settlement, outcome))

    @precondition(seldom)
    @rule(data=st.data())
    def log_starts_later(self, data: Any) -> None:
        offset = data.draw(st.integers(self.model.log_start, self.model.frontier))
        self.partition.log_starts_at(offset)
        self.model.log_starts_at(offset)
        self.decisions = 0

    # -- members ---------------------------------------------------------------------------------------

    @rule(member=MEMBERS, count=st.integers(1, 9))
    def acquire(self, member: str, count: int) -> None:
        self.acquire_some(60, member, count, None, 1)

    @rule(
        scan=st.integers(0, 15),
        member=MEMBERS,
        count=st.integers(0, 9),
        upto=st.sampled_from([None, None, 7, 15, 30]),
        back=st.integers(0, 2),
    )
    def acquire_some(self, scan: int, member: str, count: int, upto: int | None, back: int) -> None:
        self._scan(min(self.partition.frontier + scan, self.model.log_end))
        model, now = self.model, self.now
        room = model.room(member, count)
        could = model.available(now, upto)
        fit = [offset for offset in could if not model.unfit(offset, now)]
        got = self.partition.acquire(member, count, now, upto=upto)
        offsets = [offset for each in got for offset in range(each.first, each.last + 1)]
        assert len(offsets) == max(0, min(room, len(fit))), (offsets, fit, room)
        assert offsets == sorted(offsets)
        doomed = {o for first, last, _ in self.partition.backlog.doomed for o in range(first, last + 1)}
        assert doomed - model.doomed <= set(could) - set(fit)
        self._check_choice(offsets, fit, bool(doomed))
        for each in got:
            for offset in range(each.first, each.last + 1):
                assert each.deliveries == model.deliveries.get(offset, 0) + 1, "S3"
                model.held[offset] = Held(member, now.ms + model.settings.lock_ms, each.deliveries)
        model.doomed |= doomed
        if back == 0 and offsets:
            self._give_back(offsets[len(offsets) // 2 :], member)
            del offsets[len(offsets) // 2 :]
        if model.settings.at_most_once and offsets:
            self._decided(self.partition.finish([(o, o) for o in offsets]), Outcome(done=set(offsets)))
        self._archived(self.partition.take_expired(now), doomed)

    def _check_choice(self, offsets: list[int], fit: list[int], doomed: bool) -> None:
        if not self.model.settings.fair:
            assert offsets == fit[: len(offsets)], (offsets, fit)
            return
        left = [offset for offset in fit if offset not in offsets]
        for offset in offsets:
            tenant = self.model.messages[offset].tenant
            assert all(o > offset for o in left if self.model.messages[o].tenant == tenant)
        if doomed:
            return  # they stood in line like the others
        counts = dict(self.holdings.by_tenant)
        for served in self.model.tenant_counts(offsets):
            for waits in self.model.tenant_counts(left):
                assert counts[served] - 1 <= counts.get(waits, 0), "unfair"

    def _give_back(self, offsets: list[int], member: str) -> None:
        self.partition.give_back([(offset, offset) for offset in offsets], member)
        for offset in offsets:
            self.model.take_back(offset)

    @precondition(lambda self: self.model.held)
    @rule(data=st.data(), at_once=st.booleans())
    def acknowledge(self, data: Any, at_once: bool) -> None:
        lock_ms = data.draw(st.sampled_from([None, 0, 700]))
        delay_ms = data.draw(st.sampled_from([None, None, 0, 60]))
        member = data.draw(st.sampled_from(sorted({held.member for held in self.model.held.values()})))
        mine = sorted(o for o, held in self.model.held.items() if held.member == member)
        offsets = sorted(data.draw(st.sets(st.sampled_from(mine), min_size=1)))
        types = [data.draw(st.sampled_from([0, 1, 1, 2, 2, 3, 4, RETURN])) for _ in offsets]
        if any(self.model.held[offset].until <= self.now.ms for offset in offsets):
            with pytest.raises(InvalidRecordState):  # S2, S5
                self.partition.acknowledge(member, batches_of(offsets, types), self.now, lock_ms, delay_ms)
            return
        settlement = self.partition.acknowledge(
            member, batches_of(offsets, types), self.now, lock_ms, delay_ms
        )
        outcome = Outcome()
        for offset, kind in zip(offsets, types, strict=True):
            if kind <= 1:
                outcome.done.add(offset)
            elif kind == 2:
                self.model.release(outcome, offset, self.now, delay_ms)
            elif kind == 3:
                self.model.archive(outcome, offset)
            elif kind == RETURN:
                self.model.take_back(offset)
            else:
                lock = self.model.settings.lock_ms if lock_ms is None else lock_ms
                self.model.held[offset].until = self.now.ms + lock
        self._decided(settlement, outcome)
        if at_once:
            self.commit_some(len(self.pending))

    @precondition(lambda self: self.model.log_end)
    @rule(member=MEMBERS, data=st.data())
    def acknowledge_what_is_not_held(self, member: str, data: Any) -> None:
        """S5; the invariants see that nothing has changed."""
        offset = data.draw(st.integers(0, self.model.log_end))
        held = self.model.held.get(offset)
        if held is not None and held.member == member and held.until > self.now.ms:
            return
        mine = sorted(o for o, held in self.model.held.items() if held.member == member)
        if self._is_passed_over(offset):
            assert self.partition.acknowledge(member, batches_of([offset], [2]), self.now).update is None
            return
        offsets = sorted({offset, *mine[:1]})
        with pytest.raises(InvalidRecordState):
            self.partition.acknowledge(member, batches_of(offsets, [1] * len(offsets)), self.now)

    def _is_passed_over(self, offset: int) -> bool:
        """At most once, what is done was so when it was sent."""
        ledger = self.partition.ledger
        done = offset < ledger.start or ledger.done.contains(offset)
        return self.model.settings.at_most_once and done

    @precondition(lambda self: self.model.messages)
    @rule(member=MEMBERS, data=st.data(), at_once=st.booleans())
    def accept_late(self, member: str, data: Any, at_once: bool) -> None:
        """It counts where nobody else has the messages, and they were or may have been delivered; S5 where
        one of them is not to be had."""
        model = self.model
        unknown_below = data.draw(st.sampled_from([0, model.log_end // 2, model.log_end]))
        first = data.draw(st.sampled_from(sorted(model.messages)))
        offsets = sorted(
            {first, data.draw(st.sampled_from([first, first + 2, first - 3]))} & set(model.messages)
        )
        refusals = {self._refusal(offset, member, unknown_below) for offset in offsets} - {None}
        batches = [AckBatch(offset, offset, (1,)) for offset in offsets]
        if refusals:
            with pytest.raises(tuple(each for each in refusals if each is not None)):
                self.partition.acknowledge(member, batches, self.now, unknown_below=unknown_below)
            return
        settlement = self.partition.acknowledge(member, batches, self.now, unknown_below=unknown_below)
        outcome = Outcome(done={offset for offset in offsets if not self._is_passed_over(offset)})
        for offset in outcome.done:
            if offset not in model.held:
                known = offset < model.frontier and model.state(offset, self.now) != "waiting"
                outcome.late[offset] = model.available_at.get(offset, 0) if known else 0
        self._decided(settlement, outcome)
        if at_once:
            self.commit_some(len(self.pending))

    @precondition(lambda self: self.model.messages)
    @rule(member=MEMBERS, data=st.data(), kind=st.sampled_from([2, 4]), ms=st.sampled_from([0, 50, 700]))
    def change_late(self, member: str, data: Any, kind: int, ms: int) -> None:
        """It counts without a lock: nothing is settled, the message is available later, or at once."""
        model, now = self.model, self.now
        offset = data.draw(st.sampled_from(sorted(model.messages)))
        if offset in model.held or self._is_passed_over(offset):
            return
        how: dict[str, Any] = {"lock_ms": ms, "delay_ms": ms, "unknown_below": model.log_end // 2}
        batches = [AckBatch(offset, offset, (kind,))]
        refusal = self._refusal(offset, member, how["unknown_below"])
        if refusal is not None or offset >= self.partition.frontier:
            with pytest.raises((refusal or InvalidRecordState, InvalidRecordState)):
                self.partition.acknowledge(member, batches, now, **how, late_kinds=LATE_CHANGES)
            return
        in_line = model.state(offset, now) == "waiting"
        settlement = self.partition.acknowledge(member, batches, now, **how, late_kinds=LATE_CHANGES)
        assert settlement.update is None
        model.available_at[offset] = 0 if in_line else now.ms + ms

    def _refusal(self, offset: int, member: str, unknown_below: int) -> type[Exception] | None:
        if self._is_passed_over(offset):
            return None
        held = self.model.held.get(offset)
        if held is not None:
            return None if held.member == member else InvalidRecordState
        state = self.model.state(offset, self.now)
        if state == "settling":
            return CoordinatorNotAvailable
        delivered = offset < unknown_below or self.model.deliveries.get(offset)
        return None if delivered and state in ("available", "delayed", "waiting") else InvalidRecordState

    @precondition(lambda self: self.model.held)
    @rule(member=MEMBERS)
    def release_member(self, member: str) -> None:
        outcome = Outcome()
        for offset in [o for o, held in self.model.held.items() if held.member == member]:
            self.model.release(outcome, offset, self.now, 0)
        settlement = self.partition.release_member(member, self.now)
        assert (settlement is None) == (not outcome.offsets())
        if settlement is not None:
            self._decided(settlement, outcome)

    # -- time ------------------------------------------------------------------------------------------

    @rule(
        ms=st.sampled_from([1, 30, 99, 100, 350, 2000]),
        jump=st.sampled_from([0, 0, 0, -100, 3000]),
        noticed=st.booleans(),
    )
    def time_passes(self, ms: int, jump: int, noticed: bool) -> None:
        self.now = Now(self.now.ms + ms, self.now.wall_ms + ms + jump)
        if noticed:
            self.partition.clock_stepped(jump, self.now)
            self.model.clock_stepped(jump, self.now)

    @precondition(lambda self: self.partition.next_deadline() is not None)
    @rule()
    def expire(self) -> None:
        self.commit_some(2)
        outcome = Outcome()
        for offset in [o for o, held in self.model.held.items() if held.until <= self.now.ms]:
            self.model.release(outcome, offset, self.now, None)
        settlement = self.partition.expire(self.now)
        assert (settlement is None) == (not outcome.offsets())
        if settlement is not None:
            self._decided(settlement, outcome)
        deadline = self.partition.next_deadline()
        assert deadline == self.model.next_deadline(self.now)
        assert deadline is None or deadline > self.now.ms

    # -- the disk --------------------------------------------------------------------------------------

    def _append(self, update: Update) -> None:
        decoded = decode(encode_key(KEY), encode_update(update))
        assert decoded == (KEY, update)
        self.log.append(update)

    @precondition(lambda self: self.pending)
    @rule(count=st.integers(1, 5))
    def commit_some(self, count: int) -> None:
        for _ in range(min(count, len(self.pending))):
            self.commit()

    def commit(self) -> None:
        settlement, outcome = self.pending.pop(0)
        assert settlement.update is not None
        self._append(settlement.update)
        self.partition.ledger.apply(settlement.update)
        self.partition.settled(settlement, self.now)
        self.model.commit(outcome)
        self.model.settled(outcome)

    @precondition(lambda self: self.pending)
    @rule(which=st.integers(0, 100))
    def fail(self, which: int) -> None:
        settlement, outcome = self.pending.pop(which % len(self.pending))
        self.partition.unsettle(settlement, self.now)
        self.model.unsettle(outcome)

    @precondition(lambda self: self.log)
    @rule(ranges_max=st.integers(1, 5))
    def take_snapshot(self, ranges_max: int) -> None:
        self.snapshots.append((len(self.log), list(self.partition.ledger.snapshots(ranges_max))))

    @precondition(lambda self: self.snapshots)
    @rule(data=st.data())
    def write_snapshot(self, data: Any) -> None:
        """It may come late, behind updates that it does not know of: nothing changes."""
        taken_at, updates = data.draw(st.sampled_from(self.snapshots))
        before = self.partition.ledger.snapshot()
        for update in updates:
            self._append(update)
            self.partition.ledger.apply(update)
        assert self.partition.ledger.snapshot() == before
        self.snapshots.append((taken_at, updates))

    @precondition(seldom)
    @rule(survive=st.integers(0, 3), snapshot=st.booleans())
    def crash(self, survive: int, snapshot: bool) -> None:
        """What was appended survives, though nobody may have heard of it; the rest is gone."""
        for settlement, outcome in self.pending[:survive]:
            assert settlement.update is not None
            self._append(settlement.update)
            self.model.commit(outcome)
        self.pending.clear()
        self.decisions = 0
        ledger = Ledger(KEY)
        taken_at, updates = self.snapshots[-1] if snapshot and self.snapshots else (0, [])
        for update in [*updates, *self.log[taken_at:], *self.log[-2:]]:
            ledger.apply(update)
        self.holdings = Holdings()
        self.partition = SharePartition(ledger, self.model.settings, self.holdings, lambda: 0.5)
        self.partition.log_starts_at(self.model.log_start)
        self.model.drop_soft()

    @precondition(lambda self: self.model.dying)
    @rule(count=st.integers(1, 5))
    def bury(self, count: int) -> None:
        buried = sorted(self.model.dying)[:count]
        update = self.partition.bury([(offset, offset) for offset in buried])
        self._append(update)
        self.partition.ledger.apply(update)
        self.model.done |= set(buried)
        self.model.dying -= set(buried)

    @precondition(seldom)
    @rule(data=st.data())
    def seek(self, data: Any) -> None:
        self.decisions = 0
        start = data.draw(st.integers(self.model.log_start, self.model.log_end))
        update = self.partition.reset(start)
        self._append(update)
        self.partition.ledger.apply(update)
        self.partition.after_reset(self.now)
        self.model.reset(start)
        self.model.drop_soft()
        self.lowest_start = start
        abandoned, self.pending = self.pending, []
        for settlement, _ in abandoned:  # S4 does not hold over a seek: that is what a seek is for
            if settlement.update is not None:
                self._append(settlement.update)
                self.partition.ledger.apply(settlement.update)
                self.partition.settled(settlement, self.now)

    @rule(settings=SETTINGS)
    def change_settings(self, settings: QueueSettings) -> None:
        if self.order is not None:
            settings = settings._replace(order=self.order)
        before = self.model.settings
        self.partition.change_settings(settings)
        self.model.settings = settings
        if (before.order, before.fair) != (settings.order, settings.fair):
            self.model.forget()

    # -- what always holds -----------------------------------------------------------------------------

    @invariant()
    def is_what_the_model_is(self) -> None:
        model, now = self.model, self.now
        self.partition.check()
        seen: dict[int, Any] = {}
        for each in self.partition.peek(0, model.log_end + 1, now):
            seen.update(dict.fromkeys(range(each.first, each.last + 1), each))
        for offset in model.messages:
            assert seen[offset].state == model.state(offset, now), (offset, seen[offset])
            held = model.held.get(offset)
            if held is not None:
                assert seen[offset].member == held.member
                assert seen[offset].until_ms - now.wall_ms == held.until - now.ms
                assert seen[offset].deliveries == held.deliveries

    @invariant()
    def counts_are_right(self) -> None:
        partition, model = self.partition, self.model
        assert partition.in_flight == self.holdings.total == len(model.held)
        assert partition.start >= self.lowest_start, "S6"
        self.lowest_start = partition.start
        could = model.available(self.now, None)
        assert partition.has_available(self.now) == bool(could)
        ledger = partition.ledger
        for offset in model.messages:
            if offset >= partition.start:
                assert (ledger.done.contains(offset)) == (offset in model.done), offset
                row = ledger.attempts.find(offset)
                assert (row[2] if row else 0) == model.deliveries.get(offset, 0), offset


class KeyOrderMachine(SharePartitionMachine):
    order = Order.KEY


pytestmark = pytest.mark.usefixtures("small_chunks")

SharePartitionMachine.TestCase.settings = hypothesis_settings(
    max_examples=120, stateful_step_count=60, deadline=None
)
KeyOrderMachine.TestCase.settings = hypothesis_settings(
    max_examples=60, stateful_step_count=60, deadline=None
)

TestSharePartition = SharePartitionMachine.TestCase
TestSharePartitionWithKeyOrder = KeyOrderMachine.TestCase
