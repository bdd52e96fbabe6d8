"""Fetch sessions (KIP-227): a consumer of many partitions names only what changed since its last fetch.

A session remembers, in order, the partitions that a client reads and what it was told of each; the
answer to an incremental fetch leaves out partitions with nothing new. Sessions are soft state, and
their number is bounded. At the bound a session that has fallen out of use makes room, and its client,
should it come back, starts over with a full fetch. While all are in use a newcomer gets none and
sends its whole list each time: taking turns, all clients would start over with every fetch.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from postroad.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from postroad.wire.fetch import FetchRequest, PartitionAnswer, PartitionFetch, TopicKey

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 0x7FFFFFFF
# Out of use: others came so often since, counted in full houses. Requests and not seconds, because
# nobody waits for room while nobody fetches.
_ROUNDS_UNUSED: Final = 2

PartitionKey = tuple[TopicKey, int]
_Told = tuple[int, int]  # high watermark and log start offset


class FetchSession:
    __slots__ = ("_told", "epoch", "id", "partitions", "used_at")

    def __init__(self, session_id: int, partitions: list[PartitionFetch]) -> None:
        self.id = session_id
        self.epoch = 1
        self.partitions: dict[PartitionKey, PartitionFetch] = {(p.topic, p.index): p for p in partitions}
        self.used_at = 0  # how many requests had come by then
        self._told: dict[PartitionKey, _Told] = {}

    def update(self, request: FetchRequest) -> None:
        for wanted in request.partitions:
            self.partitions[wanted.topic, wanted.index] = wanted
        for key in request.forgotten:
            self.partitions.pop(key, None)
            self._told.pop(key, None)
        self.epoch = 1 if self.epoch == _EPOCH_MAX else self.epoch + 1

    def news(self, answers: list[PartitionAnswer]) -> list[PartitionAnswer]:
        """The answers that tell the client something; those with records go to the end of the queue."""
        fresh = []
        for answer in answers:
            key = (answer.topic, answer.index)
            told = (answer.high_watermark, answer.start_offset)
            if answer.records or answer.error or answer.preferred_replica >= 0 or self._told.get(key) != told:
                fresh.append(answer)
                self._told[key] = told
            if answer.records and key in self.partitions:
                self.partitions[key] = self.partitions.pop(key)
        fresh.sort(key=_topic)
        return fresh


class FetchSessions:
    def __init__(self, sessions_max: int) -> None:
        self._max = sessions_max
        self._next_id = 1
        self._requests = 0
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # the one used last at the end

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest) -> FetchSession | None:
        """The session of this request: continued, new, or None for a plain fetch. Raises if it is unknown."""
        if request.session_epoch == FINAL_EPOCH:
            self._sessions.pop(request.session_id, None)
            return None
        self._requests += 1
        if request.session_epoch == INITIAL_EPOCH:
            self._sessions.pop(request.session_id, None)
            return self._open(request.partitions)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionIdNotFound()
        if session.epoch != request.session_epoch:
            raise InvalidFetchSessionEpoch()
        self._check_keys(session, request)
        self._sessions.move_to_end(session.id)
        session.used_at = self._requests
        session.update(request)
        return session

    def _open(self, partitions: list[PartitionFetch]) -> FetchSession | None:
        if len(self._sessions) >= self._max and not self._make_room():
            return None
        session = FetchSession(self._next_id, partitions)
        session.used_at = self._requests
        self._next_id = 1 if self._next_id == _EPOCH_MAX else self._next_id + 1
        self._sessions[session.id] = session
        return session

    def _make_room(self) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or self._requests - oldest.used_at <= _ROUNDS_UNUSED * self._max:
            return False
        del self._sessions[oldest.id]
        return True

    @staticmethod
    def _check_keys(session: FetchSession, request: FetchRequest) -> None:
        """A client that changes between topic names and ids must start a new session."""
        if not request.partitions or not session.partitions:
            return
        known = next(iter(session.partitions))[0]
        if type(known) is not type(request.partitions[0].topic):
            raise FetchSessionTopicIdError()


def _topic(answer: PartitionAnswer) -> bytes:
    return answer.topic if isinstance(answer.topic, bytes) else answer.topic.encode()
