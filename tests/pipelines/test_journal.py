"""What a pipeline notes about itself: of two runs of one job one goes on, and its notes are what is read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from postroad.pipelines.journal import Journal, Note, Overtaken
from postroad.spark.cluster import Cluster
from postroad.testing import Node
from tests.spark import plain


@pytest.fixture
def cluster(node: Node) -> Iterator[Cluster]:
    with Cluster(node.bootstrap) as found:
        yield found


def noted(cluster: Cluster, topic: str) -> Note | None:
    return Journal(cluster, "job ", topic).get("a")


def test_of_two_runs_the_first_goes_on_and_its_notes_stand(cluster: Cluster, topic: str) -> None:
    winner, loser = Journal(cluster, "job ", topic), Journal(cluster, "job ", topic)
    winner.put("a", {"step": 0, "by": "winner"})
    with pytest.raises(Overtaken, match="another run"):
        loser.put("a", {"step": 0, "by": "loser"})
    assert noted(cluster, topic) == {"step": 0, "by": "winner"}
    winner.put("a", {"step": 1, "by": "winner"})
    assert noted(cluster, topic) == {"step": 1, "by": "winner"}
    loser.put("b", {"step": 0})  # of another job; it reads the winner's news on the way
    with pytest.raises(Overtaken):
        loser.put("a", {"step": 1, "by": "loser"})


def test_what_an_overtaken_run_noted_is_not_what_compaction_keeps(
    node: Node, cluster: Cluster, topic: str
) -> None:
    winner, loser = Journal(cluster, "job ", topic), Journal(cluster, "job ", topic)
    winner.put_all({"a": {"step": 0, "by": "winner"}, "b": {"step": 7}})
    with pytest.raises(Overtaken):
        loser.put_all({"a": {"step": 0, "by": "loser"}, "c": {"step": 1}})
    newest = {row.key: row.value for row in plain.read_all(node.bootstrap, topic)}
    assert newest == {
        b"job a": b'{"step": 0, "by": "winner"}',
        b"job b": b'{"step": 7}',
        b"job c": b'{"step": 1}',
    }


def test_a_run_that_comes_later_takes_over_and_the_one_before_ends(cluster: Cluster, topic: str) -> None:
    before = Journal(cluster, "job ", topic)
    before.put("a", {"step": 0})
    after = Journal(cluster, "job ", topic)
    after.put("a", {"step": 1})
    with pytest.raises(Overtaken):
        before.put("a", {"step": 1, "late": True})
    Journal(cluster, "job ", topic).put("a", {"step": 2})
    with pytest.raises(Overtaken):
        after.put("a", None)
    assert noted(cluster, topic) == {"step": 2}


def test_what_is_forgotten_can_be_noted_anew(cluster: Cluster, topic: str) -> None:
    journal = Journal(cluster, "job ", topic)
    for note in ({"step": 0}, None, {"step": 1}):
        journal.put("a", note)
        assert noted(cluster, topic) == journal.get("a") == note
