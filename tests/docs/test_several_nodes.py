"""What the documents show of several nodes works as printed, on one machine: `make faults`."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from postroad.testing.etcd import Etcd, etcd
from tests.clients.wait import until

from .operator import Operator, block_of, lines_of
from .reader import ENVIRONMENT

pytestmark = [pytest.mark.slow, pytest.mark.cluster_slow]

HERE = "tests/docs/test_several_nodes.py"
CLUSTER, BACKUP = "docs/cluster.md", "docs/backup.md"
ADDRESS = "10.0.0.1:9092"
STORES = (
    "etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/postroad",
    "etcd://10.0.0.1:2379/postroad",
    "etcd://10.0.0.1:2379/restored",
)
PATIENCE_S = 120.0


@pytest.fixture
def store() -> Iterator[Etcd]:
    with etcd() as running:
        yield running


@contextmanager
def ends(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)


class Machines:
    """Runs nodes by the `postroad serve` lines of the documents, each at free ports."""

    def __init__(self, home: Path, store: Etcd) -> None:
        self._home = home
        self._names = {name: store.url("/" + name.rpartition("/")[2]) for name in STORES}
        self._addresses: dict[str, str] = {}
        self._ends: dict[str, ExitStack] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._ends):
            self.stop(name)

    def serve(self, line: str, data: str, *options: str) -> None:
        """The line, for a machine with this data directory. It takes connections afterwards."""
        for name, here in self._names.items():
            line = line.replace(name, here)
        words = shlex.split(line.replace(ADDRESS, "127.0.0.1:0"))[1:]
        own = ["--data", data, "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0", *options]
        process = subprocess.Popen(
            [sys.executable, "-m", "postroad", *words, *own],
            cwd=self._home,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ends[data] = ExitStack()
        self._ends[data].enter_context(ends(process))
        assert process.stdout is not None
        printed = ""
        while "connect to" not in printed:
            said = process.stdout.readline()
            assert said, f"the node ended: {printed}"
            printed += said
        self._addresses[data] = re.findall(r"connect to (\S+);", printed)[0]

    def stop(self, data: str) -> None:
        del self._addresses[data]
        self._ends.pop(data).close()

    @property
    def operator(self) -> Operator:
        return Operator(self._home, ",".join(self._addresses.values()), self._names)

    def wait_until_whole(self, nodes: int) -> None:
        def is_whole() -> bool:
            try:
                return self.operator.do("postroad cluster status").count("serving") == nodes
            except AssertionError:  # it says so by its exit code
                return False

        until(is_whole, f"{nodes} nodes serve, and all replicas are in sync", PATIENCE_S, pause_s=0.5)


@pytest.fixture
def machines(tmp_path: Path, store: Etcd) -> Iterator[Machines]:
    with Machines(tmp_path, store) as machines:
        yield machines


def test_nodes_join_are_drained_and_go(machines: Machines) -> None:
    (serve,) = lines_of(block_of(CLUSTER, HERE, "--replicas 3 --set node.id=1 --kafka"))
    moves, rates, partitions, widening = (
        lines_of(block_of(CLUSTER, HERE, contains))
        for contains in ["cluster drain 3", "cluster rate 50MiB", "--partitions 12", "partitions.auto=12"]
    )

    def start(node: int) -> None:
        machines.serve(serve, f"node-{node}", "--set", f"node.id={node}")

    for node in (1, 2, 3):
        start(node)
    machines.operator.do("postroad topic create orders --partitions 3")
    machines.operator.do("postroad publish orders one two three")
    start(4)
    machines.wait_until_whole(4)
    for line in moves:
        if "cluster remove" in line:  # it is stopped and holds nothing
            machines.operator.do("postroad cluster drain 3")
            machines.stop("node-3")
        if "cluster reassign" in line:
            start(3)
            machines.wait_until_whole(4)
        machines.operator.do(line)
    for line in (*rates, *partitions, *widening):
        machines.operator.do(line)
    machines.wait_until_whole(4)
    described = machines.operator.do("postroad topic describe orders")
    assert "3 messages" in described
    assert len(re.findall(r"^\d+ +", described, re.MULTILINE)) == 12


@pytest.mark.parametrize(
    ("document", "contains", "data"),
    [(CLUSTER, f"/postroad --kafka {ADDRESS}", "postroad-data"), (BACKUP, "/restored", "restored")],
)
def test_one_node_becomes_three(machines: Machines, document: str, contains: str, data: str) -> None:
    import_, serve, rebalance = lines_of(block_of(document, HERE, contains))
    machines.serve("postroad serve", data)
    machines.operator.do("postroad publish orders one two three")
    machines.stop(data)
    machines.operator.do(import_)
    machines.serve(serve, data)
    for node in (2, 3):
        machines.serve(serve, f"node-{node}", "--set", f"node.id={node}")
    machines.wait_until_whole(3)
    machines.operator.do(rebalance)
    machines.wait_until_whole(3)
    assert machines.operator.do("postroad consume orders --count 3") == "one\ntwo\nthree\n"


def test_nodes_of_one_directory_are_struck_and_go_to_machines_of_their_own(machines: Machines) -> None:
    (chaos,) = lines_of(block_of(CLUSTER, HERE, "cluster chaos"))
    import_, serve = lines_of(block_of(CLUSTER, HERE, "serve --data postroad-data/node-1"))
    machines.serve("postroad serve --nodes 3 --replicas 3", "postroad-data")
    machines.operator.do("postroad publish orders one two three")
    machines.operator.do(chaos.replace("--minutes 10", "--minutes 0.3"))
    machines.stop("postroad-data")
    machines.operator.do(import_)
    for node in (1, 2, 3):
        machines.serve(serve, f"postroad-data/node-{node}", "--set", f"node.id={node}")
    machines.wait_until_whole(3)
    assert machines.operator.do("postroad consume orders --count 3") == "one\ntwo\nthree\n"
