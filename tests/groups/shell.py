"""The smallest coordinator around `Groups`: it appends, commits, applies and answers, all in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

from postroad.errors import ApiError, CoordinatorNotAvailable
from postroad.groups import assignment
from postroad.groups.answers import HeartbeatAnswer, Joined, MemberIdGiven, Outcome, Synced
from postroad.groups.assignment import NamedPartitions
from postroad.groups.consumer import ConsumerGroup
from postroad.groups.coordinator import Groups
from postroad.groups.records import OffsetValue, Record
from postroad.groups.requests import (
    Client,
    CommitRequest,
    HeartbeatRequest,
    JoinRequest,
    MemberIdentity,
    OffsetToCommit,
    Partitions,
    SyncRequest,
    TopicInfo,
    TopicPartition,
    Topics,
)
from postroad.groups.settings import GroupSettings
from postroad.groups.subscription import read_subscription
from postroad.now import Now

WALL_MS = 1_700_000_000_000
GROUP = "orders"


class Shell:
    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.settings = settings or GroupSettings(initial_rebalance_delay_ms=0)
        self.groups = Groups(self.settings, lambda: self.topics)
        self.log: list[Record] = []
        self.answers: dict[object, object] = {}
        self.ms = 1_000
        self.failing = False  # the log refuses appends
        self.checked = True  # all invariants, after each step
        self._tokens = count(1)
        self._ids = count(1)
        self._topics: dict[str, TopicInfo] = {}
        self._topics_version = 0

    @property
    def now(self) -> Now:
        return Now(self.ms, WALL_MS + self.ms)

    # --- what a broker does ---

    def run(self, decide: Callable[[], Outcome], token: object = None) -> Outcome:
        try:
            outcome = decide()
        except ApiError as error:
            self.answers[token] = error
            self._check()
            return Outcome()
        if outcome.records and self.failing:
            self.answers |= {reply.token: CoordinatorNotAvailable() for reply in outcome.replies}
            return outcome
        self.log += outcome.records
        for record in outcome.records:
            self.groups.apply(record)
        assert not self.answers.keys() & dict(outcome.replies).keys(), "answered twice"
        self.answers |= dict(outcome.replies)
        self._check()
        return outcome

    def _check(self) -> None:
        if self.checked:
            self.groups.check()

    def advance(self, ms: int) -> None:
        """Time passes, deadline by deadline."""
        end = self.ms + ms
        while True:
            at = self.groups.next_deadline()
            if at is None or at > end:
                break
            self.ms = max(self.ms, at)
            for group_id in self.groups.due(self.now):
                self.run(partial(self.groups.expire, group_id, self.now))
        self.ms = end

    def restart(self, *, compacted: bool = False) -> None:
        self.groups = self.rebuilt(compacted=compacted)
        self.groups.resume(self.now)
        self.groups.check()

    def rebuilt(self, *, compacted: bool = False) -> Groups:
        """What another coordinator would read from the log."""
        log = self.log
        if compacted:
            last = {record.key: at for at, record in enumerate(log)}
            log = [record for at, record in enumerate(log) if last[record.key] == at]
        groups = Groups(self.settings, lambda: self.topics)
        for record in log:
            groups.apply(record)
        return groups

    # --- the classic protocol ---

    def join(
        self,
        member_id: str = "",
        *,
        group: str = GROUP,
        instance_id: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] | None = None,
        topics: tuple[str, ...] = ("t",),
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        v4: bool = True,
        v9: bool = True,
    ) -> object:
        """Returns the token; the answer is in `answers` when there is one."""
        offered = protocols if protocols is not None else (("range", subscription(*topics)),)
        request = JoinRequest(
            group, member_id, instance_id, Client("client", "/127.0.0.1"), session_ms, rebalance_ms,
            protocol_type, offered, v4, v9,
        )  # fmt: skip
        token = f"join-{next(self._tokens)}"
        new_id = f"m{next(self._ids)}"
        self.run(lambda: self.groups.join(request, new_id, token, self.now), token)
        return token

    def joined(self, token: object) -> Joined:
        answer = self.answers.pop(token)
        assert isinstance(answer, Joined), answer
        return answer

    def new_member(self, **options: object) -> tuple[str, object]:
        """Ask for an id, then join with it; the id and the token of the second join."""
        given = self.answers.pop(self.join(**options))  # type: ignore[arg-type]
        assert isinstance(given, MemberIdGiven), given
        return given.member_id, self.join(given.member_id, **options)  # type: ignore[arg-type]

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = GROUP,
        instance_id: str | None = None,
        protocol_type: str | None = "consumer",
        protocol: str | None = None,
    ) -> object:
        request = SyncRequest(
            group, member_id, instance_id, generation, protocol_type, protocol, assignments or {}
        )
        token = f"sync-{next(self._tokens)}"
        self.run(lambda: self.groups.sync(request, token, self.now), token)
        return token

    def synced(self, token: object) -> bytes:
        answer = self.answers.pop(token)
        assert isinstance(answer, Synced), answer
        return answer.assignment

    def beat(self, member_id: str, generation: int, *, instance_id: str | None = None) -> None:
        self.groups.heartbeat(GROUP, member_id, instance_id, generation, self.now)
        self.groups.check()

    def leave(self, *who: MemberIdentity, group: str = GROUP) -> object:
        token = f"leave-{next(self._tokens)}"
        self.run(lambda: self.groups.leave(group, who, token, self.now), token)
        return self.answers.pop(token)

    def stable_group(self, size: int, **options: object) -> tuple[list[str], int]:
        """A group of this size in Stable; the ids (the leader first) and the generation."""
        ids, tokens = [], []
        for _ in range(size):
            member_id, token = self.new_member(**options)
            ids.append(member_id)
            tokens.append(token)
            for offset_key, other in enumerate(ids[:-1]):
                tokens[offset_key] = self.join(other, **options)  # type: ignore[arg-type]
        answers = [self.joined(token) for token in tokens]
        leader, generation = answers[0].leader, answers[0].generation
        assert {answer.generation for answer in answers} == {generation}
        syncs = [self.sync(member_id, generation) for member_id in ids if member_id != leader]
        self.sync(leader, generation, {member_id: member_id.encode() for member_id in ids})
        assert all(isinstance(self.answers.pop(token), Synced) for token in syncs)
        return [leader, *(member_id for member_id in ids if member_id != leader)], generation

    # --- KIP-848 ---

    def topic(self, name: str, partitions: int) -> bytes:
        """Create or change a topic; its id."""
        self._topics_version += 1
        topic_id = name.encode().ljust(16, b"_")
        self._topics = {**self._topics, name: TopicInfo(topic_id, partitions)}
        return topic_id

    def drop_topic(self, name: str) -> None:
        self._topics_version += 1
        self._topics = {other: info for other, info in self._topics.items() if other != name}

    @property
    def topics(self) -> Topics:
        return Topics(self._topics_version, self._topics)

    def consumer_beat(self, member_id: str, epoch: int, **fields: object) -> HeartbeatAnswer:
        """One heartbeat; raises the error that it is answered with."""
        request = HeartbeatRequest(str(fields.pop("group_id", GROUP)), member_id, epoch, **fields)  # type: ignore[arg-type]
        token = f"beat-{next(self._tokens)}"
        new_id = f"m{next(self._ids)}"
        self.run(
            lambda: self.groups.consumer_heartbeat(request, new_id, token, self.now),
            token,
        )
        answer = self.answers.pop(token)
        if isinstance(answer, ApiError):
            raise answer
        assert isinstance(answer, HeartbeatAnswer)
        return answer

    def consumer_join(self, member_id: str, *names: str, **fields: object) -> HeartbeatAnswer:
        fields.setdefault("subscribed_names", tuple(names))
        fields.setdefault("rebalance_timeout_ms", 30_000)
        return self.consumer_beat(member_id, 0, owned=frozenset(), **fields)

    # --- offsets ---

    def commit(
        self,
        *offsets: OffsetToCommit,
        member_id: str = "",
        generation: int = -1,
        group: str = GROUP,
        instance_id: str | None = None,
        retention_ms: int = -1,
    ) -> tuple[ApiError | None, ...]:
        """The error of each offset; raises the error of the request."""
        request = CommitRequest(group, member_id, instance_id, generation, offsets, retention_ms)
        token = f"commit-{next(self._tokens)}"
        self.run(lambda: self.groups.commit(request, token, self.now), token)
        answer = self.answers.pop(token)
        if isinstance(answer, ApiError):
            raise answer
        return answer.errors  # type: ignore[attr-defined]

    def committed(self, topic: str, partition: int, group: str = GROUP) -> OffsetValue | None:
        return self.groups.fetch(group, [(topic, partition)])[0].value


def hard_state(groups: Groups) -> dict[str, object]:
    """All that must survive, to compare a coordinator with one that was rebuilt from the log."""
    return {
        group_id: (
            {offset_key: group.offsets.get(*offset_key) for offset_key in group.offsets.offset_keys()},
            group.classic and group.classic.stored,
            group.consumer and _hard_consumer(group.consumer),
        )
        for group_id, group in groups._groups.items()
        if group.offsets or group.consumer or (group.classic and group.classic.stored)
    }


def _hard_consumer(group: ConsumerGroup) -> tuple[object, ...]:
    epochs = (group.epoch, group.target_epoch, group.topics_digest, group.changed_ms)
    return epochs, group.members, group.targets, group.currents, group.by_instance, group.holder


def subscription(*topics: str, owned: NamedPartitions | None = None) -> bytes:
    """A consumer's subscription, version 1, without user data."""
    body = b"".join(len(topic).to_bytes(2) + topic.encode() for topic in topics)
    head = (1).to_bytes(2) + len(topics).to_bytes(4) + body + (-1).to_bytes(4, signed=True)
    metadata = head + assignment.encode(owned or {}, 1)[2:-4]  # its partitions, as an assignment has them
    assert read_subscription(metadata) == (1, frozenset(topics), owned or {})
    return metadata


def partitions(topic_id: bytes, *numbers: int) -> Partitions:
    return frozenset(TopicPartition(topic_id, number) for number in numbers)
