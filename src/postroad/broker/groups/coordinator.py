"""The coordinator of some consumer groups: append, park, apply.

The groups room decides and never touches a file. Here its decisions become durable: the records of
an outcome are appended to a partition of `__consumer_offsets` as one batch; the replies stay parked
until that batch is committed; then the records are applied and the replies go out (L14: an
acknowledged commit survives). Nothing is applied before it is committed, so there is nothing to
roll back when the disk refuses.

A decision that changes a group must see the one before it, so it runs alone: decisions of one group
wait for each other, first come, first served (`alone`). Commits of offsets only add and share their
time with each other (`shared`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from postroad.broker.groups.doubts import GroupDoubts, StartOf
from postroad.broker.partition import Partition
from postroad.broker.record_log import RecordLog, Stored
from postroad.broker.replies import replied
from postroad.broker.turn import Turn
from postroad.errors import (
    ApiError,
    CoordinatorLoadInProgress,
    NotCoordinator,
    UnknownServerError,
)
from postroad.groups.answers import Answer, Outcome
from postroad.groups.coordinator import Groups
from postroad.groups.records import Record
from postroad.now import Now
from postroad.system.clock import Clock
from postroad.system.workers import Workers

Token = Callable[[Answer], None]
"""A callback of the handler, called once with the answer."""
Decide = Callable[[Now], Outcome]

SUSPENDED_S: Final = 0.5  # between two looks whether members can be heard again

log = logging.getLogger(__name__)


class GroupQueue:
    """The decisions of one group that are in flight, and those that wait for them."""

    __slots__ = ("alone", "in_flight", "waiting")

    def __init__(self) -> None:
        self.in_flight: dict[int, Outcome] = {}  # by what `id` says of each
        self.alone = False  # the one in flight wants no other beside it
        self.waiting: deque[tuple[bool, Decide, Token | None]] = deque()

    def admits(self, alone: bool) -> bool:
        return not self.in_flight or not (alone or self.alone)


class Coordinator:
    def __init__(
        self,
        partition: Partition,
        groups: Groups,
        clock: Clock,
        turn: Turn,
        loop: asyncio.AbstractEventLoop,
        start_of: StartOf = lambda topic, partition: None,
        has_evidence: Callable[[], bool] = lambda: True,
    ) -> None:
        """`has_evidence`: whether this node certainly coordinates the groups (`broker.evidence`)."""
        self.partition = partition
        self.groups = groups
        self.loaded = False
        self._resigned = False
        self._clock = clock
        self._log = RecordLog(partition, clock, turn)
        self.doubts = GroupDoubts(groups)
        self._start_of = start_of
        self._has_evidence = has_evidence
        self._is_suspended = False  # members were refused, or would have been, since they last had their time
        self._loop = loop
        self._queues: dict[str, GroupQueue] = {}  # only of groups with something in flight
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: int | None = None

    # --- decisions

    def alone(self, group_id: str, decide: Decide, token: Token | None) -> None:
        """Decide when nothing of this group is in flight; `token` hears an ApiError that is raised."""
        self._enter(group_id, True, decide, token)

    def shared(self, group_id: str, decide: Decide, token: Token) -> None:
        """Decide when nothing of this group is in flight that wants to be alone."""
        self._enter(group_id, False, decide, token)

    def check_loaded(self) -> None:
        if self._resigned:
            raise NotCoordinator()
        if not self.loaded:
            raise CoordinatorLoadInProgress()

    def check_evidence(self) -> None:
        """Raise NotCoordinator while another node may coordinate the groups.

        Members could not be heard then, so all of them have their full time again afterwards.
        """
        if not self._has_evidence():
            self._is_suspended = True
            raise NotCoordinator("This node has lost touch with the cluster.")
        if self._is_suspended:
            self._is_suspended = False
            self.groups.resume(self._clock.now())
            self._set_timer()

    def _enter(self, group_id: str, alone: bool, decide: Decide, token: Token | None) -> None:
        self.check_loaded()
        queue = self._queues.get(group_id)
        if queue is None:
            queue = self._queues[group_id] = GroupQueue()
        if queue.waiting or not queue.admits(alone):
            queue.waiting.append((alone, decide, token))
            return
        self._decide(group_id, queue, alone, decide, token)
        self._forget_if_idle(group_id, queue)

    def _decide(
        self, group_id: str, queue: GroupQueue, alone: bool, decide: Decide, token: Token | None
    ) -> None:
        try:
            outcome = decide(self._clock.now())
        except ApiError as error:
            _tell(token, error)
            return
        except Exception:  # a defect costs this request, not the group's other requests and timers
            log.exception("a decision of group %s failed", group_id)
            _tell(token, UnknownServerError())
            return
        if not outcome.records:
            _answer(outcome, None)
            return
        queue.in_flight[id(outcome)] = outcome
        queue.alone = alone
        self._append(outcome, lambda: self._done(group_id, queue, outcome))

    def _done(self, group_id: str, queue: GroupQueue, outcome: Outcome) -> None:
        """A decision is durable (or was refused): those that waited follow."""
        del queue.in_flight[id(outcome)]
        while queue.waiting and queue.admits(queue.waiting[0][0]):
            self._decide(group_id, queue, *queue.waiting.popleft())
        self._forget_if_idle(group_id, queue)

    def _forget_if_idle(self, group_id: str, queue: GroupQueue) -> None:
        if not queue.in_flight and not queue.waiting and self._queues.get(group_id) is queue:
            del self._queues[group_id]
        self._set_timer()

    def _append(self, outcome: Outcome, after: Callable[[], None]) -> None:
        def committed(error: ApiError | None) -> None:
            try:
                if error is None and not self._resigned:
                    for record in outcome.records:
                        self.groups.apply(record)
                    self.doubts.told(outcome.records)
                _answer(outcome, error)
            finally:
                after()

        self._log.append(outcome.records, committed)

    # --- time

    def _set_timer(self) -> None:
        """Only once the groups are loaded, and no longer when they are another node's."""
        at = self.groups.next_deadline() if self.loaded else None
        if at == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = None
        if at is not None:
            delay_ms = max(at - self._clock.monotonic_ms(), 0)
            self._timer = self._loop.call_later((delay_ms + 1) / 1000, self._due)

    def _due(self) -> None:
        self._timer = self._timer_at = None
        try:
            self.check_evidence()
        except NotCoordinator:
            self._timer = self._loop.call_later(SUSPENDED_S, self._due)
            return
        for group_id in self.groups.due(self._clock.now()):
            self.alone(group_id, partial(self.groups.expire, group_id), None)
        self._set_timer()

    def forget_topic(self, topic: str) -> None:
        """The topic was deleted; its committed offsets go too."""
        if self.loaded:
            for group_id in self.groups.groups_with_offsets(topic):
                self.alone(group_id, partial(self._forget, group_id, topic), None)

    def _forget(self, group_id: str, topic: str, _: Now) -> Outcome:
        return self.groups.forget_topic(group_id, topic)

    # --- start and end

    async def load(self, workers: Workers) -> None:
        """Apply all records of the partition, then serve. Raises what reading them raises; call it again."""
        await self._log.load(self._apply_stored, workers, self.doubts.damaged)
        await self._repair()
        self.groups.resume(self._clock.now())
        self.loaded = True
        self._set_timer()

    def _apply_stored(self, stored: Stored) -> None:
        if not self.doubts.is_note(stored.key):
            self.groups.apply(Record(stored.key, stored.value))

    async def _repair(self) -> None:
        """Where records are lost, the safe reading of it is durable before anybody is served."""
        records = self.doubts.repairs(self._start_of, self._clock.now())
        if records:
            await replied(partial(self._log.append, records))
            for record in records:
                self._apply_stored(Stored(0, record.key, record.value))

    def close(self) -> None:
        self.loaded = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def send_away(self) -> None:
        """Another node may coordinate these groups by now: whoever waits looks for it.

        Decisions that are on their way to the log stay there, and their groups wait for them: the next one
        would be made on a state that may be over.
        """
        unknown = NotCoordinator("Another node may coordinate by now; the outcome is unknown.")
        for queue in list(self._queues.values()):
            for outcome in list(queue.in_flight.values()):
                _answer(outcome, unknown)
                outcome.replies.clear()
        self._refuse_waiting()

    def _refuse_waiting(self) -> None:
        waiting = [entry for queue in self._queues.values() for entry in queue.waiting]
        for queue in self._queues.values():
            queue.waiting.clear()
        for _, _, token in waiting:
            _tell(token, NotCoordinator())

    def resign(self) -> None:
        """Another node coordinates these groups: whoever waits is sent there.

        Decisions that are on their way to the log are told by its partition, which is not led here any more.
        """
        self.close()
        self._resigned = True
        self._refuse_waiting()
        for parked in self.groups.parked():
            _tell(cast(Token, parked), NotCoordinator())


def _answer(outcome: Outcome, error: ApiError | None) -> None:
    for token, answer in outcome.replies:
        cast(Token, token)(answer if error is None else error)


def _tell(token: Token | None, error: ApiError) -> None:
    if token is not None:
        token(error)
