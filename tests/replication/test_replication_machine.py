"""Leaders and followers against a naive model, with deaths, cuts, elections and commits in doubt."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.replication.model_cluster import ModelCluster
from tests.replication.model_node import LAG_MS, Rules

NODES = st.sampled_from([1, 2, 3])
INDEX = st.integers(0, 5)
IN_FLIGHT_MAX = 4  # of each kind: older ones are lost


class ReplicationMachine(RuleBasedStateMachine):
    kept = Rules()  # what a mutant takes something away from
    syncs = False
    logs = 1
    power_cuts = 1  # flush `os` promises to survive the power cut of one machine

    def __init__(self) -> None:
        super().__init__()
        self.cuts_left = self.power_cuts
        self.was_cut = False
        self.cluster = ModelCluster(logs=self.logs, syncs=self.syncs, rules=self.kept)

    def teardown(self) -> None:
        self.cluster.heal()

    @initialize(
        min_insync=st.sampled_from([2, 2, 1]),
        replicas=st.sampled_from([3, 3, 2]),
        outside=st.integers(0, 2),
        committed=st.integers(0, 1),
    )
    def begin(self, min_insync: int, replicas: int, outside: int, committed: int) -> None:
        """Some messages are committed, and the last replicas are out of the ISR; all run."""
        self.cluster = ModelCluster(replicas, min_insync, self.logs, syncs=self.syncs, rules=self.kept)
        for _ in range(committed):
            self.produce(0, 0)
            self.replicate_all(2)
        gone = self.cluster.store.replicas[1:][::-1][:outside]
        for node in gone:
            self.kill(node, ends=True)
            self.remove_dead(node)
        for node in gone:
            self.come_back(node)
        self.cluster.learn_all()

    def node(self, number: int) -> int:
        return min(number, len(self.cluster.nodes))

    # -- data ------------------------------------------------------------------------------------------

    @rule(index=INDEX, log=st.integers(0, 1))
    def produce(self, index: int, log: int) -> None:
        leaders = self.cluster.leaders()
        if leaders:
            self.cluster.produce(leaders[index % len(leaders)].node_id, log % self.logs)

    @rule(node=NODES, log=st.integers(0, 1), times=st.integers(1, 3))
    def replicate(self, node: int, log: int, times: int) -> None:
        number = self.node(node)
        for _ in range(times):
            if self.syncs and self.cluster.nodes[number].is_up:
                self.cluster.nodes[number].sync(log % self.logs)
            self.cluster.replicate(number, log % self.logs)
            self.holds()

    @rule(times=st.integers(1, 2))
    def replicate_all(self, times: int) -> None:
        for _ in range(times):
            for node in self.cluster.nodes:
                for log in self.cluster.logs:
                    self.replicate(node, log, 1)

    @rule(node=NODES, log=st.integers(0, 1))
    def send_fetch(self, node: int, log: int) -> None:
        self.cluster.send_fetch(self.node(node), log % self.logs)
        del self.cluster.fetches[:-IN_FLIGHT_MAX]

    @rule(node=NODES, log=st.integers(0, 1))
    def fetch_without_answer(self, node: int, log: int) -> None:
        """The leader hears the promise; its answer is late, or lost."""
        fetch = self.cluster.send_fetch(self.node(node), log % self.logs)
        if fetch is not None:
            self.cluster.handle(fetch)
            del self.cluster.answers[:-IN_FLIGHT_MAX]

    @precondition(lambda self: self.cluster.fetches)
    @rule(index=INDEX)
    def handle_late_fetch(self, index: int) -> None:
        self.cluster.handle(self.cluster.fetches[index % len(self.cluster.fetches)])
        del self.cluster.answers[:-IN_FLIGHT_MAX]

    @precondition(lambda self: self.cluster.answers)
    @rule(index=INDEX)
    def deliver_late_answer(self, index: int) -> None:
        self.cluster.deliver(self.cluster.answers[index % len(self.cluster.answers)])

    @precondition(lambda self: self.syncs)
    @rule(node=NODES, log=st.integers(0, 1))
    def sync(self, node: int, log: int) -> None:
        member = self.cluster.nodes[self.node(node)]
        if member.is_up:
            member.sync(log % self.logs)

    # -- the store -------------------------------------------------------------------------------------

    @rule(node=NODES)
    def learn(self, node: int) -> None:
        if self.cluster.nodes[self.node(node)].is_up:
            self.cluster.learn(self.node(node))

    @rule(index=INDEX, at_once=st.booleans())
    def propose(self, index: int, at_once: bool) -> None:
        leaders = self.cluster.leaders()
        if not leaders:
            return
        node = leaders[index % len(leaders)].node_id
        transaction = self.cluster.propose(node)
        if transaction is not None and at_once:
            self.cluster.commit(transaction)
            self.cluster.learn(node)

    @precondition(lambda self: self.cluster.transactions)
    @rule(index=INDEX)
    def commit(self, index: int) -> None:
        self.cluster.commit(self.cluster.transactions[index % len(self.cluster.transactions)])

    @precondition(lambda self: self.cluster.outcomes)
    @rule(index=INDEX)
    def tell_outcome(self, index: int) -> None:
        self.cluster.tell(self.cluster.outcomes[index % len(self.cluster.outcomes)])

    @precondition(lambda self: self.cluster.transactions)
    @rule(index=INDEX, arrives=st.booleans())
    def lose_outcome(self, index: int, arrives: bool) -> None:
        transaction = self.cluster.transactions[index % len(self.cluster.transactions)]
        self.cluster.lose(transaction)
        if not arrives:
            self.cluster.transactions.remove(transaction)

    @rule(index=INDEX)
    def elect(self, index: int) -> None:
        found = self.cluster.store.electable()
        if self.cluster.store.needs_leader() and found:
            self.cluster.elect(found[index % len(found)])

    @rule(node=NODES)
    def remove_dead(self, node: int) -> None:
        self.cluster.store.remove_dead(self.node(node))

    @rule(index=INDEX)
    def lower_minimum(self, index: int) -> None:
        if index == 0 and self.cluster.store.partition.min_insync > 1 and (self.syncs or not self.was_cut):
            self.cluster.store.lower_minimum()

    # -- time and faults -------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([LAG_MS // 4, LAG_MS, 2 * LAG_MS]))
    def wait(self, ms: int) -> None:
        self.cluster.wait(ms)

    @rule(node=NODES, ends=st.booleans())
    def kill(self, node: int, ends: bool) -> None:
        number = self.node(node)
        if self.cluster.nodes[number].is_up:
            self.cluster.kill(number)
        if ends and number in self.cluster.store.nodes:
            self.cluster.end_lease(number)

    @rule(index=INDEX)
    def fail_over(self, index: int) -> None:
        """The leader dies, and another one takes over at once."""
        leader = self.cluster.store.partition.leader
        if leader in self.cluster.nodes:
            self.kill(leader, ends=True)
            self.elect(index)
            self.cluster.learn_all()

    @rule(node=NODES, data=st.data())
    def power_cut(self, node: int, data: Any) -> None:
        alone_suffices = self.cluster.store.partition.min_insync == 1 and not self.syncs
        if self.cuts_left == 0 or alone_suffices:
            return  # what one replica alone committed, a power cut may take
        self.cuts_left -= 1
        self.was_cut = True
        number = self.node(node)
        logs = self.cluster.nodes[number].logs
        self.cluster.power_cut(number, [data.draw(st.integers(0, log.end)) for log in logs])

    @rule(node=NODES)
    def end_lease(self, node: int) -> None:
        if self.node(node) in self.cluster.store.nodes:
            self.cluster.end_lease(self.node(node))

    @rule(node=NODES)
    def come_back(self, node: int) -> None:
        number = self.node(node)
        if not self.cluster.nodes[number].is_up:
            self.cluster.restart(number)
        elif number not in self.cluster.store.nodes:
            self.cluster.register(number)

    @invariant()
    def holds(self) -> None:
        self.cluster.check()


class SyncMachine(ReplicationMachine):
    syncs = True
    power_cuts = 5


class LedgerMachine(ReplicationMachine):
    logs = 2


for machine, examples in ((ReplicationMachine, 120), (SyncMachine, 60), (LedgerMachine, 60)):
    machine.TestCase.settings = settings(max_examples=examples, stateful_step_count=60, deadline=None)

TestReplication = ReplicationMachine.TestCase
TestReplicationWithSync = SyncMachine.TestCase
TestReplicationWithLedger = LedgerMachine.TestCase
