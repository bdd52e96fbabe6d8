"""Fetch sessions (KIP-227): a consumer of many partitions names only what changed since its last fetch.

A session remembers, in order, the partitions that a client reads and what it was told of each; the
answer to an incremental fetch leaves out partitions with nothing new. Sessions are soft state: at
the bound the least recently used one goes, and its client starts over with a full fetch.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from postroad.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from postroad.wire.fetch import FetchRequest, PartitionAnswer, PartitionFetch, TopicKey

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_EPOCH_MAX: Final = 0x7FFFFFFF

PartitionKey = tuple[TopicKey, int]
_Told = tuple[int, int]  # high watermark and log start offset


class FetchSession:
    __slots__ = ("_told", "epoch", "id", "partitions")

    def __init__(self, session_id: int, partitions: list[PartitionFetch]) -> None:
        self.id = session_id
        self.epoch = 1
        self.partitions: dict[PartitionKey, PartitionFetch] = {(p.topic, p.index): p for p in partitions}
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
            if answer.records or answer.error or self._told.get(key) != told:
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
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, request: FetchRequest) -> FetchSession | None:
        """The session of this request: continued, new, or None for a plain fetch. Raises if it is unknown."""
        if request.session_epoch == FINAL_EPOCH:
            self._sessions.pop(request.session_id, None)
            return None
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
        session.update(request)
        return session

    def _open(self, partitions: list[PartitionFetch]) -> FetchSession | None:
        if self._max <= 0:
            return None
        if len(self._sessions) >= self._max:
            self._sessions.popitem(last=False)
        session = FetchSession(self._next_id, partitions)
        self._next_id = 1 if self._next_id == _EPOCH_MAX else self._next_id + 1
        self._sessions[session.id] = session
        return session

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
