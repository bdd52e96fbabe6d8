"""Transcripts: stories of a cluster as text, each command with what comes of it.

A transcript is blocks of commands, one a line, then `----`, then what they print, up to an empty line. `#`
begins a comment. After each command all that must hold is checked; what does not is printed, and ends it.

    cluster [replicas=3] [min=2] [logs=1] [flush=os]
    produce NODE [ledger]      a leader appends a record; records are a, b, c … with their leader epoch
    fetch NODE [ledger]        a follower asks, is answered and does what the answer says
    send, handle, deliver NODE the same in three steps, of the oldest that is on its way
    sync NODE [ledger]
    propose NODE               a leader proposes a change of the ISR
    commit, tell, lose NODE    the proposal reaches the store; its answer comes; no answer comes
    learn NODE…                what the store says reaches these nodes
    elect, remove NODE         the controller elects a leader, takes a dead node out of the ISR
    lower                      min.insync becomes 1
    kill, expire, restart NODE a process dies; its lease ends; it starts, or registers anew if it is alive
    cut NODE KEPT…             a power cut, after which its logs have so many records
    wait MS
    state                      the store and all logs; | is the watermark

`python -m tests.replication.interpreter FILE…` writes what really comes of the commands into the files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from postroad.replication.follower import Step
from tests.replication.model_cluster import ModelCluster
from tests.replication.model_log import ModelLog, Record
from tests.replication.model_node import FetchAnswer, Rules

SEPARATOR = "----"
ERRORS = {1: "out of range", 6: "not the leader", 74: "fenced", 75: "unknown epoch"}


class Interpreter:
    def __init__(self, rules: Rules | None = None, *, only_harm: bool = False) -> None:
        self.rules = rules
        self.only_harm = only_harm
        self.cluster = ModelCluster(rules=rules)

    def run(self, text: str) -> str:
        """The transcript as it really goes."""
        written: list[str] = []
        lines = iter(text.splitlines())
        for line in lines:
            if line != SEPARATOR:
                written.append(line)
                continue
            block = _block(written)
            written.append(SEPARATOR)
            try:
                for command in block:
                    written.extend(self.command(command))
            except AssertionError as error:
                written.append(f"violated: {error}")
                return "\n".join(written) + "\n"
            for expected in lines:
                if not expected:
                    written.append("")
                    break
        return "\n".join(written) + "\n"

    def command(self, line: str) -> list[str]:
        name, *arguments = line.split()
        method = getattr(self, f"do_{name}")
        printed: list[str] = method(*arguments)
        self.cluster.check()
        return printed

    # -- data ------------------------------------------------------------------------------------------

    def do_cluster(self, *options: str) -> list[str]:
        given = dict(option.split("=") for option in options)
        self.cluster = ModelCluster(
            int(given.get("replicas", "3")),
            int(given.get("min", "2")),
            int(given.get("logs", "1")),
            syncs=given.get("flush", "os") == "sync",
            rules=self.rules,
            only_harm=self.only_harm,
        )
        return [_store(self.cluster)]

    def do_produce(self, node: str, log: str = "") -> list[str]:
        member = self.cluster.nodes[int(node)]
        if member.leader is None:
            return [f"{node} does not lead"]
        self.cluster.produce(int(node), _log(log))
        return self._logs_of(int(node), _log(log))

    def do_fetch(self, node: str, log: str = "") -> list[str]:
        sent = self.cluster.send_fetch(int(node), _log(log))
        if sent is None:
            return [f"{node} does not fetch"]
        answer = self.cluster.handle(sent)
        return self._delivered(answer) if answer else ["no answer"]

    def do_send(self, node: str, log: str = "") -> list[str]:
        fetch = self.cluster.send_fetch(int(node), _log(log))
        return [f"{node} asks {fetch.leader} from {fetch.offset} on"] if fetch else [f"{node} does not fetch"]

    def do_handle(self, node: str) -> list[str]:
        fetch = next(fetch for fetch in self.cluster.fetches if fetch.follower == int(node))
        answer = self.cluster.handle(fetch)
        return [_answer(answer)] if answer else ["no answer"]

    def do_deliver(self, node: str) -> list[str]:
        return self._delivered(next(a for a in self.cluster.answers if a.fetch.follower == int(node)))

    def _delivered(self, answer: FetchAnswer) -> list[str]:
        step = self.cluster.deliver(answer)
        if step in (Step.STALE, Step.WAIT):
            return [f"{_answer(answer)}: {step.name.lower()}"]
        number = answer.fetch.follower
        return [f"{_answer(answer)}: {step.name.lower()}", *self._logs_of(number, answer.fetch.log)]

    def do_sync(self, node: str, log: str = "") -> list[str]:
        self.cluster.nodes[int(node)].sync(_log(log))
        return self._logs_of(int(node), _log(log))

    def _logs_of(self, number: int, log: int) -> list[str]:
        shown = {number, *(node.node_id for node in self.cluster.leaders())}
        return [f"{each}: {_records(self.cluster.nodes[each].logs[log])}" for each in sorted(shown)]

    # -- the store -------------------------------------------------------------------------------------

    def do_propose(self, node: str) -> list[str]:
        if self.cluster.nodes[int(node)].leader is None:
            return [f"{node} does not lead"]
        transaction = self.cluster.propose(int(node))
        if transaction is None:
            return ["nothing"]
        change = transaction.change
        joiners = "".join(f", {joiner} joins" for joiner, _ in change.joiners)
        resigns = ", resigns" if change.resigns else ""
        return [f"ISR {_names(change.isr)}, ELR {_names(change.elr)}{joiners}{resigns}"]

    def do_commit(self, node: str) -> list[str]:
        transaction = next((t for t in self.cluster.transactions if t.node == int(node)), None)
        if transaction is None:
            return ["nothing"]
        return [_store(self.cluster) if self.cluster.commit(transaction) else "refused"]

    def do_tell(self, node: str) -> list[str]:
        outcome = next((o for o in self.cluster.outcomes if o[0].node == int(node)), None)
        if outcome is not None:
            self.cluster.tell(outcome)
        return self._logs_of(int(node), 0)

    def do_lose(self, node: str) -> list[str]:
        transaction = next((t for t in self.cluster.transactions if t.node == int(node)), None)
        if transaction is not None:
            self.cluster.lose(transaction)
        return self._logs_of(int(node), 0)

    def do_learn(self, *nodes: str) -> list[str]:
        printed = []
        for node in nodes:
            self.cluster.learn(int(node))
            printed.append(self._role(int(node)))
        return printed

    def _role(self, number: int) -> str:
        node = self.cluster.nodes[number]
        if node.leader is not None:
            start = node.leader.logs[0].start_offset
            isr, elr = _names(node.leader.isr), _names(node.leader.elr)
            return f"{number} leads in epoch {node.leader.epoch} from {start} on: ISR {isr}, ELR {elr}"
        follower = node.followers[0]
        leader = str(follower.leader) if follower.leader > 0 else "nobody"
        return f"{number} follows {leader} in epoch {follower.epoch}"

    def do_elect(self, node: str) -> list[str]:
        if not self.cluster.store.needs_leader() or int(node) not in self.cluster.store.electable():
            return [f"{node} can't be elected"]
        self.cluster.elect(int(node))
        return [_store(self.cluster)]

    def do_remove(self, node: str) -> list[str]:
        self.cluster.store.remove_dead(int(node))
        return [_store(self.cluster)]

    def do_lower(self) -> list[str]:
        self.cluster.store.lower_minimum()
        return [_store(self.cluster)]

    # -- time and faults -------------------------------------------------------------------------------

    def do_kill(self, node: str) -> list[str]:
        self.cluster.kill(int(node))
        return []

    def do_expire(self, node: str) -> list[str]:
        self.cluster.end_lease(int(node))
        return []

    def do_restart(self, node: str) -> list[str]:
        if self.cluster.nodes[int(node)].is_up:
            self.cluster.register(int(node))
        else:
            self.cluster.restart(int(node))
        return [_store(self.cluster)]

    def do_cut(self, node: str, *kept: str) -> list[str]:
        self.cluster.power_cut(int(node), [int(records) for records in kept])
        return []

    def do_wait(self, ms: str) -> list[str]:
        self.cluster.wait(int(ms))
        return []

    def do_state(self) -> list[str]:
        printed = [_store(self.cluster)]
        for number, node in self.cluster.nodes.items():
            logs = "; ".join(_records(log) for log in node.logs)
            role = "leads" if node.leader else "follows" if node.is_up else "is down"
            printed.append(f"{number} {role}: {logs}")
        return printed


def _block(written: Sequence[str]) -> list[str]:
    """The commands directly above."""
    commands: list[str] = []
    for line in reversed(written):
        if not line:
            break
        if not line.startswith("#"):
            commands.append(line)
    return commands[::-1]


def _log(name: str) -> int:
    return 1 if name == "ledger" else 0


def _records(log: ModelLog) -> str:
    texts = [_record(record) for record in log.records]
    texts.insert(log.watermark, "|")
    if log.syncs and log.synced < log.end:
        texts.append(f"({log.end - log.synced} not synced)")
    return " ".join(texts)


def _record(record: Record) -> str:
    return f"{chr(ord('a') + record.value - 1)}{record.epoch}"


def _answer(answer: FetchAnswer) -> str:
    if answer.error:
        return ERRORS[answer.error]
    if answer.parting is not None:
        return f"parted: epoch {answer.parting.epoch} ends at {answer.parting.end_offset}"
    return f"{len(answer.records)} records, watermark {answer.watermark}"


def _names(nodes: Iterable[int]) -> str:
    return " ".join(str(node) for node in nodes) or "-"


def _store(cluster: ModelCluster) -> str:
    state = cluster.store.partition
    leader = str(state.leader) if state.leader > 0 else "nobody"
    isr, elr = _names(state.isr), _names(state.elr)
    return f"store: {leader} leads in epoch {state.epoch}, ISR {isr}, ELR {elr}"


if __name__ == "__main__":
    for file in map(Path, sys.argv[1:]):
        file.write_text(Interpreter().run(file.read_text()))
