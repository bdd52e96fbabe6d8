"""The coordination store as far as one partition needs it: keys, commits, and what the controller decides."""

from __future__ import annotations

from typing import NamedTuple

from postroad.replication.in_sync import IsrChange, effective_minimum, elr_after

NOBODY = -1


class PartitionKey(NamedTuple):
    revision: int
    leader: int
    epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    min_insync: int


class Transaction(NamedTuple):
    """A leader's commit on its way to the store."""

    node: int
    epoch: int
    change: IsrChange


class ModelStore:
    def __init__(self, replicas: tuple[int, ...], min_insync: int) -> None:
        self.replicas = replicas
        self.revision = 1
        self.partition = PartitionKey(1, replicas[0], 1, replicas, (), min_insync)
        self.nodes: dict[int, int] = {}  # the broker epoch of each that is registered
        self.leaders: dict[int, int] = {1: replicas[0]}  # by epoch, for L13
        self.compares_broker_epochs = True
        self.empties_elr = True

    @property
    def minimum(self) -> int:
        return effective_minimum(self.partition.min_insync, self.replicas)

    def register(self, node: int) -> int:
        self.revision += 1
        self.nodes[node] = self.revision
        return self.revision

    def write(self, **fields: object) -> None:
        self.revision += 1
        before, self.partition = self.partition, self.partition._replace(revision=self.revision, **fields)  # type: ignore[arg-type]
        after = self.partition
        assert after.epoch >= before.epoch
        assert after.leader == before.leader or after.epoch > before.epoch, "L13"
        assert self.leaders.setdefault(after.epoch, after.leader) == after.leader, "L13"

    def commit(self, transaction: Transaction) -> bool:
        """True if its compares held, and it was written."""
        change = transaction.change
        if change.revision != self.partition.revision:
            return False
        if self.compares_broker_epochs and any(
            self.nodes.get(node) != epoch for node, epoch in change.joiners
        ):
            return False
        if change.resigns:
            self.write(leader=NOBODY, epoch=self.partition.epoch + 1, isr=change.isr, elr=change.elr)
        else:
            self.write(isr=change.isr, elr=change.elr)
        return True

    # -- the controller --------------------------------------------------------------------------------

    def electable(self) -> list[int]:
        in_sync = [node for node in self.partition.isr if node in self.nodes]
        return in_sync or [node for node in self.partition.elr if node in self.nodes]

    def needs_leader(self) -> bool:
        return self.partition.leader not in self.nodes

    def elect(self, node: int) -> None:
        state = self.partition
        if node in state.isr:
            self.write(leader=node, epoch=state.epoch + 1)
        else:
            elr = elr_after({node}, state.elr, state.isr, self.minimum)
            self.write(leader=node, epoch=state.epoch + 1, isr=(node,), elr=elr)

    def remove_dead(self, node: int) -> None:
        """Take a dead node out of the ISR; a dead leader only if nobody can follow it."""
        state = self.partition
        if node not in state.isr or node in self.nodes or (state.leader == node and self.electable()):
            return
        isr = tuple(each for each in state.isr if each != node)
        elr = elr_after(isr, state.elr, (node,), self.minimum)
        if state.leader == node:
            self.write(leader=NOBODY, epoch=state.epoch + 1, isr=isr, elr=elr)
        else:
            self.write(isr=isr, elr=elr)

    def lower_minimum(self) -> None:
        """The config and the ELR change in one commit."""
        elr = elr_after(self.partition.isr, self.partition.elr, (), 1)
        self.write(min_insync=1, elr=elr if self.empties_elr else self.partition.elr)

    def started(self, node: int, *, lost_data: bool) -> None:
        """A starting node's own commit: it resigns what it led, and leaves if it lost data."""
        state = self.partition
        led = state.leader == node
        if lost_data and {*state.isr, *state.elr} == {node}:
            self.write(leader=NOBODY, epoch=state.epoch + 1, isr=(node,), elr=())
        elif lost_data and node in (*state.isr, *state.elr):
            self.write(
                leader=NOBODY if led else state.leader,
                epoch=state.epoch + led,
                isr=tuple(each for each in state.isr if each != node),
                elr=tuple(each for each in state.elr if each != node),
            )
        elif led:
            self.write(leader=NOBODY, epoch=state.epoch + 1)
