"""A cluster as drivers and executors see it: blocking calls, each bounded in time.

Every method asks again over leader changes, broken connections and restarts, for `retry_s`; then there
is one error that names the node. An address that was never reached is given up after a few seconds.
A Cluster can be pickled, survives a fork, and is used by one thread at a time. Ctrl-C ends all.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal, NamedTuple, Self

from postroad.client.bootstrap import read as read_bootstrap
from postroad.client.groups import OPERATOR, raise_for
from postroad.client.metadata import Topic
from postroad.client.offsets import EARLIEST, LATEST, by_topic
from postroad.errors import (
    ApiError,
    ConfigurationError,
    CorruptMessage,
    OffsetNotAvailable,
    OffsetOutOfRange,
    RequestRefused,
    ThrottlingQuotaExceeded,
    TopicAlreadyExists,
    TryAgain,
)
from postroad.spark.access import Access, of_bootstrap
from postroad.spark.answers import check_group, check_parts, error_of, parts
from postroad.spark.fetched import Fetched, OutsideLog, fetch_request, read_partition
from postroad.spark.nearby import Nearby
from postroad.spark.producing import LAST_WITHOUT_JOINING, produce_request
from postroad.spark.router import Coordinated, Router, TopicPartition
from postroad.wire.messages import (
    create_topics,
    describe_producers,
    fetch,
    list_offsets,
    offset_commit,
    offset_fetch,
    produce,
)
from postroad.wire.primitives import Buffer

Isolation = Literal["read_uncommitted", "read_committed"]
READ_COMMITTED: Final = "read_committed"
FETCH_BYTES: Final = 8 * 1024 * 1024  # a chunk that decodes at full speed; more brings nothing
WAIT_MS: Final = 500
ALL_REPLICAS: Final = -1
SHARED: Final = "postroad.shared.transactions"  # a feature
_NOT_FOUND: Final = -1


class TopicInfo(NamedTuple):
    name: str
    id: bytes
    partitions: tuple[int, ...]

    @property
    def topic_partitions(self) -> list[TopicPartition]:
        return [(self.name, partition) for partition in self.partitions]


class ProducerInfo(NamedTuple):
    epoch: int
    last_sequence: int


class Cluster:
    """`with Cluster("127.0.0.1:9092") as cluster: …`; connects when it is first asked something."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "postroad-spark",
        request_timeout_s: float = 30.0,
        retry_s: float = 60.0,
        isolation: Isolation = "read_uncommitted",
        rack: str = "",
        access: Access | None = None,
    ) -> None:
        """`rack`: where this is, for replicas nearby (KIP-392). `access`: else what the address says."""
        self.bootstrap = bootstrap
        self._settings: dict[str, Any] = {
            "client_id": client_id,
            "request_timeout_s": request_timeout_s,
            "retry_s": retry_s,
            "isolation": isolation,
            "rack": rack,
            "access": (let_in := access or of_bootstrap(read_bootstrap(bootstrap))),
        }
        self.near = Nearby()
        self._is_committed_only = isolation == READ_COMMITTED
        self._router = Router(bootstrap, client_id, request_timeout_s, retry_s, let_in)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Connections are gone; the next question opens new ones."""
        self._router.close()

    @property
    def identity(self) -> object:
        """Equal for clusters that were given the same settings."""
        return self.bootstrap, *self._settings.items()

    def __getstate__(self) -> tuple[str, dict[str, Any], bool]:
        """Whether it was reached travels, too: an executor then has patience with a node that restarts."""
        return self.bootstrap, self._settings, self._router.was_reached

    def __setstate__(self, state: tuple[str, dict[str, Any], bool]) -> None:
        bootstrap, settings, was_reached = state
        self.__init__(bootstrap, **settings)  # type: ignore[misc]
        self._router.was_reached = was_reached

    # --- topics --------------------------------------------------------------------------------

    def id(self) -> str:
        """The id by which clusters are told apart; '' if this one has none."""
        return self._router.retry("cluster id", lambda: self._router.cluster([]).id) or ""

    def topics(
        self, names: Collection[str] | None = None, pattern: str | None = None
    ) -> dict[str, TopicInfo]:
        """The topics of these names, or all that the pattern matches as a whole, or simply all.

        UnknownTopicOrPartition names one that isn't there. Internal topics are had by name only.
        """
        if names is not None:
            found = self._router.retry("topics", lambda: self._router.cluster(names).topics)
            return {name: _info(found[name]) for name in names}
        matches = _matcher(pattern)
        found = self._router.retry("topics", lambda: self._router.cluster(None).topics)
        return {
            name: _info(topic)
            for name, topic in sorted(found.items())
            if not topic.is_internal and matches(name)
        }

    def topic_ids(self, names: Collection[str]) -> dict[str, bytes]:
        """By which a topic that was made anew is told from the one before it; as last heard."""
        return self._router.retry("topics", lambda: self._router.topic_ids(names))

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        config: Mapping[str, str] | None = None,
        *,
        exist_ok: bool = False,
    ) -> None:
        """The topic is there and known afterwards. TopicAlreadyExists unless that is ok."""
        entries = [
            create_topics.CreatableTopicConfig(name=key, value=text) for key, text in (config or {}).items()
        ]
        topic = create_topics.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=-1, configs=entries
        )
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=self._timeout_ms)

        def attempt() -> None:
            controller = self._router.cluster([]).controller
            raise_for(self._router.call(create_topics, request, controller).topics[0])

        try:
            self._router.retry(f"create topic {name}", attempt)
        except TopicAlreadyExists:
            if not exist_ok:
                raise
        self.topics([name])

    # --- offsets -------------------------------------------------------------------------------

    def earliest(self, topic_partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that each log still has."""
        return self._find(dict.fromkeys(topic_partitions, EARLIEST))

    def latest(self, topic_partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset that comes next; read_committed: up to which all transactions are decided."""
        return self._find(dict.fromkeys(topic_partitions, LATEST))

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset whose record is at least as late as the time in ms; None if none is."""
        found = self._find(times)
        return {
            topic_partition: None if offset == _NOT_FOUND else offset
            for topic_partition, offset in found.items()
        }

    def _find(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}

        def attempt() -> None:
            missing = [topic_partition for topic_partition in times if topic_partition not in found]
            bodies = {
                node: self._offsets_request(
                    {topic_partition: times[topic_partition] for topic_partition in topic_partitions}
                )
                for node, topic_partitions in self._router.by_leader(missing).items()
            }
            failure = None
            for answer in self._router.call_all(list_offsets, bodies):
                for topic_partition, part in parts(answer.topics):
                    if part.error_code:
                        failure = error_of(part, topic_partition)
                    else:
                        found[topic_partition] = part.offset
            if failure is not None:
                raise failure

        self._router.retry("offsets", attempt)
        return {topic_partition: found[topic_partition] for topic_partition in times}

    def _offsets_request(self, times: Mapping[TopicPartition, int]) -> list_offsets.ListOffsetsRequest:
        topics = [
            list_offsets.ListOffsetsTopic(
                name=topic,
                partitions=[
                    list_offsets.ListOffsetsPartition(
                        partition_index=partition, timestamp=times[topic, partition]
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(times).items()
        ]
        return list_offsets.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self._is_committed_only),
            topics=topics,
            timeout_ms=self._timeout_ms,
        )

    # --- records -------------------------------------------------------------------------------

    def fetch(
        self,
        topic_partition: TopicPartition,
        offset: int,
        max_bytes: int = FETCH_BYTES,
        wait_ms: int = WAIT_MS,
    ) -> Fetched:
        """The next batches, or none after `wait_ms`. OutsideLog if the log doesn't have the offset,
        CorruptMessage if it is damaged there."""
        return self.fetch_many({topic_partition: offset}, max_bytes, wait_ms)[topic_partition]

    def fetch_many(
        self, offsets: Mapping[TopicPartition, int], max_bytes: int = FETCH_BYTES, wait_ms: int = WAIT_MS
    ) -> dict[TopicPartition, Fetched]:
        """One request to each leader, all at the same time; `max_bytes` are for each of them."""

        fetched: dict[TopicPartition, Fetched] = {}

        def attempt() -> None:
            try:
                if ask():
                    ask()  # those whose leaders named a replica nearby
            except TryAgain:
                self.near.forget()
                raise
            if len(fetched) < len(offsets):
                raise ThrottlingQuotaExceeded

        def ask() -> bool:
            """One round; whether a leader sent us elsewhere in it."""
            missing = [topic_partition for topic_partition in offsets if topic_partition not in fetched]
            bodies = {
                node: fetch_request(
                    {topic_partition: offsets[topic_partition] for topic_partition in topic_partitions},
                    max_bytes,
                    wait_ms,
                    self._is_committed_only,
                    self._settings["rack"],
                )
                for node, topic_partitions in self.near.gather(missing, self._router.by_leader).items()
            }
            was_sent = False
            throttled_ms = 0
            for answer in self._router.call_all(fetch, bodies, extra_s=wait_ms / 1000):
                raise_for(answer)
                throttled_ms = max(throttled_ms, answer.throttle_time_ms)
                for topic in answer.responses:
                    for part in topic.partitions:
                        topic_partition = (topic.topic, part.partition_index)
                        if not part.error_code and part.preferred_read_replica >= 0:
                            self.near.note(topic_partition, part.preferred_read_replica)
                            was_sent = True
                            continue
                        fetched[topic_partition] = self._read(topic_partition, offsets[topic_partition], part)
            if len(fetched) < len(offsets):  # who has used up a quota is told to wait, and nothing else
                time.sleep(min(throttled_ms / 1000, self._settings["retry_s"]))
            return was_sent

        what = ", ".join(f"{topic}/{partition}" for topic, partition in list(offsets)[:3])
        self._router.retry(f"fetch {what}", attempt)
        return fetched

    def _read(self, topic_partition: TopicPartition, offset: int, part: Any) -> Fetched:
        if part.error_code == OffsetOutOfRange.code:
            raise self._outside(topic_partition, offset)
        if part.error_code == CorruptMessage.code:
            raise CorruptMessage(
                f"{topic_partition[0]}/{topic_partition[1]} is damaged at offset {offset:,} or soon after."
            )
        if part.error_code:
            raise error_of(part, topic_partition)
        return read_partition(topic_partition, offset, part, self._is_committed_only)

    def _outside(self, topic_partition: TopicPartition, offset: int) -> ApiError:
        """With the log's bounds as they are now. An offset within them was refused by an old leader."""
        start, end = (
            self.earliest([topic_partition])[topic_partition],
            self.latest([topic_partition])[topic_partition],
        )
        if start <= offset <= end:
            return OffsetNotAvailable(f"{topic_partition[0]}/{topic_partition[1]} refused offset {offset:,}.")
        return OutsideLog(topic_partition, offset, start, end)

    def produce(
        self,
        topic_partition: TopicPartition,
        batch: bytes,
        acks: int = ALL_REPLICAS,
        timeout_s: float | None = None,
    ) -> int:
        """Append one record batch; its base offset. DuplicateSequence: it was appended long ago.

        It is sent again where no answer came: that is safe with a producer id and sequence, or where
        duplicates do no harm.
        """
        outcome = self.produce_many({topic_partition: batch}, acks, timeout_s)[topic_partition]
        if isinstance(outcome, RequestRefused):
            raise outcome
        return outcome

    def produce_many(
        self,
        batches: Mapping[TopicPartition, Buffer],
        acks: int = ALL_REPLICAS,
        timeout_s: float | None = None,
        transactional_id: str | None = None,
        *,
        is_added: bool = False,
    ) -> dict[TopicPartition, int | RequestRefused]:
        """One batch for each of several partitions, a request to each leader. For each its base offset,
        or why it was refused for good; those that were not yet decided are sent again.

        `is_added`: the partitions were added to the transaction before; else they join it by themselves."""
        outcomes: dict[TopicPartition, int | RequestRefused] = {}
        timeout_ms = self._timeout_ms if timeout_s is None else int(timeout_s * 1000)

        version = LAST_WITHOUT_JOINING if is_added else None

        def attempt() -> None:
            open_places = [topic_partition for topic_partition in batches if topic_partition not in outcomes]
            bodies = {
                node: produce_request(
                    {topic_partition: batches[topic_partition] for topic_partition in topic_partitions},
                    acks,
                    timeout_ms,
                    transactional_id,
                )
                for node, topic_partitions in self._router.by_leader(open_places).items()
            }
            failure: ApiError | None = None
            for answer in self._router.call_all(produce, bodies, version=version):
                for topic in answer.responses:
                    for part in topic.partition_responses:
                        topic_partition = (topic.name, part.index)
                        error = error_of(part, topic_partition) if part.error_code else None
                        if error is None or isinstance(error, RequestRefused):
                            outcomes[topic_partition] = part.base_offset if error is None else error
                        else:
                            failure = error
            if failure is not None:
                raise failure

        what = ", ".join(f"{topic}/{partition}" for topic, partition in list(batches)[:3])
        self._router.retry(f"produce {what}", attempt)
        return outcomes

    def producer(self, topic_partition: TopicPartition, producer_id: int) -> ProducerInfo | None:
        """What the partition's log remembers of an idempotent producer; None if nothing."""
        topic = describe_producers.TopicRequest(
            name=topic_partition[0], partition_indexes=[topic_partition[1]]
        )
        request = describe_producers.DescribeProducersRequest(topics=[topic])

        def attempt() -> Any:
            (leader,) = self._router.by_leader([topic_partition])
            part = self._router.call(describe_producers, request, leader).topics[0].partitions[0]
            if part.error_code:
                raise error_of(part, topic_partition)
            return part.active_producers

        for known in self._router.retry(f"producers of {topic_partition[0]}/{topic_partition[1]}", attempt):
            if known.producer_id == producer_id:
                return ProducerInfo(known.producer_epoch, known.last_sequence)
        return None

    # --- coordinators --------------------------------------------------------------------------

    def has_shared_transactions(self) -> bool:
        """Whether several producers can write in one transaction here (`spark.shared`)."""
        return self._router.retry("features", lambda: SHARED in self._router.connection().features)

    def ask_coordinator(
        self,
        of: Coordinated,
        api: Any,
        body: Any,
        check: Callable[[Any], object] = raise_for,
        version: int | None = None,
        patience_s: float | None = None,
    ) -> Any:
        """The answer of whoever coordinates it. `check` raises what is wrong with one; after a TryAgain it is
        asked again, for as long as usual, or for `patience_s`."""

        def attempt() -> Any:
            answer = self._router.call(api, body, self._router.coordinator(*of), version)
            check(answer)
            return answer

        return self._router.retry(f"{api.NAME} for {of.name}", attempt, patience_s)

    # --- groups --------------------------------------------------------------------------------

    def commit(
        self, group: str, offsets: Mapping[TopicPartition, int], patience_s: float | None = None
    ) -> None:
        """The group's next offsets are these, durably. UnknownMemberId if the group has members.

        With `patience_s` it is given up earlier than usual if nobody answers.
        """
        topics = [
            offset_commit.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=offsets[topic, partition]
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in by_topic(offsets).items()
        ]
        request = offset_commit.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=OPERATOR.generation,
            member_id=OPERATOR.member_id,
            topics=topics,
        )
        self.ask_coordinator(Coordinated(group), offset_commit, request, check_parts, patience_s=patience_s)

    def committed(
        self, group: str, topic_partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        """The group's committed offsets; None where there is none."""
        topics = [
            offset_fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=partitions)
            for topic, partitions in by_topic(topic_partitions).items()
        ]
        wanted = offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=topics)
        request = offset_fetch.OffsetFetchRequest(groups=[wanted], require_stable=self._is_committed_only)
        answer = self.ask_coordinator(Coordinated(group), offset_fetch, request, check_group)
        found: dict[TopicPartition, int | None] = dict.fromkeys(topic_partitions)
        for topic_partition, part in parts(answer.groups[0].topics):
            found[topic_partition] = None if part.committed_offset == _NOT_FOUND else part.committed_offset
        return found

    @property
    def _timeout_ms(self) -> int:
        return int(self._router.request_timeout_s * 1000)


def _info(topic: Topic) -> TopicInfo:
    return TopicInfo(topic.name, topic.id, tuple(partition.number for partition in topic.partitions))


def _matcher(pattern: str | None) -> Callable[[str], object]:
    try:
        return re.compile(".*" if pattern is None else pattern).fullmatch
    except re.error as error:
        raise ConfigurationError(f"{pattern!r} is no regular expression: {error}") from None
