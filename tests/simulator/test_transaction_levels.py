"""Transactions wait until every node of a cluster knows of them: an older one would not end what it holds."""

from __future__ import annotations

from postroad.cluster import keys
from postroad.wire.messages import api_versions, find_coordinator
from tests.simulator.simulated_cluster import SimulatedCluster, simulated_cluster

NOT_AVAILABLE = 15
STATE = "__transaction_state"


def ask(cluster: SimulatedCluster) -> int:
    """The error that a producer hears that looks for the coordinator of its id."""
    request = find_coordinator.FindCoordinatorRequest(key_type=1, coordinator_keys=["shop"])
    return int(cluster.call(1, find_coordinator, 4, request).coordinators[0].error_code)


def features(cluster: SimulatedCluster) -> list[str]:
    answer = cluster.call(1, api_versions, 4, api_versions.ApiVersionsRequest("tests", "1"))
    return [feature.name for feature in answer.finalized_features]


def test_no_transaction_begins_while_a_node_runs_an_older_version() -> None:
    with simulated_cluster(1) as cluster:
        image = cluster.nodes[1].image
        cluster.until(lambda: image.level == keys.LEVEL)
        image.level = keys.MOVES_LEVEL  # as if another node had not been updated yet
        assert ask(cluster) == NOT_AVAILABLE
        assert features(cluster) == []
        assert STATE not in image.topics
        image.level = keys.LEVEL
        cluster.until(lambda: not ask(cluster))
        image.level = keys.PLEDGES_LEVEL
        assert features(cluster) == ["transaction.version"], "an older node would not end shared ones"
        image.level = keys.LEVEL
        assert features(cluster) == ["transaction.version", "postroad.shared.transactions"]
