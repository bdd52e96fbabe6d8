"""KIP-848 groups under honest clients, lost answers, time, changing topics, failing appends and restarts.

The model is the clients themselves: each reads what it was told to, and gives up before it says so.
Whatever happens, no partition is read by two of them, and when the world calms down every partition is read
by one (L14, A3).
"""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from postroad.errors import ApiError, CoordinatorNotAvailable
from postroad.groups.requests import Partitions, TopicPartition
from postroad.groups.settings import GroupSettings
from tests.groups.shell import GROUP, Shell, hard_state

SESSION_MS = 45_000
REBALANCE_MS = 30_000


class Consumer:
    """A client: `reads` is the truth, `told` what it was last assigned."""

    def __init__(
        self, member_id: str, instance_id: str | None, names: tuple[str, ...], regex: str | None
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.names = names
        self.regex = regex
        self.epoch = 0
        self.reads: Partitions = frozenset()
        self.told: Partitions = frozenset()
        self.lives_until_ms = 0
        self.tells_all = False  # until an answer shows that it was heard

    def gives_up(self) -> None:
        self.reads &= self.told

    def takes_up(self) -> None:
        """Everything to be given up has been, so the new partitions may be read."""
        if self.reads <= self.told:
            self.reads = self.told

    def starts_over(self) -> None:
        self.epoch, self.reads, self.told = 0, frozenset(), frozenset()


class ConsumerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shell = Shell(GroupSettings(consumer_session_timeout_ms=SESSION_MS))
        self.consumers: list[Consumer] = []
        self.names = 0
        self.epochs: dict[str, int] = {}
        self.shell.topic("t", 3)

    @rule(
        instance=st.sampled_from([None, None, "i1", "i2"]),
        subscription=st.sampled_from([(("t",), None), (("t", "u"), None), ((), "t|u"), (("u",), "[t]")]),
    )
    def someone_joins(self, instance: str | None, subscription: tuple[tuple[str, ...], str | None]) -> None:
        if len(self.consumers) < 5:
            self.names += 1
            consumer = Consumer(f"c{self.names}", instance, *subscription)
            self.consumers.append(consumer)
            self.beat(consumer)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), answer_lost=st.booleans(), full=st.booleans())
    def someone_beats(self, data: st.DataObject, answer_lost: bool, full: bool) -> None:
        self.beat(data.draw(st.sampled_from(self.consumers)), answer_lost=answer_lost, full=full)

    @rule()
    def everyone_beats(self) -> None:
        for consumer in [*self.consumers]:
            self.beat(consumer)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), names=st.sampled_from([("t",), ("u",), ("t", "u")]))
    def someone_subscribes_otherwise(self, data: st.DataObject, names: tuple[str, ...]) -> None:
        consumer = data.draw(st.sampled_from(self.consumers))
        consumer.names = names
        consumer.tells_all = True
        self.beat(consumer)

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), comes_back=st.booleans())
    def someone_leaves(self, data: st.DataObject, comes_back: bool) -> None:
        consumer = data.draw(st.sampled_from(self.consumers))
        consumer.reads = frozenset()  # it closes first
        self.consumers.remove(consumer)
        epoch = -2 if comes_back and consumer.instance_id is not None else -1
        try:
            self.shell.consumer_beat(consumer.member_id, epoch, instance_id=consumer.instance_id)
        except ApiError:
            return

    @rule(ms=st.sampled_from([1_000, 20_000, 31_000, 46_000]))
    def time_passes(self, ms: int) -> None:
        """Whoever has had no answer for a rebalance timeout must take its partitions for lost."""
        for consumer in self.consumers:
            if consumer.lives_until_ms <= self.shell.ms + ms:
                consumer.starts_over()
        self.shell.advance(ms)

    @rule(name=st.sampled_from(["t", "u"]), more=st.integers(1, 3))
    def topic_grows(self, name: str, more: int) -> None:
        known = self.shell.topics.by_name.get(name)
        self.shell.topic(name, min(8, (known.partitions if known else 0) + more))

    @rule()
    def topic_is_deleted(self) -> None:
        self.shell.drop_topic("u")

    @rule(failing=st.booleans())
    def log_fails_or_heals(self, failing: bool) -> None:
        self.shell.failing = failing

    @rule(compacted=st.booleans())
    def coordinator_restarts(self, compacted: bool) -> None:
        hard = hard_state(self.shell.groups)
        self.shell.restart(compacted=compacted)
        assert hard_state(self.shell.groups) == hard

    def beat(self, consumer: Consumer, *, answer_lost: bool = False, full: bool = False) -> None:
        consumer.gives_up()
        joins = consumer.epoch == 0
        everything = joins or full or consumer.tells_all
        try:
            answer = self.shell.consumer_beat(
                consumer.member_id,
                consumer.epoch,
                instance_id=consumer.instance_id,
                rebalance_timeout_ms=REBALANCE_MS if everything else -1,
                subscribed_names=consumer.names if everything else None,
                subscribed_regex=consumer.regex if everything else None,
                owned=frozenset() if joins else consumer.reads,
            )
        except CoordinatorNotAvailable:
            consumer.tells_all = True
            return
        except ApiError:
            consumer.starts_over()
            return
        if answer_lost:
            consumer.tells_all = True
            return
        consumer.lives_until_ms = self.shell.ms + REBALANCE_MS
        consumer.tells_all = False
        consumer.epoch = answer.epoch
        if answer.assignment is not None:
            consumer.told = answer.assignment
        consumer.takes_up()

    # --- what must hold ---

    @invariant()
    def no_partition_is_read_twice(self) -> None:
        readers: Counter[TopicPartition] = Counter()
        for consumer in self.consumers:
            readers.update(consumer.reads)
        assert all(count == 1 for count in readers.values()), readers

    @invariant()
    def epochs_never_fall(self) -> None:
        group = self.shell.groups._groups.get(GROUP)
        if group is not None and group.consumer is not None:
            epochs = {"group": group.consumer.epoch, "target": group.consumer.target_epoch}
            assert all(epochs[name] >= self.epochs.get(name, 0) for name in epochs)
            self.epochs = epochs
        else:
            self.epochs = {}

    def teardown(self) -> None:
        self.shell.failing = False
        for _ in range(60):
            self.everyone_beats()
            self.shell.advance(1_000)
            self.no_partition_is_read_twice()
        read = {tp for consumer in self.consumers for tp in consumer.reads}
        topics = {name: info for name, info in self.shell.topics.by_name.items() if self.is_read(name)}
        assert read == {
            TopicPartition(info.topic_id, n) for info in topics.values() for n in range(info.partitions)
        }
        if self.consumers:
            assert self.shell.groups.describe_consumer(GROUP).state == "Stable"

    def is_read(self, name: str) -> bool:
        return any(name in c.names or (c.regex and name in c.regex) for c in self.consumers if c.epoch > 0)


TestConsumerMachine = ConsumerMachine.TestCase
TestConsumerMachine.settings = settings(max_examples=200, stateful_step_count=30)
