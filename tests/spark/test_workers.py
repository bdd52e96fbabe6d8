"""Tasks that run in one process one after the other share connections, and never at the same time."""

from __future__ import annotations

import pickle

import pytest

from postroad.spark.cluster import Cluster
from postroad.spark.workers import KEPT_MAX, connected
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


def _of_a_task(node: Node, **settings: str) -> Cluster:
    """As Spark gives it to a task: unpickled."""
    made: Cluster = pickle.loads(pickle.dumps(Cluster(node.bootstrap, **settings)))  # type: ignore[arg-type]
    return made
