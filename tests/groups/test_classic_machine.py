"""Classic groups under arbitrary clients, time, failing appends and restarts, against a simple model.

The model: the leader hands out disjoint parts; what a generation hands out is fixed once it is stored; an
acknowledged commit is there until the next one; and everyone is answered, once.
"""

from __future__ import annotations

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from postroad.errors import ApiError
from postroad.groups.answers import Joined, MemberIdGiven, Synced
from postroad.groups.records import CLASSIC
from postroad.groups.requests import MemberIdentity, OffsetToCommit
from postroad.groups.settings import GroupSettings
from tests.groups.shell import GROUP, Shell, hard_state

INSTANCES = ["i1", "i2"]


class ClassicMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.shell = Shell(
            GroupSettings(initial_rebalance_delay_alone_ms=100, initial_rebalance_delay_ms=500)
        )
        self.clients: dict[
            str, tuple[str | None, int]
        ] = {}  # member id: instance id, last generation heard of
        self.waiting: dict[object, str | None] = {}  # token: instance id of the client
        self.handed_out: dict[int, list[str]] = {}  # generation: who was told what
        self.acknowledged: int | None = None
        self.commits = 0
        self.generation_read = 0
        self.records_read = 0

    # --- clients ---

    @rule(
        instance=st.none() | st.sampled_from(INSTANCES),
        v4=st.booleans(),
        topics=st.sampled_from([("t",), ("u",)]),
    )
    def newcomer_joins(self, instance: str | None, v4: bool, topics: tuple[str, ...]) -> None:
        self.waiting[self.shell.join(instance_id=instance, v4=v4, topics=topics)] = instance
        self.hear()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), topics=st.sampled_from([("t",), ("t", "u")]))
    def member_joins_again(self, data: st.DataObject, topics: tuple[str, ...]) -> None:
        member_id = data.draw(st.sampled_from(sorted(self.clients)))
        instance, _ = self.clients[member_id]
        self.waiting[self.shell.join(member_id, instance_id=instance, topics=topics)] = instance
        self.hear()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def member_syncs(self, data: st.DataObject) -> None:
        member_id = data.draw(st.sampled_from(sorted(self.clients)))
        instance, generation = self.clients[member_id]
        parts = {other: f"{place}".encode() for place, other in enumerate(self.clients)}
        token = self.shell.sync(member_id, generation, parts, instance_id=instance)
        self.waiting[token] = instance
        self.hear()

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def member_beats(self, data: st.DataObject) -> None:
        member_id = data.draw(st.sampled_from(sorted(self.clients)))
        instance, generation = self.clients[member_id]
        try:
            self.shell.beat(member_id, generation, instance_id=instance)
        except ApiError:
            return

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), by_instance=st.booleans())
    def member_leaves(self, data: st.DataObject, by_instance: bool) -> None:
        member_id = data.draw(st.sampled_from(sorted(self.clients)))
        instance, _ = self.clients[member_id]
        known = "" if by_instance and instance is not None else member_id
        self.shell.leave(MemberIdentity(known, instance))
        self.hear()

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), age=st.integers(0, 2))
    def member_commits(self, data: st.DataObject, age: int) -> None:
        member_id = data.draw(st.sampled_from(sorted(self.clients)))
        instance, generation = self.clients[member_id]
        self.commits += 1
        item = OffsetToCommit("t", 0, self.commits)
        live = self.shell.groups._groups.get(GROUP)
        try:
            self.shell.commit(item, member_id=member_id, generation=generation - age, instance_id=instance)
        except ApiError:
            return
        if generation - age >= 0:
            assert live is not None
            assert live.classic is not None
            assert member_id in live.classic.members
            assert live.classic.generation == generation - age
        self.acknowledged = self.commits

    # --- the world ---

    @rule(ms=st.sampled_from([100, 600, 4_000, 11_000, 61_000]))
    def time_passes(self, ms: int) -> None:
        self.shell.advance(ms)
        self.hear()

    @rule(failing=st.booleans())
    def log_fails_or_heals(self, failing: bool) -> None:
        self.shell.failing = failing

    @rule(compacted=st.booleans())
    def coordinator_restarts(self, compacted: bool) -> None:
        self.waiting.clear()
        hard = hard_state(self.shell.groups)
        self.shell.restart(compacted=compacted)
        assert hard_state(self.shell.groups) == hard

    def hear(self) -> None:
        """Clients read their answers."""
        for token in [token for token in self.waiting if token in self.shell.answers]:
            instance = self.waiting.pop(token)
            answer = self.shell.answers[token]
            if isinstance(answer, Joined):
                self.clients[answer.member_id] = (instance, answer.generation)
            elif isinstance(answer, MemberIdGiven):
                self.clients[answer.member_id] = (instance, 0)
            else:
                assert isinstance(answer, Synced | ApiError)

    # --- what must hold ---

    @invariant()
    def stored_generations_rise_and_hand_out_one_assignment(self) -> None:
        for record in self.shell.log[self.records_read :]:
            if json.loads(record.key)[0] != CLASSIC or record.value is None:
                continue
            value = json.loads(record.value)
            generation = value["generation"]
            assert generation >= self.generation_read
            self.generation_read = generation
            told = sorted(member.get("assignment", "") for member in value.get("members", ()))
            assert self.handed_out.setdefault(generation, told) == told
        self.records_read = len(self.shell.log)

    @invariant()
    def acknowledged_commit_is_there(self) -> None:
        found = self.shell.committed("t", 0)
        assert (None if found is None else found.offset) == self.acknowledged

    def teardown(self) -> None:
        """A3: when all fall silent, everyone has been answered and the group is empty."""
        self.shell.failing = False
        self.shell.advance(400_000)
        self.hear()
        assert not self.waiting
        assert all(group.state == "Empty" for group in self.shell.groups.list())


TestClassicMachine = ClassicMachine.TestCase
TestClassicMachine.settings = settings(max_examples=200, stateful_step_count=30)
