"""What a node that is alone does not load: its start is as quick and as small as without a cluster's code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from postroad.testing.process import wait_for_file

NOT_ALONE = {
    # the clients of other stores, and of other nodes
    "aiohttp",
    "postroad.cluster.etcd",
    "postroad.cluster.remote",
    "postroad.cluster.importing",
    "postroad.client.connection",
    # followers
    "postroad.broker.replica_fetcher",
    "postroad.broker.several_nodes",
    # transactions, which nobody has asked for
    "postroad.broker.transactions.coordinator",
    "postroad.broker.transactions.participants",
    "postroad.transactions.coordinator",
    # APIs that nobody has asked for
    "postroad.broker.api.peer",
    "postroad.broker.api.elect_leaders",
    "postroad.broker.api.alter_partition_reassignments",
    "postroad.wire.messages.write_txn_markers",
    "postroad.wire.messages.elect_leaders",
    "postroad.wire.messages.create_topics",
    # of the standard library
    "shutil",
    "tomllib",
}


def test_a_lone_node_loads_nothing_that_only_a_cluster_or_an_operator_needs(tmp_path: Path) -> None:
    ready, said = tmp_path / "ready", tmp_path / "said"
    command = [sys.executable, "-X", "importtime", "-m", "postroad", "serve", "--no-http"]
    command += ["--data", str(tmp_path / "data"), "--kafka", "127.0.0.1:0", "--ready-file", str(ready)]
    with said.open("wb") as output:
        node = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=output)
        try:
            wait_for_file(ready, node)
        finally:
            node.kill()
            node.wait()
    loaded = set(re.findall(r"^import time:.*\| +(\S+)$", said.read_text(), re.MULTILINE))
    assert "postroad.broker.node" in loaded
    assert loaded & NOT_ALONE == set()
