"""Reads topics: partitions that the caller names, or those that a group gives it.

A record that `poll` returned counts as handled when `poll` is called the next time (or `commit`, or
`close`): only then may its offset be committed. So a consumer that dies redelivers, and loses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from postroad.client import groups, offsets
from postroad.client.client import Client
from postroad.client.fetcher import Fetched, Fetcher, Near
from postroad.client.groups import OPERATOR, Committer
from postroad.client.member import JOIN_AGAIN, GroupMember
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED
from postroad.errors import PostroadError

AUTO_COMMIT_MS: Final = 5_000
LAST_COMMIT_S: Final = 5.0  # a consumer that closes does not wait longer for its last commit


class Consumer:
    """`assign` or `subscribe`, then `poll` in a loop. `reset`: where to begin without a position.

    `isolation`: with READ_COMMITTED it reads what is committed, and waits when it joins for open transactions
    that are about to commit other offsets.
    """

    def __init__(
        self,
        client: Client,
        *,
        reset: int | None = LATEST,
        group: str | None = None,
        auto_commit_ms: int | None = AUTO_COMMIT_MS,
        member: Mapping[str, Any] | None = None,
        isolation: int = READ_UNCOMMITTED,
        **fetching: Any,
    ) -> None:
        assert reset in (None, EARLIEST, LATEST), "reset: None, EARLIEST or LATEST"
        self._client = client
        self._reset = reset
        self._group = group
        self._fetcher = Fetcher(client, reset=reset, committed_only=isolation == READ_COMMITTED, **fetching)
        self._isolation = isolation
        self._member = GroupMember(client, group, **(member or {})) if group is not None else None
        self._topics: list[str] = []
        self._committed: dict[TopicPartition, int] = {}
        self._auto_commit_s = None if auto_commit_ms is None else auto_commit_ms / 1000
        self._next_commit = 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """The next offset of each partition that is read now."""
        return self._fetcher.positions

    @property
    def near(self) -> Mapping[TopicPartition, Near]:
        """The partitions that are read from a replica in the consumer's rack."""
        return self._fetcher.near

    @property
    def uncommitted(self) -> dict[TopicPartition, int]:
        """The positions that `commit` would commit now: those that differ from what is committed."""
        return {
            topic_partition: at
            for topic_partition, at in self.positions.items()
            if self._committed.get(topic_partition) != at
        }

    @property
    def committer(self) -> Committer:
        """The member as its group knows it: its id and its generation. Both change when it joins again."""
        return self._member.committer if self._member is not None else OPERATOR

    async def assign(self, topic_partitions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, each from an offset, from EARLIEST, or from LATEST."""
        named = {topic_partition: at for topic_partition, at in topic_partitions.items() if at < 0}
        found = await offsets.find(self._client, named)
        self._fetcher.seek(
            {
                topic_partition: found[topic_partition].offset if topic_partition in found else at
                for topic_partition, at in topic_partitions.items()
            }
        )

    async def subscribe(self, topics: Sequence[str]) -> None:
        """Share these topics with the group's other members; takes effect with the next poll."""
        assert self._member is not None, "subscribe needs a group"
        self._topics = list(topics)
        self._member.must_join = True

    async def poll(self, timeout_s: float) -> list[Fetched]:
        """Records of any number of partitions, or nothing if none came in time. To join the group first
        takes as long as its other members need to come: each member polls in a task of its own."""
        if self._member is not None and self._topics:
            if self._member.failure is not None:
                raise self._member.failure
            if self._member.must_join:
                await self._join(self._member)
        if self._auto_commit_s is not None and asyncio.get_running_loop().time() >= self._next_commit:
            await self.commit()
        return await self._fetcher.next(timeout_s)

    def rewind(self, topic_partition: TopicPartition, offset: int) -> None:
        """What was polled from this offset on is not handled: it is polled again, and not committed."""
        self._fetcher.positions[topic_partition] = offset

    async def commit(self, timeout_s: float | None = None) -> bool:
        """What was polled so far is handled. Nothing happens without a group, or without news.
        False: a rebalance under way refused it, and the records come again, to whoever owns them next."""
        if self._member is None or self._group is None:
            return True
        if self._auto_commit_s is not None:
            self._next_commit = asyncio.get_running_loop().time() + self._auto_commit_s
        news = self.uncommitted
        if not news:
            return True
        try:
            await groups.commit(self._client, self._group, news, self._member.committer, timeout_s)
        except JOIN_AGAIN:
            self._member.must_join = True
            return False
        self._committed.update(news)
        return True

    def committed_in_transaction(self, offsets: Mapping[TopicPartition, int]) -> None:
        """These were committed in a transaction: `uncommitted` names what came after them."""
        self._committed.update(offsets)

    async def close(self) -> None:
        """Commits, leaves the group, gives up what is under way."""
        if self._member is not None:
            if self._auto_commit_s is not None:
                with contextlib.suppress(PostroadError):
                    await self.commit(LAST_COMMIT_S)
            await self._member.leave()
        await self._fetcher.close()

    async def _join(self, member: GroupMember) -> None:
        if self._auto_commit_s is not None and self.positions:
            with contextlib.suppress(PostroadError):
                await self.commit(LAST_COMMIT_S)
        self._fetcher.seek({})
        owned = await member.join(self._topics)
        stable = self._isolation == READ_COMMITTED
        self._committed = await groups.committed(self._client, member.group, owned, stable=stable)
        missing = [topic_partition for topic_partition in owned if topic_partition not in self._committed]
        begin: dict[TopicPartition, int] = {}
        if missing and self._reset is not None:
            found = await offsets.find(self._client, dict.fromkeys(missing, self._reset))
            begin = {topic_partition: at.offset for topic_partition, at in found.items()}
        self._fetcher.seek({**self._committed, **begin})
