"""Other versions of Postroad: the source of an earlier commit, and nodes that run it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from postroad.testing import ClusterNode, RunningCluster
from postroad.testing.process import Setting

PROJECT = Path(__file__).resolve().parents[2]
BEFORE = os.environ.get("UPGRADE_FROM", "HEAD^")  # what is updated from: any commit, the last one by default


def source_of(commit: str, directory: Path) -> Path:
    """What `src` was at that commit, below the directory. Skips the test where that is not known."""
    directory.mkdir()
    try:
        archive = subprocess.run(
            ["git", "-C", str(PROJECT), "archive", "--format=tar", commit, "src"],
            capture_output=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the history has no commit {commit}, or there is no git: {error}")
    subprocess.run(["tar", "-x", "-C", str(directory)], input=archive.stdout, check=True)
    return directory / "src"


def producer_settings(source: Path) -> dict[str, int]:
    """What librdkafka needs beside nodes of that version.

    Where gaps in a producer's sequence were not answered as they are now (`log/sequence_gaps`), it repeats
    what is stored when two requests are under way while a leader stops: so it has one at a time.
    """
    knows_gaps = (source / "postroad" / "log" / "sequence_gaps.py").exists()
    return {} if knows_gaps else {"max.in.flight.requests.per.connection": 1}


class VersionedNode(ClusterNode):
    """A node that runs an older version until it is told otherwise."""

    source: Path | None = None

    def _command(self, command: list[str]) -> list[str]:
        if self.source is None:
            return command
        # Before all else that is installed; -P keeps the directory in which the tests run out of it.
        return ["env", f"PYTHONPATH={self.source}", sys.executable, "-P", *command[1:]]


class VersionedCluster(RunningCluster):
    """A cluster in which all nodes run the same older version at first."""

    def __init__(
        self, home: Path, nodes: int, store: str, settings: Mapping[str, Setting], source: Path
    ) -> None:
        self.source = source
        super().__init__(home, nodes, store, settings)

    def _make_node(self, home: Path, number: int, settings: Mapping[str, Setting]) -> ClusterNode:
        node = VersionedNode(home, number, settings)
        node.source = self.source
        return node

    def set_version(self, number: int, source: Path | None) -> None:
        """The node's next start runs this source, or with None what is tested."""
        node = self.node(number)
        assert isinstance(node, VersionedNode)
        node.source = source
