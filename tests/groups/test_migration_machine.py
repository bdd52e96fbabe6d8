"""Groups whose members come and go under both protocols, while time passes, appends fail and nodes restart.

To the honest KIP-848 clients of `test_consumer_machine.py` come classic ones: some give up everything before
they join again, some only what they are told to (KIP-429). Whatever the group changes into on the way, no
partition is read by two of them, offsets that were acknowledged are there, and when the world calms down
every partition is read by one (L14, A3).
"""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from postroad.errors import ApiError, RebalanceInProgress
from postroad.groups import assignment
from postroad.groups.answers import Joined, MemberIdGiven, Synced
from postroad.groups.requests import MemberIdentity, OffsetToCommit, Partitions, TopicPartition
from postroad.groups.subscription import read_subscription
from tests.groups.shell import GROUP, Shell, subscription
from tests.groups.test_consumer_machine import ConsumerMachine

SESSION_MS = 10_000
REBALANCE_MS = 20_000
EAGER, COOPERATIVE = "eager", "cooperative"


class ClassicClient:
    """A client of the classic protocol: `reads` is the truth."""

    def __init__(self, shell: Shell, protocol: str) -> None:
        self.shell = shell
        self.protocol = protocol
        self.member_id = ""
        self.generation = -1
        self.reads: Partitions = frozenset()
        self.waiting: object | None = None
        self.lives_until_ms = 0

    def step(self) -> None:
        """Read the answer that was waited for, or send a heartbeat, and do what follows from it."""
        if self.waiting is None:
            self._beat() if self.generation >= 0 else self._join()
            return
        answer = self.shell.answers.pop(self.waiting, None)
        if answer is None:
            return
        self.waiting = None
        if isinstance(answer, ApiError):
            self._refused(answer)
            return
        self.lives_until_ms = self.shell.ms + SESSION_MS
        if isinstance(answer, MemberIdGiven):
            self.member_id = answer.member_id
            self._join()
        elif isinstance(answer, Joined):
            self.member_id, self.generation = answer.member_id, answer.generation
            leads = answer.leader == answer.member_id
            self.waiting = self.shell.sync(
                self.member_id, self.generation, self._assign(answer) if leads else {}
            )
        else:
            assert isinstance(answer, Synced)
            self._take(assignment.by_id(assignment.decode(answer.assignment), self.shell.topics))

    def starts_over(self) -> None:
        """Nothing was heard for a session: whatever it had may be others' now."""
        self.reads, self.generation, self.waiting = frozenset(), -1, None

    def loses_connection(self) -> None:
        if self.waiting is not None:
            self.waiting, self.generation = None, -1
            self._give_up_if_eager()

    def _join(self) -> None:
        self._give_up_if_eager()
        owned = assignment.by_name(self.reads, self.shell.topics)
        protocols = ((self.protocol, subscription("t", owned=owned)),)
        self.generation = -1
        if not self.reads:
            self.lives_until_ms = self.shell.ms + SESSION_MS
        self.waiting = self.shell.join(
            self.member_id, protocols=protocols, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS
        )

    def _give_up_if_eager(self) -> None:
        if self.protocol == EAGER:
            self.reads = frozenset()

    def _beat(self) -> None:
        try:
            self.shell.beat(self.member_id, self.generation)
        except RebalanceInProgress:
            self.lives_until_ms = self.shell.ms + SESSION_MS
            self._join()
        except ApiError as error:
            self._refused(error)
        else:
            self.lives_until_ms = self.shell.ms + SESSION_MS

    def _refused(self, error: ApiError) -> None:
        if not error.retriable and not isinstance(error, RebalanceInProgress):
            self.member_id = ""
            self.reads = frozenset()
        self._give_up_if_eager()
        self.generation = -1

    def _take(self, given: Partitions) -> None:
        lost = self.reads - given
        self.reads = given
        if lost:
            self._join()

    def _assign(self, answer: Joined) -> dict[str, bytes]:
        """Partitions round robin; with KIP-429 none that somebody else still owns."""
        subscriptions = {member.member_id: read_subscription(member.metadata) for member in answer.members}
        owners = {
            partition: member_id
            for member_id, one in subscriptions.items()
            for partition in one.owned.get("t", ())
        }
        given: dict[str, list[int]] = {member_id: [] for member_id in subscriptions}
        names = sorted(subscriptions)
        for partition in range(self.shell.topics.by_name["t"].partitions):
            heir = names[partition % len(names)]
            if owners.get(partition, heir) == heir:
                given[heir].append(partition)
        return {member_id: assignment.encode({"t": given[member_id]}, 1) for member_id in given}


class MigrationMachine(ConsumerMachine):
    def __init__(self) -> None:
        super().__init__()
        self.classics: list[ClassicClient] = []
        self.acknowledged: int | None = None
        self.commits = 0

    @rule(protocol=st.sampled_from([EAGER, COOPERATIVE]))
    def classic_client_comes(self, protocol: str) -> None:
        if len(self.classics) < 4:
            known = {client.protocol for client in self.classics}
            client = ClassicClient(self.shell, *(known or {protocol}))
            self.classics.append(client)
            client.step()

    @precondition(lambda self: self.classics)
    @rule(data=st.data(), steps=st.integers(1, 4))
    def classic_client_acts(self, data: st.DataObject, steps: int) -> None:
        client = data.draw(st.sampled_from(self.classics))
        for _ in range(steps):
            client.step()

    @rule()
    def all_classic_clients_act(self) -> None:
        for client in self.classics:
            client.step()

    @precondition(lambda self: self.classics)
    @rule(data=st.data())
    def classic_client_leaves(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.classics))
        self.classics.remove(client)
        if client.member_id:
            self.shell.leave(MemberIdentity(client.member_id))

    @precondition(lambda self: any(client.generation >= 0 for client in self.classics))
    @rule(data=st.data())
    def classic_client_commits(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from([c for c in self.classics if c.generation >= 0]))
        self.commits += 1
        item = OffsetToCommit("t", 0, self.commits)
        try:
            self.shell.commit(item, member_id=client.member_id, generation=client.generation)
        except ApiError:
            return
        self.acknowledged = self.commits

    @rule(ms=st.sampled_from([1_000, 4_000, 11_000, 21_000]))
    def time_passes(self, ms: int) -> None:
        for client in self.classics:
            if client.lives_until_ms <= self.shell.ms + ms:
                client.starts_over()
        super().time_passes(ms)

    @rule(compacted=st.booleans())
    def coordinator_restarts(self, compacted: bool) -> None:
        super().coordinator_restarts(compacted)
        for client in self.classics:
            client.loses_connection()

    @invariant()
    def no_partition_is_read_twice(self) -> None:
        readers: Counter[TopicPartition] = Counter()
        for reads in self.all_reads():
            readers.update(reads)
        assert all(count == 1 for count in readers.values()), readers

    @invariant()
    def acknowledged_commit_is_there(self) -> None:
        found = self.shell.committed("t", 0)
        assert (None if found is None else found.offset) == self.acknowledged

    def teardown(self) -> None:
        self.shell.failing = False
        for _ in range(70):
            for client in self.classics:
                if client.lives_until_ms <= self.shell.ms:
                    client.starts_over()
                client.step()
            self.everyone_beats()
            self.shell.advance(1_000)
            self.no_partition_is_read_twice()
        if not self.classics and not self.consumers:
            return
        read = frozenset[TopicPartition]().union(*self.all_reads())
        topics = {name: info for name, info in self.shell.topics.by_name.items() if self.is_read(name)}
        assert read == {
            TopicPartition(info.topic_id, n) for info in topics.values() for n in range(info.partitions)
        }
        (listed,) = self.shell.groups.list()
        assert (listed.group_id, listed.state) == (GROUP, "Stable")
        assert listed.group_type == ("consumer" if self.consumers else "classic")

    def all_reads(self) -> list[Partitions]:
        return [*(consumer.reads for consumer in self.consumers), *(client.reads for client in self.classics)]

    def is_read(self, name: str) -> bool:
        return super().is_read(name) or (name == "t" and bool(self.classics))


TestMigrationMachine = MigrationMachine.TestCase
TestMigrationMachine.settings = settings(max_examples=60, stateful_step_count=40)
