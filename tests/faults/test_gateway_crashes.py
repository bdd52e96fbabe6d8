"""kill -9 of a gateway and of its node under a load of SQS: what was answered holds, and nothing is stuck."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from postroad.testing import Node, node
from tests.clients.wait import until
from tests.gateway.processes import gateway_pid

from .load import running_threads
from .sqs_load import VISIBILITY_S, Ledger, Receiver, Sender, attempt, client

GATEWAY, NODE = "gateway", "node"
CRASHES = [GATEWAY, GATEWAY, NODE, GATEWAY]
SENDERS, RECEIVERS = 2, 3
LOAD = 60  # messages between two crashes, at least
CRASH_WITHIN_S = 0.3  # when exactly is drawn from a seed
CALM_S = VISIBILITY_S + 20  # for what was held at the last crash


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["", ".fifo"], ids=["standard", "fifo"])
def test_crashes_of_gateway_and_node_break_no_answer_and_leave_nothing_stuck(
    tmp_path: Path, suffix: str
) -> None:
    with node({"http.enabled": True}, directory=tmp_path) as running:
        sqs = client(running.http)
        queue = create_queue(sqs, f"load{suffix}")
        ledger = Ledger()
        with running_threads(*(Receiver(sqs, queue, ledger) for _ in range(RECEIVERS))):
            with running_threads(*(Sender(sqs, queue, f"s{n}", ledger) for n in range(SENDERS))):
                crash_again_and_again(running, ledger)
            until(lambda: ledger.sent <= ledger.worked_on, "all that was sent was received", CALM_S)
            until(lambda: left(sqs, queue) == 0, "nothing is left in the queue", CALM_S)
        running.kill()
        running.start()
        assert "Messages" not in client(running.http).receive_message(QueueUrl=queue, WaitTimeSeconds=1)
        assert "Traceback" not in running.log_file.read_text()
    assert ledger.came_back == []
    assert [body for body, ids in ledger.ids.items() if len(ids) > 1] == [], "sent once, stored twice"
    assert not suffix or ledger.overtook == []


def create_queue(sqs: Any, name: str) -> str:
    attributes = {"VisibilityTimeout": str(VISIBILITY_S)}
    if name.endswith(".fifo"):
        attributes["FifoQueue"] = "true"
    url: str = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url


def crash_again_and_again(running: Node, ledger: Ledger) -> None:
    random_ = random.Random(7)
    for what in CRASHES:
        wait_for_load(ledger)
        time.sleep(random_.random() * CRASH_WITHIN_S)
        if what == NODE:
            running.kill()
            running.start()
        else:
            os.kill(gateway_pid(running), signal.SIGKILL)


def wait_for_load(ledger: Ledger) -> None:
    sent, deleted = len(ledger.sent) + LOAD, len(ledger.deleted) + LOAD // 2
    until(lambda: len(ledger.sent) >= sent, f"{LOAD} messages are sent", 60)
    until(lambda: len(ledger.deleted) >= deleted, f"{LOAD // 2} messages are deleted", 60)


def left(sqs: Any, queue: str) -> int:
    """Waiting or held; -1 if nobody says."""
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    answered = attempt(sqs.get_queue_attributes, QueueUrl=queue, AttributeNames=names)
    return sum(int(answered["Attributes"][name]) for name in names) if answered else -1
