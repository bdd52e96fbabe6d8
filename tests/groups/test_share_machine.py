"""Share groups under honest clients, lost answers, time, changing topics and restarts.

The model is the clients themselves: each fetches from what it was last told. When the world calms down every
partition of a subscribed topic is fetched from, by two members where two subscribe, and by nobody else.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from postroad.errors import FencedMemberEpoch, UnknownMemberId
from postroad.groups.requests import ShareHeartbeat, TopicInfo, TopicPartition, Topics
from postroad.groups.settings import ShareGroupSettings
from postroad.groups.share import ShareGroups
from postroad.now import Now

SETTINGS = ShareGroupSettings(session_ms=45_000)
NAMES = st.sampled_from([("t",), ("u",), ("t", "u"), ("t", "later")])


class Sharer:
    def __init__(self, member_id: str, names: tuple[str, ...]) -> None:
        self.member_id = member_id
        self.names = names
        self.epoch = 0
        self.fetches: set[TopicPartition] = set()
        self.tells_all = False  # until an answer shows that it was heard
        self.heard_ms = 0  # when the groups last heard of it

    def starts_over(self) -> None:
        self.epoch, self.fetches = 0, set()


class ShareMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.groups = ShareGroups()
        self.ms = 0
        self.ids = 0
        self.sharers: list[Sharer] = []
        self.topics = Topics(1, {"t": TopicInfo(b"t" * 16, 3), "u": TopicInfo(b"u" * 16, 1)})

    @rule(names=NAMES)
    def someone_joins(self, names: tuple[str, ...]) -> None:
        if len(self.sharers) < 9:
            self.ids += 1
            self.sharers.append(Sharer(f"s{self.ids}", names))
            self.beat(self.sharers[-1])

    @precondition(lambda self: self.sharers)
    @rule(data=st.data(), answer_lost=st.booleans())
    def someone_beats(self, data: st.DataObject, answer_lost: bool) -> None:
        self.beat(data.draw(st.sampled_from(self.sharers)), answer_lost=answer_lost)

    @rule()
    def everyone_beats(self) -> None:
        for sharer in self.sharers:
            self.beat(sharer)

    @precondition(lambda self: self.sharers)
    @rule(data=st.data(), names=NAMES)
    def someone_subscribes_otherwise(self, data: st.DataObject, names: tuple[str, ...]) -> None:
        sharer = data.draw(st.sampled_from(self.sharers))
        sharer.names = names
        sharer.tells_all = True
        self.beat(sharer)

    @precondition(lambda self: self.sharers)
    @rule(data=st.data())
    def someone_leaves(self, data: st.DataObject) -> None:
        sharer = data.draw(st.sampled_from(self.sharers))
        self.sharers.remove(sharer)
        if sharer.member_id in self.groups.members("g"):
            self.groups.heartbeat(
                ShareHeartbeat("g", sharer.member_id, -1), self.topics, SETTINGS, Now(self.ms, 0)
            )

    @rule(ms=st.sampled_from([1_000, 20_000, 46_000]))
    def time_passes(self, ms: int) -> None:
        self.ms += ms
        members = set(self.groups.members("g"))
        gone = {member_id for _, member_id in self.groups.expire(Now(self.ms, 0))}
        assert set(self.groups.members("g")) == members - gone
        for sharer in self.sharers:
            if sharer.member_id in members:
                assert (sharer.member_id in gone) == (self.ms - sharer.heard_ms >= SETTINGS.session_ms)

    @rule(name=st.sampled_from(["t", "u", "later"]), more=st.integers(1, 4))
    def topic_grows(self, name: str, more: int) -> None:
        known = self.topics.by_name.get(name)
        info = TopicInfo(name[:1].encode() * 16, (known.partitions if known else 0) + more)
        self.topics = Topics(self.topics.version + 1, {**self.topics.by_name, name: info})

    @rule(name=st.sampled_from(["t", "u", "later"]))
    def topic_is_deleted(self, name: str) -> None:
        rest = {other: info for other, info in self.topics.by_name.items() if other != name}
        self.topics = Topics(self.topics.version + 1, rest)

    @rule()
    def broker_restarts(self) -> None:
        self.groups = ShareGroups()

    def beat(self, sharer: Sharer, *, answer_lost: bool = False) -> None:
        everything = sharer.epoch == 0 or sharer.tells_all
        request = ShareHeartbeat(
            "g", sharer.member_id, sharer.epoch, subscribed_names=sharer.names if everything else None
        )
        try:
            answer = self.groups.heartbeat(request, self.topics, SETTINGS, Now(self.ms, 0))
        except (UnknownMemberId, FencedMemberEpoch):
            sharer.starts_over()
            return
        sharer.heard_ms = self.ms
        sharer.tells_all = answer_lost
        if not answer_lost:
            assert answer.epoch > 0
            sharer.epoch = answer.epoch
            if answer.assignment is not None:
                sharer.fetches = {
                    TopicPartition(t, n) for t, found in answer.assignment.items() for n in found
                }

    # --- what must hold ---

    @invariant()
    def invariants_hold(self) -> None:
        self.groups.check()
        assert (self.groups.next_deadline() is None) == (not self.groups.has_members("g"))

    @invariant()
    def nobody_is_told_of_what_it_does_not_subscribe_to(self) -> None:
        for sharer in self.sharers:
            if not sharer.tells_all:
                topics = {name[:1].encode() * 16 for name in sharer.names}
                assert {tp.topic_id for tp in sharer.fetches} <= topics

    def teardown(self) -> None:
        for _ in range(3):  # those that hear that they must join again do; then all hear of the outcome
            self.everyone_beats()
        readers = Counter(name for sharer in self.sharers for name in sharer.names)
        fetched = Counter(tp for sharer in self.sharers for tp in sharer.fetches)
        expected = {
            TopicPartition(info.topic_id, n): min(2, readers[name])
            for name, info in self.topics.by_name.items()
            for n in range(info.partitions)
            if readers[name]
        }
        assert fetched.keys() == expected.keys()
        assert all(fetched[tp] >= least for tp, least in expected.items())


TestShareMachine = ShareMachine.TestCase
TestShareMachine.settings = settings(max_examples=150, stateful_step_count=30)
