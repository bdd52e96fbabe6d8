"""A cluster of one partition: real leaders and followers, a toy store, and messages that come late or never.

After each step `check` holds it against what must be true: L1, L2, L11, L12, L13, and the watermark as a
naive model has it, which keeps the promises by itself and counts from the beginning each time.
"""

from __future__ import annotations

from postroad.replication.follower import Step
from tests.replication.model_log import ModelLog, Record
from tests.replication.model_node import LAG_MS, Fetch, FetchAnswer, ModelNode, Rules
from tests.replication.model_store import ModelStore, PartitionKey, Transaction


class NaiveLeader:
    """What a leader may know of its followers, kept as plainly as can be."""

    def __init__(self, node_id: int, state: PartitionKey, watermarks: list[int]) -> None:
        self.node_id = node_id
        self.state = state  # as far as the leader has learned
        self.joining: set[int] = set()
        self.proposal: Transaction | None = None
        self.in_doubt = False
        self.promises: dict[tuple[int, int], int] = {}  # (node, log): everything below
        self.broker_epochs: dict[int, int] = {}
        self.watermarks = watermarks

    def learned(self, state: PartitionKey) -> None:
        if state.revision != self.state.revision:
            self.state = state
            self.joining.clear()
            self.proposal, self.in_doubt = None, False

    def proposed(self, transaction: Transaction) -> None:
        self.proposal = transaction
        self.joining.update(node for node, _ in transaction.change.joiners)

    def lost(self, transaction: Transaction) -> None:
        if transaction is self.proposal:
            self.proposal, self.in_doubt = None, True

    def refused(self, transaction: Transaction) -> None:
        if transaction is self.proposal:
            self.proposal = None
            if not self.in_doubt:
                self.joining.clear()

    def promised(self, fetch: Fetch) -> None:
        known = self.broker_epochs.get(fetch.follower, -1)
        if fetch.broker_epoch > known:
            self.broker_epochs[fetch.follower] = fetch.broker_epoch
            self.promises = {key: offset for key, offset in self.promises.items() if key[0] != fetch.follower}
        if fetch.broker_epoch >= known:
            self.promises[fetch.follower, fetch.log] = fetch.promised

    def watermark(self, number: int, log: ModelLog, replicas: int) -> int:
        isr = set(self.state.isr)
        if len(isr) >= min(self.state.min_insync, replicas) and not self.state.elr:
            others = (isr | self.joining) - {self.node_id}
            lowest = min([log.safe, *(self.promises.get((node, number), 0) for node in others)])
            self.watermarks[number] = max(lowest, self.watermarks[number])
        return self.watermarks[number]


class ModelCluster:
    def __init__(
        self,
        replicas: int = 3,
        min_insync: int = 2,
        logs: int = 1,
        *,
        syncs: bool = False,
        rules: Rules | None = None,
        only_harm: bool = False,
    ) -> None:
        """`only_harm`: a mutant is caught by what it loses, not by being different."""
        self.only_harm = only_harm
        self.rules = rules or Rules()
        self.now_ms = 0
        self.store = ModelStore(tuple(range(1, replicas + 1)), min_insync)
        self.store.compares_broker_epochs = self.rules.compares_broker_epochs
        self.store.empties_elr = self.rules.empties_elr
        self.nodes = {
            node: ModelNode(node, self.store, [ModelLog(syncs=syncs) for _ in range(logs)], self.rules)
            for node in self.store.replicas
        }
        self.fetches: list[Fetch] = []
        self.answers: list[FetchAnswer] = []
        self.transactions: list[Transaction] = []
        self.outcomes: list[tuple[Transaction, bool]] = []  # answers of the store on their way
        self.committed: list[list[Record]] = [[] for _ in range(logs)]  # ever below a leader's watermark
        self.produced = 0
        self.naive: dict[int, NaiveLeader] = {}  # by leader epoch
        for node in self.nodes.values():
            node.broker_epoch = self.store.register(node.node_id)
            node.life = 1
            node._open_followers()
        self.learn_all()

    @property
    def logs(self) -> range:
        return range(len(self.committed))

    def leaders(self) -> list[ModelNode]:
        """All who believe that they lead, zombies too."""
        return [node for node in self.nodes.values() if node.leader is not None]

    # -- data ------------------------------------------------------------------------------------------

    def produce(self, node: int, log: int = 0) -> None:
        self.produced += 1
        self.nodes[node].produce(log, self.produced)

    def send_fetch(self, node: int, log: int = 0) -> Fetch | None:
        fetch = self.nodes[node].fetch(log, self.now_ms)
        if fetch is not None:
            self.fetches.append(fetch)
        return fetch

    def handle(self, fetch: Fetch) -> FetchAnswer | None:
        """The leader answers, if it runs."""
        self.fetches.remove(fetch)
        node = self.nodes[fetch.leader]
        if not node.is_up:
            return None
        answer = node.answer(fetch, self.now_ms)
        if not answer.error and answer.parting is None:
            self.naive[fetch.epoch].promised(fetch)
        self.answers.append(answer)
        return answer

    def deliver(self, answer: FetchAnswer) -> Step:
        self.answers.remove(answer)
        return self.nodes[answer.fetch.follower].apply(answer, self.now_ms)

    def replicate(self, node: int, log: int = 0) -> Step | None:
        """A fetch, its answer and what follows from it, with nothing in between."""
        fetch = self.send_fetch(node, log)
        answer = self.handle(fetch) if fetch else None
        return self.deliver(answer) if answer else None

    # -- the store -------------------------------------------------------------------------------------

    def learn(self, node: int) -> None:
        member = self.nodes[node]
        before = [log.watermark for log in member.logs]
        member.learn(self.now_ms)
        if member.leader is not None:
            state = self.store.partition
            self.naive.setdefault(state.epoch, NaiveLeader(node, state, before)).learned(state)

    def learn_all(self) -> None:
        for node in self.nodes.values():
            if node.is_up:
                self.learn(node.node_id)

    def propose(self, node: int) -> Transaction | None:
        leader = self.nodes[node].leader
        assert leader is not None
        change = leader.propose(self.now_ms, self.store.nodes)
        if change is None:
            return None
        transaction = Transaction(node, leader.epoch, change)
        self.naive[leader.epoch].proposed(transaction)
        self.transactions.append(transaction)
        return transaction

    def commit(self, transaction: Transaction) -> bool:
        """The transaction arrives at the store. The answer is on its way."""
        self.transactions.remove(transaction)
        written = self.store.commit(transaction)
        self.outcomes.append((transaction, written))
        return written

    def tell(self, outcome: tuple[Transaction, bool]) -> None:
        """The store's answer arrives. That of a commit means nothing: the watch brings it."""
        self.outcomes.remove(outcome)
        transaction, written = outcome
        if not written:
            self.naive[transaction.epoch].refused(transaction)
            leader = self.nodes[transaction.node].leader
            if leader is not None:
                leader.refused(transaction.change, self.now_ms)

    def lose(self, transaction: Transaction) -> None:
        """The leader gives up waiting for the answer; the transaction may still arrive."""
        self.naive[transaction.epoch].lost(transaction)
        leader = self.nodes[transaction.node].leader
        if leader is not None:
            leader.unknown(transaction.change, self.now_ms)

    # -- time and faults -------------------------------------------------------------------------------

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        for node in self.leaders():
            assert node.leader is not None
            node.leader.expire(self.now_ms)

    def kill(self, node: int) -> None:
        self.nodes[node].stop()

    def power_cut(self, node: int, kept: list[int]) -> None:
        self.nodes[node].power_cut(kept)

    def end_lease(self, node: int) -> None:
        """The store forgets a node: it died, or could not reach the store."""
        self.store.revision += 1
        self.store.nodes.pop(node, None)

    def restart(self, node: int) -> None:
        self.nodes[node].start()

    def register(self, node: int) -> None:
        """A node that lives and lost its lease comes back, when its image has reached the store's."""
        self.learn(node)
        self.nodes[node].broker_epoch = self.store.register(node)

    def elect(self, node: int) -> None:
        assert self.store.needs_leader()
        assert node in self.store.electable()
        self.store.elect(node)

    def heal(self) -> None:
        """All faults end. After some rounds everybody is in sync and has the same log (L12, A2)."""
        for number, node in self.nodes.items():
            if not node.is_up:
                self.restart(number)
            elif number not in self.store.nodes:
                self.register(number)
        for _ in range(12):
            self._round()
            self.check()
        state = self.store.partition
        assert set(state.isr) == set(self.store.replicas), f"not all in sync: {state}"
        assert state.elr == ()
        leader = self.nodes[state.leader]
        for log in self.logs:
            for node in self.nodes.values():
                assert node.logs[log].records == leader.logs[log].records, "L12"
                assert node.logs[log].watermark == leader.logs[log].end, "the watermark is not at the end"

    def _round(self) -> None:
        for transaction in [*self.transactions]:
            self.commit(transaction)
        for outcome in [*self.outcomes]:
            self.tell(outcome)
        if self.store.needs_leader() and self.store.electable():
            self.elect(self.store.electable()[0])
        self.learn_all()
        for log in self.logs:
            for node in self.nodes.values():
                node.sync(log)
            for node in self.nodes.values():
                for _ in range(2):
                    self.replicate(node.node_id, log)
                    node.sync(log)
        for node in self.leaders():
            self.propose(node.node_id)
        self.wait(LAG_MS // 4)

    # -- what always holds -----------------------------------------------------------------------------

    def check(self) -> None:
        for node in self.leaders():
            assert node.leader is not None
            if not self.only_harm:
                node.leader.check()
            assert self.store.leaders[node.leader.epoch] == node.node_id, "L13"
        for log in self.logs:
            self._remember_committed(log)
            self._check_newest_leader(log)
            self._check_replicas(log)

    def _remember_committed(self, log: int) -> None:
        known = self.committed[log]
        for node in self.leaders():
            assert node.leader is not None
            watermark = node.leader.watermark(log)
            naive = self.naive[node.leader.epoch].watermark(log, node.logs[log], len(self.nodes))
            assert watermark == naive or self.only_harm, f"L11: watermark {watermark}, the model has {naive}"
            below = node.logs[log].records[:watermark]
            assert len(below) == watermark, "L11: the watermark is beyond the log"
            assert below == known[:watermark] or below[: len(known)] == known, "L2"
            if watermark > len(known):
                self.committed[log] = known = below

    def _check_newest_leader(self, log: int) -> None:
        state = self.store.partition
        node = self.nodes.get(state.leader)
        if node is not None and node.leader is not None and node.leader.epoch == state.epoch:
            known = self.committed[log]
            assert node.logs[log].records[: len(known)] == known, "L1"

    def _check_replicas(self, log: int) -> None:
        known = self.committed[log]
        members = [node.logs[log] for node in self.nodes.values()]
        for member in members:
            epochs = [record.epoch for record in member.records]
            assert epochs == sorted(epochs), "L12"
            assert member.records[: member.watermark] == known[: member.watermark], "L2"
            for other in members:
                self._check_matching(member.records, other.records)

    def _check_matching(self, one: list[Record], other: list[Record]) -> None:
        """Two logs with the same epoch at an offset are equal up to there."""
        both = list(zip(one, other, strict=False))
        last = max((i for i, (a, b) in enumerate(both) if a.epoch == b.epoch), default=-1)
        assert one[: last + 1] == other[: last + 1], "L2: two values in one epoch"
