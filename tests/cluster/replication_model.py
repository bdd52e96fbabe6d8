"""Nodes that replicate two partitions, as far as the cluster room's decisions can make them lose something.

The decisions are the real ones; what surrounds them is the smallest thing that obeys the rules of
docs/spec/Postroad.tla: logs are lists of (epoch, value), a node reads the store late, and whatever it
decided is sent at any later time, even after its death. A step that can't be taken is passed over. After each
one `check` says what must hold: nothing committed is missing at a leader, one value for each offset and
epoch, one leader for each epoch, elections only from ISR and ELR, and nothing written by a controller that
has lost its key or against a leader that lives.

The topic `os` loses any tail when a machine's power is cut, `sync` only what was not synced. Of `os` nothing
is promised once power was cut while another replica had not recovered from a cut, or with a minimum of 1;
then it must only become whole again, and never have two values at an offset in one epoch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from postroad.cluster import controller, keys, leadership, membership, reconciliation
from postroad.cluster.config_changes import replace_config
from postroad.cluster.decision import Decision
from postroad.cluster.image import NO_LEADER, Image, NodeEntry
from postroad.cluster.keys import PartitionState
from postroad.cluster.leadership import IsrChange, Move
from postroad.cluster.partition_rules import Standing, min_insync
from postroad.cluster.store import ABSENT
from tests.cluster.applied import topic_id
from tests.cluster.memory_store import MemoryStore

Log = list[tuple[int, int]]

NODES = (1, 2, 3)
OS, SYNC = TOPICS = ("os", "sync")
NODE, CONTROLLER = "node", "controller"
NO_EPOCH = -1  # of an empty log


class Violation(AssertionError):
    """Something that must hold does not."""


@dataclass
class Leading:
    """A leadership, which dies with its process."""

    epoch: int
    start: int
    progress: dict[int, tuple[int, int]] = field(default_factory=dict)  # node: offset, broker epoch
    proposed: frozenset[int] = frozenset()  # an ISR on its way, at this revision of the chunk
    revision: int = ABSENT


class Pending(NamedTuple):
    """A decision on its way to the store."""

    node: int
    role: str
    decision: Decision
    controller_key: int = ABSENT  # the revision of the controller's key that its sender had seen
    proposal: Leading | None = None  # whose leader counts on the ISR in it until it has an answer


class Request(NamedTuple):
    """A follower's fetch on its way, and what it was when it sent it."""

    topic: str
    leader: int
    epoch: int
    offset: int
    last_epoch: int
    broker_epoch: int
    life: int


@dataclass
class Replica:
    """A node: what is on its disk, and what dies with its process."""

    id: int
    logs: dict[str, Log] = field(default_factory=lambda: {topic: [] for topic in TOPICS})
    marks: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TOPICS, 0))
    synced: int = 0  # how much of the log of `sync` a power cut leaves
    other_boot: bool = False
    life: int = 0
    running: str = "dead"  # or "starting", "up"
    lease: int = 0
    image: Image = field(default_factory=Image)
    leads: dict[str, Leading] = field(default_factory=dict)
    fetch: Request | None = None

    def state(self, topic: str) -> PartitionState:
        return self.image.topics[topic].partitions[0]


class Replication:
    ids: tuple[int, ...] = NODES  # of all nodes; NODES hold the replicas

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.truth = Image()
        self.nodes = {node: Replica(node) for node in self.ids}
        self.committed: dict[str, Log] = {topic: [] for topic in TOPICS}
        self.pending: list[Pending] = []
        self.damaged: dict[int, None] = {}  # lost a tail and has not caught up since
        self.values = 0
        self.minimum = 2
        self.lossy = False  # of `os` nothing is promised any more
        for number, topic in enumerate(TOPICS):
            made = controller.create_topic(
                self.truth, topic, topic_id(number + 1), nodes=NODES, assignments={0: NODES}
            )
            self.commit(Pending(0, NODE, made))
        self.heal()

    # --- the store -------------------------------------------------------------------------------

    def commit(self, sent: Pending) -> bool:
        before = {name: topic.partitions[0] for name, topic in self.truth.topics.items()}
        alive, key = dict(self.truth.nodes), self.truth.key_revision(keys.CONTROLLER)
        if not self.store.commit(*sent.decision):
            return False
        self._follow(self.truth)
        self.check_store()
        for name, state in before.items():
            after = self.truth.topics[name].partitions[0]
            self._check_step(sent, state, after, alive, key)
            if name == OS:
                for joined in set(after.isr) - set(state.isr):
                    self.damaged.pop(joined, None)
        return True

    def _follow(self, image: Image, until: int | None = None) -> None:
        last = self.store.revision if until is None else until
        for revision in range(image.revision + 1, last + 1):
            image.apply(self.store.history[revision], revision)

    def _check_step(
        self,
        sent: Pending,
        before: PartitionState,
        after: PartitionState,
        alive: dict[int, NodeEntry],
        key: int,
    ) -> None:
        if before == after:
            return
        elected = after.leader if after.leader_epoch != before.leader_epoch else NO_LEADER
        if elected != NO_LEADER and elected not in (*before.isr, *before.elr):
            raise Violation(f"{elected} was elected, which may lack what is committed")
        if sent.role == CONTROLLER and sent.controller_key != key:
            raise Violation(f"{sent.node} wrote without the controller's key")
        led = alive.get(before.leader)
        moved = after.leader_epoch != before.leader_epoch and before.leader != sent.node
        if moved and led is not None and led.state != keys.STARTING:
            raise Violation(f"{before.leader} was replaced although it lives")

    # --- what happens by itself --------------------------------------------------------------------

    def deliver(self, index: int) -> None:
        """A decision reaches the store. A leader whose change was refused no longer counts on it."""
        sent = self.pending.pop(index)
        if not self.commit(sent) and sent.proposal is not None:
            sent.proposal.proposed = frozenset()

    def learn(self, node: Replica, revision: int | None = None) -> None:
        """The node reads the store, up to a revision, and takes the roles that it has there."""
        if node.running != "up":
            return
        self._follow(node.image, revision)
        for topic in TOPICS:
            state = node.state(topic)
            if state.leader != node.id:
                node.leads.pop(topic, None)
                continue
            lead = node.leads.get(topic)
            if lead is None or lead.epoch != state.leader_epoch:
                lead = node.leads[topic] = Leading(state.leader_epoch, len(node.logs[topic]))
            if lead.revision != _chunk_revision(node, topic):
                lead.proposed = frozenset()
            self._advance(node, topic)

    def produce(self, node: Replica, topic: str) -> None:
        lead = node.leads.get(topic)
        if lead is not None:
            self.values += 1
            node.logs[topic].append((lead.epoch, self.values))
            self._advance(node, topic)

    def sync(self, node: Replica) -> None:
        node.synced = len(node.logs[SYNC])
        if SYNC in node.leads:
            self._advance(node, SYNC)

    def send_fetch(self, node: Replica, topic: str) -> None:
        if node.running != "up":
            return
        state, log = node.state(topic), node.logs[topic]
        if state.leader not in (NO_LEADER, node.id):
            epoch = node.image.node_epoch(node.id)
            node.fetch = Request(
                topic, state.leader, state.leader_epoch, len(log), _last_epoch(log), epoch, node.life
            )

    def handle_fetch(self, node: Replica, arrives: bool = True) -> None:
        """The leader handles the fetch; its answer is lost, or taken if the follower is as it was."""
        sent, node.fetch = node.fetch, None
        if sent is None:
            return
        leader, topic = self.nodes[sent.leader], sent.topic
        lead = leader.leads.get(topic)
        if lead is None or lead.epoch != sent.epoch:
            return
        log, own = leader.logs[topic], node.logs[topic]
        end = sum(epoch <= sent.last_epoch for epoch, _ in log)
        end_epoch = log[end - 1][0] if end else NO_EPOCH
        diverges = end_epoch != sent.last_epoch or end < sent.offset
        if not diverges:
            lead.progress[node.id] = (min(sent.offset, len(log)), sent.broker_epoch)
        here = (
            node.running == "up"
            and node.life == sent.life
            and (node.state(topic).leader, node.state(topic).leader_epoch) == (sent.leader, sent.epoch)
            and (len(own), _last_epoch(own)) == (sent.offset, sent.last_epoch)
        )
        if arrives and here:
            if diverges:
                del own[min(end, sum(epoch <= end_epoch for epoch, _ in own)) :]
            else:
                own += log[sent.offset :]
            node.synced = len(node.logs[SYNC])  # a follower fetches on when it has synced
        self._advance(leader, topic)
        if arrives and here and not diverges:
            node.marks[topic] = max(node.marks[topic], min(leader.marks[topic], len(own)))
        node.marks[topic] = min(node.marks[topic], len(own))

    def _advance(self, node: Replica, topic: str) -> None:
        lead, log, state = node.leads[topic], node.logs[topic], node.state(topic)
        members = {*state.isr, *lead.proposed} - {node.id}
        own = node.synced if topic == SYNC else len(log)
        mark = min([own, *(lead.progress.get(member, (0, 0))[0] for member in members)])
        enough = len(state.isr) >= min_insync(node.image.topics[topic], state)
        if not enough or mark <= node.marks[topic]:
            return
        node.marks[topic] = mark
        if mark > len(self.committed[topic]):
            if self._promised(topic) and log[: len(self.committed[topic])] != self.committed[topic]:
                raise Violation(f"{topic}: two values at one offset")
            self.committed[topic] = log[:mark]

    # --- what nodes decide -------------------------------------------------------------------------

    def change_isr(self, node: Replica, topic: str, other: int) -> None:
        """The leader wants the other one out if it is in, and in if it has caught up."""
        lead = node.leads.get(topic)
        if lead is None or lead.proposed or other == node.id:
            return
        state, topic_id_ = node.state(topic), node.image.topics[topic].id
        offset, epoch = lead.progress.get(other, (-1, 0))
        if other in state.isr:
            wanted = IsrChange(topic_id_, 0, lead.epoch, leaves=frozenset({other}))
            isr = frozenset(state.isr) - {other}
        elif offset >= max(lead.start, node.marks[topic]):
            wanted = IsrChange(topic_id_, 0, lead.epoch, joins={other: epoch})
            isr = frozenset(state.isr) | {other}
        else:
            return
        for decision in leadership.change_isr(node.image, node.id, [wanted]):
            lead.proposed, lead.revision = isr, _chunk_revision(node, topic)
            self.pending.append(Pending(node.id, NODE, decision, proposal=lead))

    def resign(self, node: Replica, topic: str, to: int, standing: Standing) -> None:
        """The leader stops serving, then hands over; it goes on only if the commit was refused."""
        lead = node.leads.get(topic)
        if lead is None or lead.proposed:
            return
        move = Move(node.image.topics[topic].id, 0, lead.epoch, to)
        if standing is not Standing.STAYS and not leadership.is_replaceable(node.image, node.state(topic)):
            return
        for decision in leadership.resign(node.image, node.id, [move], standing):
            if self.commit(Pending(node.id, NODE, decision)):
                node.leads.pop(topic)
                if standing is Standing.FAILED:
                    self._damage(node)

    def leave_isrs(self, node: Replica) -> None:
        if node.running == "up":
            for decision in leadership.leave_isrs(node.image, node.id):
                self.commit(Pending(node.id, NODE, decision))

    def claim(self, node: Replica) -> None:
        if node.running == "up":
            decision = membership.claim_controller(node.image, node.id, node.lease)
            if decision.operations:
                self.pending.append(Pending(node.id, NODE, decision))

    def reconcile(self, node: Replica) -> None:
        if node.running == "up":
            key = node.image.key_revision(keys.CONTROLLER)
            for decision in reconciliation.reconcile(node.image, node.id):
                self.pending.append(Pending(node.id, CONTROLLER, decision, key))

    def change_minimum(self, minimum: int) -> None:
        """An operator changes min.insync.replicas of both topics; once it was 1, `os` promises less."""
        if self.damaged:
            self.lossy = True
        self.minimum = min(self.minimum, minimum)
        for topic in TOPICS:
            config = {"min.insync.replicas": str(minimum)}
            decision = replace_config(self.truth, topic, config)
            self.commit(Pending(0, NODE, decision))

    # --- faults ------------------------------------------------------------------------------------

    def kill(self, node: Replica) -> None:
        node.running = "dead"
        node.life += 1
        node.leads.clear()

    def cut_power(self, node: Replica, left: Callable[[int], int]) -> None:
        """The machine goes down; of what is not synced so much is left as told."""
        self.kill(node)
        self._damage(node)
        node.other_boot = True
        del node.logs[OS][left(len(node.logs[OS])) :]
        del node.logs[SYNC][node.synced + left(len(node.logs[SYNC]) - node.synced) :]
        for topic in TOPICS:
            node.marks[topic] = min(node.marks[topic], len(node.logs[topic]))

    def _damage(self, node: Replica) -> None:
        self.lossy |= self.minimum < 2 or any(other != node.id for other in self.damaged)
        self.damaged[node.id] = None

    def end_lease(self, node: Replica) -> None:
        """The entry of the node goes: because it is dead, or because it was held up."""
        self.store.end(node.lease)
        self._follow(self.truth)

    def declare_dead(self, node: Replica, peer: Replica) -> None:
        if node.running == "dead" and peer.running == "up":
            decision = membership.declare_dead(peer.image, node.id)
            self.pending.append(Pending(peer.id, NODE, decision))

    def register(self, node: Replica) -> None:
        """A node that lives registers anew, once its image is that of the store."""
        gone = node.id not in self.truth.nodes
        if node.running == "up" and gone and node.image.revision == self.store.revision:
            self._register(node, node.image, keys.SERVING)

    def restart(self, node: Replica) -> None:
        if node.running == "dead":
            node.image = Image()
            node.image.catch_up(self.store.snapshot())
            node.running = "starting"
            node.life += 1
            self._register(node, node.image, keys.STARTING)

    def _register(self, node: Replica, image: Image, state: str) -> None:
        node.lease = self.store.grant()
        decision = controller.register_node(image, _entry(node, state), node.lease, takes_over=True)
        if not self.commit(Pending(node.id, NODE, decision)) and node.running == "starting":
            node.running = "dead"

    def finish_start(self, node: Replica) -> None:
        """What a node commits before it serves; where that is refused it tries again later."""
        if node.running != "starting":
            return
        self._follow(node.image)
        if node.id not in node.image.nodes:  # its lease ended meanwhile
            node.running = "dead"
            return
        same_boot = not node.other_boot
        decisions = leadership.start(
            node.image, node.id, same_boot=same_boot, clean=False, is_synced=lambda topic: topic.name == SYNC
        )
        if not all(self.commit(Pending(node.id, NODE, decision)) for decision in decisions):
            return
        self._follow(node.image)
        serving = controller.register_node(node.image, _entry(node, keys.SERVING), node.lease)
        if self.commit(Pending(node.id, NODE, serving)):
            node.running, node.other_boot = "up", False
            if node.id in self.truth.topics[OS].partitions[0].isr:
                self.damaged.pop(node.id, None)  # it was the last
            self.learn(node)

    # --- what must hold ----------------------------------------------------------------------------

    def check(self) -> None:
        for topic in TOPICS:
            state = self.truth.topics[topic].partitions[0]
            leads = [node for node in self.nodes.values() if topic in node.leads]
            epochs = [node.leads[topic].epoch for node in leads]
            if len(set(epochs)) != len(epochs):
                raise Violation(f"{topic}: an epoch has two leaders")
            for node in leads:
                newest = node.leads[topic].epoch == state.leader_epoch
                if (
                    newest
                    and self._promised(topic)
                    and node.logs[topic][: len(self.committed[topic])] != self.committed[topic]
                ):
                    raise Violation(f"{topic}: node {node.id} leads without what is committed")
            self._check_logs([node.logs[topic] for node in self.nodes.values()])

    def _promised(self, topic: str) -> bool:
        return topic == SYNC or not self.lossy

    def check_store(self) -> None:
        """What the store says after each commit does not contradict itself."""
        self.truth.check()

    def _check_logs(self, logs: list[Log]) -> None:
        for one in logs:
            if any(later[0] < earlier[0] for earlier, later in itertools.pairwise(one)):
                raise Violation("epochs fall in a log")
            for other in logs:
                for index, (mine, theirs) in enumerate(zip(one, other, strict=False)):
                    if mine[0] == theirs[0] and one[: index + 1] != other[: index + 1]:
                        raise Violation("two values at an offset in one epoch")

    def heal(self) -> None:
        """When faults are over everything becomes whole again, by itself."""
        for _ in range(12):
            self.tend()
            for node in self.nodes.values():
                self.restart(node)
                self.finish_start(node)
                self.learn(node)
                self.register(node)
            for node in self.nodes.values():
                self.learn(node)
                self.claim(node)
                self.reconcile(node)
                self.sync(node)
                for topic in TOPICS:
                    self.send_fetch(node, topic)
                    self.handle_fetch(node)
                    self.send_fetch(node, topic)
                    self.handle_fetch(node)
                    for other in node.state(topic).replicas:
                        if other not in node.state(topic).isr:
                            self.change_isr(node, topic, other)
                while self.pending:
                    self.deliver(0)
                self.check()
        for topic in TOPICS:
            state = self.truth.topics[topic].partitions[0]
            if state.leader == NO_LEADER or set(state.isr) != set(state.replicas) or state.elr:
                raise Violation(f"{topic} does not become whole again: {state}")
            logs = [self.nodes[node].logs[topic] for node in state.replicas]
            if any(log != logs[0] for log in logs):
                raise Violation(f"{topic}: logs differ")

    def tend(self) -> None:
        """What else is done again and again until everything is whole."""


def _chunk_revision(node: Replica, topic: str) -> int:
    return node.image.key_revision(keys.chunk_key(node.image.topics[topic].id_text, 0))


def _last_epoch(log: Log) -> int:
    return log[-1][0] if log else NO_EPOCH


def _entry(node: Replica, state: str) -> NodeEntry:
    return NodeEntry(node.id, "host", 9092, f"life{node.life}", f"disk{node.id}", state)
