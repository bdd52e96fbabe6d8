"""Steps of `replication_model` that belong together, for what is told rather than left to chance."""

from __future__ import annotations

from postroad.cluster.image import NO_LEADER
from tests.cluster.replication_model import OS, TOPICS, Replication


class Scenario(Replication):
    """Steps that belong together, up to what is lost: that a state contradicts itself is passed over."""

    def check_store(self) -> None:
        pass

    def write(self) -> None:
        """The leaders append, and everybody who lives copies it, syncs it and says so."""
        for node in self.nodes.values():
            for topic in list(node.leads):
                self.produce(node, topic)
            self.sync(node)
        for node in list(self.nodes.values()) * 2:
            for topic in TOPICS:
                self.send_fetch(node, topic)
                self.handle_fetch(node)
        self.check()

    def down(self, *nodes: int) -> None:
        for node in nodes:
            self.kill(self.nodes[node])
            self.end_lease(self.nodes[node])

    def up(self, node: int) -> None:
        self.restart(self.nodes[node])
        self.finish_start(self.nodes[node])

    def govern(self, node: int) -> None:
        for step in (self.claim, self.reconcile):
            self.learn(self.nodes[node])
            step(self.nodes[node])
            self.deliver_all()
        self.all_learn()

    def propose_joins(self, leader: int, joiner: int) -> None:
        self.all_learn()
        self.write()
        for topic in TOPICS:
            self.change_isr(self.nodes[leader], topic, joiner)

    def deliver_all(self) -> None:
        while self.pending:
            self.deliver(0)

    def all_learn(self) -> None:
        for node in self.nodes.values():
            self.learn(node)
        self.check()

    def led_by(self, node: int) -> None:
        """The node leads both, with all others in sync."""
        for topic in TOPICS:
            assert self.truth.topics[topic].partitions[0].leader == node

    def one_and_elr(self) -> None:
        """Node 1 leads alone, node 2 may be elected, node 3 may not; 2 and 3 are down."""
        self.led_by(1)
        self.write()
        for node in (3, 2):
            self.down(node)
            self.govern(1)
        for topic in TOPICS:
            state = self.truth.topics[topic].partitions[0]
            assert (state.isr, state.elr) == ((1,), (2,))

    def ends_leaderless(self) -> None:
        self.govern(2)
        assert self.truth.topics[OS].partitions[0].leader == NO_LEADER
