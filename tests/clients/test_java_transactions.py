"""Java's client of Kafka 4: it gives each transaction an epoch, because the node says that it can."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from postroad.transactions.transaction import TransactionState
from tests.broker.harness import running_node
from tests.clients import java_client
from tests.clients.wait import until

TRANSACTIONS = 12
PROGRAM = "TransactionClient"
LIMIT_S = 120.0


@pytest.mark.slow
def test_each_transaction_has_an_epoch_and_takes_effect_or_not(tmp_path: Path) -> None:
    path = java_client.classpath(tmp_path, PROGRAM)
    with running_node(tmp_path / "node") as running:
        running.create("t", partitions=2)
        arguments = [f"127.0.0.1:{running.node.port}", "t", "shop", "group", str(TRANSACTIONS)]
        command = ["java", "-Xmx256m", "-cp", path, PROGRAM, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        said = [line.split() for line in done.stdout.splitlines()]
        committed = [number for word, number in said if word == "committed"]
        assert len(committed) == TRANSACTIONS - TRANSACTIONS // 3 + 1
        assert [error for word, error in said if word == "fenced"] != []
        assert Counter(value for word, value in said if word == "read") == dict.fromkeys(committed, 2)
        assert [offset for word, offset in said if word == "offset"] == [str(TRANSACTIONS - 2)]
        known = running.node.transactions.find("shop").transactions.known
        until(lambda: known["shop"].state is TransactionState.COMPLETE_COMMIT, "the last one is complete")
        # One for each transaction; the rival's fence and the rival take two more.
        assert (known["shop"].version, known["shop"].epoch) == (2, TRANSACTIONS + 3)
