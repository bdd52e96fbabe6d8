"""One node's share session: which partitions are read there, fetches, acknowledgements.

Fetches and acknowledgements of a session share one counter, its epoch. A node that waits for messages
would hold up an acknowledgement behind it on the same connection, so each has a connection of its own.

1. One fetch and one acknowledgement are under way at most, and a fetch is only sent when no
   acknowledgement is: requests can reach the node in the wrong order in one way only, an acknowledgement
   before the fetch that was sent before it. The node refuses that and changes nothing; it is sent again.
2. A session that the node doesn't know, a wrong epoch or a lost connection: the next fetch opens a new
   one. Locks may be gone with the old one; the node knows, whoever acknowledges is told.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from postroad.client.backoff import Backoff
from postroad.client.client import Client
from postroad.errors import (
    ApiError,
    InvalidShareSessionEpoch,
    NetworkException,
    PostroadError,
    ProtocolError,
    RequestTimedOut,
    ShareSessionLimitReached,
    ShareSessionNotFound,
    UnsupportedVersion,
    by_code,
)
from postroad.wire.messages import share_acknowledge, share_fetch
from postroad.wire.share_requests import NOT_GIVEN, InTransaction, write_private_tags

NEW: Final = 0
FINAL: Final = -1
NO_TAGS: Final = b"\0"
EPOCH_MAX: Final = 0x7FFFFFFF
MIN_BYTES: Final = 1
MAX_BYTES: Final = 50 * 1024 * 1024
RECORD_LIMIT: Final = 1  # the mode in which a node keeps to max_records exactly
RENEW_FROM: Final = 2  # the first version of ShareAcknowledge that can renew
ANSWER_MARGIN_S: Final = 10.0  # beyond what the node was told to wait
OVERTAKEN_S: Final = 2.0  # a fetch that was sent is known to the node by then
CLOSE_TIMEOUT_S: Final = 5.0

GONE: Final = (ShareSessionNotFound, InvalidShareSessionEpoch, ShareSessionLimitReached)
LOST: Final = (NetworkException, RequestTimedOut, ProtocolError)

TopicIdPartition = tuple[bytes, int]
"""A topic's id and a partition, as share sessions name it."""


class AckBatch(NamedTuple):
    first: int
    last: int
    type: int


class Terms(NamedTuple):
    """What one request says of all its acknowledgements; NOT_GIVEN: as the subscription is configured."""

    renew: bool = False
    lock_ms: int = NOT_GIVEN  # of renewed locks
    delay_ms: int = NOT_GIVEN  # until a released message comes again
    reason: str = ""  # of rejected messages, for their dead letters
    late: int = NOT_GIVEN  # what an owner may say when its lock is over (`wire.share_requests`)
    transaction: InTransaction | None = None  # of which pledges are a part


class ShareSession:
    def __init__(self, client: Client, node: int, group: str, member: str) -> None:
        self.node = node
        self.losses = 0  # how often the node forgot what was held in the session, as far as is known
        self._client = client
        self._group = group
        self._member = member
        self._epoch = NEW
        self._partitions: dict[TopicIdPartition, None] = {}  # what the node knows
        self._fetches = client.new_lane("share fetches")
        self._acknowledgements = client.new_lane("share acknowledgements")
        self._turn = asyncio.Lock()  # rule 1
        self._is_fetching = False

    async def fetch(
        self,
        topic_partitions: Iterable[TopicIdPartition],
        *,
        max_records: int,
        max_wait_ms: int,
        max_bytes: int = MAX_BYTES,
        lock_ms: int = NOT_GIVEN,
        owner: str = "",
        run_max: int = NOT_GIVEN,
    ) -> list[tuple[TopicIdPartition, Any]]:
        """What came of these partitions, each with its part of the answer. A TryAgain: come again.

        With an `owner` what is acquired belongs to that name and not to this session (`owned_locks`). Where
        the subscription keeps the order of keys, up to `run_max` messages of a key come at once.

        Not to be cancelled: the node would go on, and hand messages to nobody.
        """
        assert not self._is_fetching, "one fetch at a time"
        async with self._turn:
            request = self._fetch_request(
                dict.fromkeys(topic_partitions), max_records, max_wait_ms, max_bytes
            )
            self._is_fetching = True
        try:
            api: Any = share_fetch
            tags = write_private_tags(lock_ms, owner=owner, run_max=run_max)
            if tags != NO_TAGS:
                api = Tagged(share_fetch, tags)
            timeout_s = max_wait_ms / 1000 + ANSWER_MARGIN_S
            answer = await self._ask(api, request, self._fetches, timeout_s)
        finally:
            self._is_fetching = False
        return [
            ((topic.topic_id, partition.partition_index), partition)
            for topic in answer.responses
            for partition in topic.partitions
        ]

    async def acknowledge(
        self, batches: Mapping[TopicIdPartition, Sequence[AckBatch]], terms: Terms
    ) -> dict[TopicIdPartition, ApiError]:
        """Durable afterwards, but for the partitions with an error: of these nothing was changed.

        NetworkException, RequestTimedOut: nobody knows. UnsupportedVersion: the node can't renew locks.
        """
        if terms.renew:
            await self._check_renewal()
        async with self._turn:
            if self._epoch == NEW:
                await self._open()
            answer = await self._acknowledge_once(batches, terms)
        return refused_in(answer)

    async def close(self) -> None:
        """The node releases what the member still holds there."""
        if self._epoch != NEW:
            request = self._acknowledge_request({}, Terms())
            request.share_session_epoch = FINAL
            with contextlib.suppress(PostroadError):
                await self._ask(share_acknowledge, request, self._acknowledgements, CLOSE_TIMEOUT_S)
        for lane in (self._fetches, self._acknowledgements):
            self._client.close_lane(lane)

    # --- requests ------------------------------------------------------------------------------

    def _fetch_request(
        self,
        topic_partitions: dict[TopicIdPartition, None],
        max_records: int,
        max_wait_ms: int,
        max_bytes: int,
    ) -> share_fetch.ShareFetchRequest:
        """Names what is new to the session and what leaves it."""
        added = [
            topic_partition for topic_partition in topic_partitions if topic_partition not in self._partitions
        ]
        forgotten = [
            topic_partition for topic_partition in self._partitions if topic_partition not in topic_partitions
        ]
        self._partitions = topic_partitions
        return share_fetch.ShareFetchRequest(
            group_id=self._group,
            member_id=self._member,
            share_session_epoch=self._next_epoch(),
            max_wait_ms=max_wait_ms,
            min_bytes=MIN_BYTES,
            max_bytes=max_bytes,
            max_records=max_records,
            batch_size=max_records,
            share_acquire_mode=RECORD_LIMIT,
            topics=[
                share_fetch.FetchTopic(topic, [share_fetch.FetchPartition(index) for index in indexes])
                for topic, indexes in _by_topic(added).items()
            ],
            forgotten_topics_data=[
                share_fetch.ForgottenTopic(topic, indexes) for topic, indexes in _by_topic(forgotten).items()
            ],
        )

    def _acknowledge_request(
        self, batches: Mapping[TopicIdPartition, Sequence[AckBatch]], terms: Terms
    ) -> share_acknowledge.ShareAcknowledgeRequest:
        return share_acknowledge.ShareAcknowledgeRequest(
            group_id=self._group,
            member_id=self._member,
            is_renew_ack=terms.renew,
            topics=said_of(batches),
        )

    async def _acknowledge_once(
        self, batches: Mapping[TopicIdPartition, Sequence[AckBatch]], terms: Terms
    ) -> Any:
        request = self._acknowledge_request(batches, terms)
        request.share_session_epoch = self._next_epoch()
        api: Any = share_acknowledge
        tags = write_private_tags(
            terms.lock_ms, terms.delay_ms, reason=terms.reason, transaction=terms.transaction
        )
        if tags != NO_TAGS:
            api = Tagged(share_acknowledge, tags)
        backoff = Backoff(OVERTAKEN_S, self._client.runtime)
        while True:
            try:
                return await self._ask(
                    api, request, self._acknowledgements, self._client.timeout_s, may_overtake=True
                )
            except InvalidShareSessionEpoch:
                if not self._is_fetching or not await backoff.wait():
                    self._reset()
                    raise

    async def _open(self) -> None:
        """A session without a fetch: acknowledgements need one. Partitions are named by the next fetch."""
        request = self._fetch_request({}, 0, 0, 0)
        await self._ask(share_fetch, request, self._fetches, self._client.timeout_s)

    async def _check_renewal(self) -> None:
        connection = await self._client.connection(self.node, self._acknowledgements)
        if connection.version(share_acknowledge) < RENEW_FROM:
            raise UnsupportedVersion(f"{connection.address} can't renew locks.")

    # --- asking --------------------------------------------------------------------------------

    async def _ask(
        self, api: Any, request: Any, lane: str, timeout_s: float, may_overtake: bool = False
    ) -> Any:
        """The answer; rule 2 where there is none. An epoch that `may_overtake` is the caller's affair."""
        try:
            answer = await self._client.call(api, request, node=self.node, lane=lane, timeout_s=timeout_s)
        except LOST:
            self._reset()
            raise
        if not answer.error_code:
            return answer
        error = by_code(answer.error_code, answer.error_message)
        if isinstance(error, GONE) and not (may_overtake and isinstance(error, InvalidShareSessionEpoch)):
            self._reset()
        raise error

    def _next_epoch(self) -> int:
        epoch = self._epoch
        self._epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        return epoch

    def _reset(self) -> None:
        self.losses += self._epoch != NEW
        self._epoch = NEW
        self._partitions = {}


def said_of(
    batches: Mapping[TopicIdPartition, Sequence[AckBatch]],
) -> list[share_acknowledge.AcknowledgeTopic]:
    """The acknowledgements as a request says them."""
    topics: dict[bytes, list[share_acknowledge.AcknowledgePartition]] = {}
    for (topic, index), given in batches.items():
        said = [share_acknowledge.AcknowledgementBatch(ack.first, ack.last, [ack.type]) for ack in given]
        topics.setdefault(topic, []).append(share_acknowledge.AcknowledgePartition(index, said))
    return [share_acknowledge.AcknowledgeTopic(*topic) for topic in topics.items()]


def refused_in(answer: Any) -> dict[TopicIdPartition, ApiError]:
    """The partitions of which nothing was changed, and why."""
    return {
        (topic.topic_id, partition.partition_index): by_code(partition.error_code, partition.error_message)
        for topic in answer.responses
        for partition in topic.partitions
        if partition.error_code
    }


class Tagged:
    """An API whose requests end with fields of our own; brokers that don't know them skip them."""

    def __init__(self, api: Any, tags: bytes) -> None:
        self.KEY, self.NAME, self.FLEXIBLE_FROM = api.KEY, api.NAME, api.FLEXIBLE_FROM
        self.MIN_VERSION, self.MAX_VERSION = api.MIN_VERSION, api.MAX_VERSION
        self.decode_response = api.decode_response
        self._api = api
        self._tags = tags

    def encode_request(self, request: Any, version: int) -> bytes:
        body: bytes = self._api.encode_request(request, version)
        return body[:-1] + self._tags  # in place of the byte that says: no tags


def _by_topic(topic_partitions: Iterable[TopicIdPartition]) -> dict[bytes, list[int]]:
    gathered: dict[bytes, list[int]] = {}
    for topic, index in topic_partitions:
        gathered.setdefault(topic, []).append(index)
    return gathered
