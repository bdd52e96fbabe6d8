"""A share partition as a dict from offset to state: slow, and simple enough to be believed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from postroad.now import Now
from postroad.queues.entry import QueueEntry
from postroad.queues.settings import Order, QueueSettings


@dataclass
class Held:
    member: str
    until: int
    deliveries: int


@dataclass
class Outcome:
    """What one decision does to its offsets once it is committed, and what they were before."""

    done: set[int] = field(default_factory=set)
    dying: set[int] = field(default_factory=set)
    released: dict[int, tuple[int, int]] = field(default_factory=dict)  # deliveries, available at
    held: dict[int, Held] = field(default_factory=dict)
    doomed: set[int] = field(default_factory=set)
    late: dict[int, int] = field(default_factory=dict)  # held by no one when accepted: available at
    pledged: dict[int, tuple[int, int]] = field(default_factory=dict)  # producer, epoch
    ended: dict[int, int] = field(default_factory=dict)  # by producer: the epoch of the end

    def offsets(self) -> set[int]:
        return self.done | self.dying | set(self.released) | set(self.pledged)


class Model:
    def __init__(self, settings: QueueSettings) -> None:
        self.settings = settings
        self.messages: dict[int, QueueEntry] = {}
        self.log_start = 0
        self.log_end = 0
        # hard
        self.start = 0
        self.done: set[int] = set()
        self.dying: set[int] = set()
        self.deliveries: dict[int, int] = {}
        self.pledged: dict[int, tuple[int, int]] = {}
        self.ended: dict[int, int] = {}
        self.count_pledged: Callable[[], int] = lambda: 0  # those below the log's start may count, too
        # soft
        self.frontier = 0
        self.held: dict[int, Held] = {}
        self.settling: set[int] = set()
        self.doomed: set[int] = set()
        self.available_at: dict[int, int] = {}
        self.expires_at: dict[int, int] = {}

    # -- hard ------------------------------------------------------------------------------------------

    def commit(self, outcome: Outcome) -> None:
        self.done |= outcome.done
        self.dying |= outcome.dying - self.done
        for offset, (deliveries, _) in outcome.released.items():
            self.deliveries[offset] = deliveries
        for offset, mark in outcome.pledged.items():
            self.pledged[offset] = mark
            self.deliveries[offset] = outcome.held[offset].deliveries
        for producer, epoch in outcome.ended.items():
            self.ended[producer] = epoch
            self.pledged = {
                o: mark for o, mark in self.pledged.items() if mark[0] != producer or mark[1] >= epoch
            }
        for offset in outcome.done | outcome.dying:
            self.deliveries.pop(offset, None)

    def finished(self, offset: int) -> bool:
        return offset < max(self.start, self.log_start) or offset in self.done or offset in self.dying

    # -- soft ------------------------------------------------------------------------------------------

    def settled(self, outcome: Outcome) -> None:
        self.settling -= outcome.offsets()
        self._free({offset: available_at for offset, (_, available_at) in outcome.released.items()})

    def _free(self, available_at: dict[int, int]) -> None:
        for offset, at in available_at.items():
            if offset < self.frontier:
                in_line = self.settings.order is not Order.NONE and not self._head(offset)
                self.available_at[offset] = 0 if in_line else at

    def unsettle(self, outcome: Outcome) -> None:
        self.settling -= outcome.offsets()
        low = max(self.start, self.log_start)
        self.held.update({offset: held for offset, held in outcome.held.items() if offset >= low})
        self.doomed |= {offset for offset in outcome.doomed if low <= offset < self.frontier}
        self._free(outcome.late)

    def decide(self, outcome: Outcome) -> None:
        for offset in outcome.offsets():
            held = self.held.pop(offset, None)
            if held is not None:
                outcome.held[offset] = held
            elif offset not in outcome.late:
                outcome.doomed.add(offset)
                self.doomed.discard(offset)
            self.settling.add(offset)

    def archive(self, outcome: Outcome, offset: int) -> None:
        (outcome.dying if self.settings.dead_letters else outcome.done).add(offset)

    def release(self, outcome: Outcome, offset: int, now: Now, delay_ms: int | None) -> None:
        deliveries = self.held[offset].deliveries
        limit = self.settings.delivery_limit
        if limit and deliveries >= limit:
            self.archive(outcome, offset)
            return
        wait = self.settings.backoff.delay_ms(deliveries, 0.5) if delay_ms is None else delay_ms
        outcome.released[offset] = (deliveries, now.ms + wait)

    def take_back(self, offset: int) -> None:
        """It was never delivered: neither counted nor delayed."""
        del self.held[offset]
        self._free({offset: 0})

    def send_along(self, offset: int) -> None:
        """It goes out though it is not the head of its lane; its time has come, whatever the clock says."""
        self.available_at[offset] = 0

    def extend(self, upto: int, now: Now) -> set[int]:
        """The offsets that have expired already."""
        expired = set()
        for offset in range(self.frontier, upto):
            entry = self.messages.get(offset)
            if entry is None or self.finished(offset):
                continue
            self.available_at[offset] = (
                now.ms + entry.deliver_at_ms - now.wall_ms if entry.deliver_at_ms else 0
            )
            self.expires_at.pop(offset, None)
            if entry.expires_at_ms:
                self.expires_at[offset] = now.ms + entry.expires_at_ms - now.wall_ms
            if offset in self.held or offset in self.settling or offset in self.pledged:
                self.available_at[offset] = 0
            elif entry.expires_at_ms and entry.expires_at_ms <= now.wall_ms:
                expired.add(offset)
        self.frontier = upto
        return expired

    def clock_stepped(self, ms: int, now: Now) -> None:
        for offset, at in self.available_at.items():
            in_line = not self._head(offset)
            if at and (in_line or (at > now.ms and offset not in self.deliveries)):
                self.available_at[offset] = max(at - ms, 1)
        self.expires_at = {offset: max(at - ms, 1) for offset, at in self.expires_at.items()}

    def forget(self) -> None:
        self.frontier = max(self.start, self.log_start)
        self.available_at.clear()
        self.expires_at.clear()
        self.doomed.clear()

    def reset(self, start: int) -> None:
        self.start = start
        self.done.clear()
        self.dying.clear()
        self.deliveries.clear()
        self.pledged.clear()

    def drop_soft(self) -> None:
        self.held.clear()
        self.settling.clear()
        self.forget()

    def log_starts_at(self, offset: int) -> None:
        self.log_start = offset
        self.frontier = max(self.frontier, offset)
        for state in (self.held, self.available_at, self.expires_at):
            for below in [each for each in state if each < offset]:
                del state[below]
        self.doomed = {each for each in self.doomed if each >= offset}

    def entries(self, first: int, upto: int) -> list[QueueEntry]:
        """What a scanner finds from here on: neighbours that ask for the same are one entry."""
        entries: list[QueueEntry] = []
        for offset in range(first, upto):
            entry = self.messages.get(offset)
            if entry is None:
                continue
            if entries and entries[-1][2:] == entry[2:] and entries[-1].last + 1 == offset:
                entries[-1] = entries[-1]._replace(last=offset)
            else:
                entries.append(entry._replace(first=offset, last=offset))
        return entries

    # -- questions -------------------------------------------------------------------------------------

    def state(self, offset: int, now: Now) -> str:
        if offset not in self.messages or (self.finished(offset) and offset not in self.dying):
            return "done"
        if offset < max(self.start, self.log_start):
            return "done"
        if offset in self.dying:
            return "dying"
        if offset in self.pledged:
            return "pledged"
        if offset in self.held:
            return "held"
        if offset in self.settling or offset in self.doomed:
            return "settling"
        if offset >= self.frontier:
            return "available"
        if not self._head(offset):
            return "waiting"
        return "delayed" if self.available_at.get(offset, 0) > now.ms else "available"

    def available(self, now: Now, upto: int | None) -> list[int]:
        """What could go out now, or is found to be doomed when it is about to."""
        end = self.frontier if upto is None else min(self.frontier, upto)
        low = max(self.start, self.log_start)
        return [offset for offset in range(low, end) if self.state(offset, now) == "available"]

    def unfit(self, offset: int, now: Now) -> bool:
        limit = self.settings.delivery_limit
        over = limit and self.deliveries.get(offset, 0) >= limit
        return bool(over) or self.expires_at.get(offset, now.ms + 1) <= now.ms

    def room(self, member: str, records_max: int) -> int:
        settings = self.settings
        mine = sum(1 for held in self.held.values() if held.member == member)
        return min(
            records_max,
            settings.partition_locks_max - len(self.held) - self.count_pledged(),
            settings.member_locks_max - mine,
            settings.locks_max - len(self.held),
        )

    def tenant_counts(self, offsets: Iterable[int]) -> dict[bytes | None, int]:
        counts: dict[bytes | None, int] = {}
        for offset in offsets:
            tenant = self.messages[offset].tenant
            counts[tenant] = counts.get(tenant, 0) + 1
        return counts

    def next_deadline(self, now: Now) -> int | None:
        ends = [held.until for held in self.held.values()]
        low = max(self.start, self.log_start)
        delayed = [o for o in range(low, self.frontier) if self.state(o, now) == "delayed"]
        return min(ends + [self.available_at[offset] for offset in delayed], default=None)

    def _lane(self, offset: int) -> bytes | None:
        if self.settings.order is Order.PARTITION:
            return b""
        return self.messages[offset].key if self.settings.order is Order.KEY else None

    def run_behind(self, offset: int, now: Now, upto: int | None) -> list[int]:
        """What may go out along with this one, which is the head of its lane."""
        lane = self._lane(offset)
        found: list[int] = []
        for each in range(offset + 1, self.frontier if upto is None else min(self.frontier, upto)):
            if lane is None or each not in self.messages or self._lane(each) != lane or self.finished(each):
                continue
            in_line = self.state(each, now) == "waiting"
            if not in_line or self.unfit(each, now) or self.available_at.get(each, 0) > now.ms:
                break
            found.append(each)
        return found

    def _head(self, offset: int) -> bool:
        """Whether nothing of its lane is undone before it."""
        lane = self._lane(offset)
        if lane is None:
            return True
        low = max(self.start, self.log_start)
        before = (each for each in range(low, offset) if each in self.messages and not self.finished(each))
        return all(self._lane(each) != lane for each in before)
