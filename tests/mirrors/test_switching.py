"""Applications move to another data centre and back, over kills of mirrors and of nodes on both sides:
nothing that was acknowledged is missing anywhere, and no group gets a message twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroad.testing import cluster, node

from .switching import OneNode, ThreeNodes, move_back_and_forth


@pytest.mark.slow
@pytest.mark.cluster_slow
def test_an_application_moves_to_another_cluster_and_back(tmp_path: Path) -> None:
    with node() as west, node() as east:
        move_back_and_forth(OneNode(west), OneNode(east), tmp_path, stays=2, rounds=1, seed=1)


@pytest.mark.slow
@pytest.mark.cluster_slow
@pytest.mark.parametrize("seed", [1, 2])
def test_an_application_moves_between_clusters_of_three_nodes(tmp_path: Path, seed: int) -> None:
    settings = {"topics.replicas": 3}
    with cluster(3, settings) as west, cluster(3, settings) as east:
        move_back_and_forth(ThreeNodes(west), ThreeNodes(east), tmp_path, stays=3, rounds=2, seed=seed)
