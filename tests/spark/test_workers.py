"""Tasks that run in one process one after the other share connections, and never at the same time; and none
waits for what it costs nothing to have at once."""

from __future__ import annotations

import pickle
import socket
import sys
import time

import pytest

from postroad.spark.cluster import Cluster
from postroad.spark.workers import KEPT_MAX, Dispatched, connected
from postroad.testing import Node
from postroad.testing import node as start_node
from tests.spark.plain import create


def test_next_task_gets_what_is_connected_already(node: Node) -> None:
    with connected(_of_a_task(node)) as first:
        first.topics()
    with connected(_of_a_task(node)) as second:
        assert second is first
    with connected(_of_a_task(node, isolation="read_committed")) as other:
        assert other is not first, "its settings are others"


def test_tasks_at_the_same_time_have_connections_of_their_own(node: Node) -> None:
    with connected(_of_a_task(node)) as outer, connected(_of_a_task(node)) as inner:
        assert inner is not outer
    with connected(_of_a_task(node)) as later:
        assert later is outer


def test_what_a_failed_task_used_is_not_used_again(node: Node) -> None:
    with pytest.raises(ValueError), connected(_of_a_task(node)) as failed:
        raise ValueError
    with connected(_of_a_task(node)) as later:
        assert later is not failed


def test_restart_between_two_tasks_goes_unnoticed(topic: str) -> None:
    with start_node() as restarted:
        create(restarted.bootstrap, topic)
        with connected(_of_a_task(restarted)) as before:
            assert before.latest([(topic, 0)]) == {(topic, 0): 0}
        restarted.restart()
        with connected(_of_a_task(restarted)) as after:
            assert after is before
            assert after.latest([(topic, 0)]) == {(topic, 0): 0}


def test_process_keeps_few_of_them(node: Node) -> None:
    kept = []
    for number in range(KEPT_MAX + 1):
        with connected(_of_a_task(node, client_id=f"task-{number}")) as cluster:
            kept.append(cluster)
    with connected(_of_a_task(node, client_id="task-0")) as first:
        assert first is not kept[0]
    with connected(_of_a_task(node, client_id=f"task-{KEPT_MAX}")) as last:
        assert last is kept[-1]


class Reader(Dispatched):
    """Something that is sent to a task."""

    def __init__(self) -> None:
        self.topic = "orders"


@pytest.mark.skipif(sys.platform != "linux", reason="Linux lets a receiver ask for it")
def test_second_half_of_a_task_does_not_wait_for_40_ms() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as jvm:
        jvm.connect(server.getsockname())
        worker, _ = server.accept()
        with worker:
            took = [_until_second_half(jvm, worker) for _ in range(40)]
        assert min(took[20:]) < 0.02, "the first ones are fast in any case"


def _until_second_half(jvm: socket.socket, worker: socket.socket) -> float:
    """A task comes in two pieces, and is answered: so does the next one, in the same connection."""
    reader = pickle.dumps(Reader())
    jvm.sendall(reader)
    jvm.sendall(b"partition")
    received = worker.recv(len(reader), socket.MSG_WAITALL)
    begun = time.monotonic()
    pickle.loads(received)
    assert worker.recv(9, socket.MSG_WAITALL) == b"partition"
    took = time.monotonic() - begun
    worker.sendall(b"rows")
    assert jvm.recv(4, socket.MSG_WAITALL) == b"rows"
    return took


def _of_a_task(node: Node, **settings: str) -> Cluster:
    """As Spark gives it to a task: unpickled."""
    made: Cluster = pickle.loads(pickle.dumps(Cluster(node.bootstrap, **settings)))  # type: ignore[arg-type]
    return made
