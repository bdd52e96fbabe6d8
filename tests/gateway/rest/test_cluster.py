"""The cluster over REST, on one node; `tests/cluster/test_gateway_cluster.py` has three."""

from __future__ import annotations

from postroad import __version__
from postroad.gateway.node_figures import FiguresOfNodes, read
from tests.gateway.conftest import RunningGateway
from tests.gateway.rest.conftest import Api


async def test_a_cluster_of_one_node_is_told(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name, "partitions": 3}, status=201)
    found = await api.get("/v1/cluster")
    assert found["id"]
    assert (found["without_leader"], found["under_replicated"], found["wrong"]) == (0, 0, [])
    (node,) = found["nodes"]
    assert (node["state"], node["is_controller"], node["version"]) == ("serving", True, __version__)
    assert node["leads"] == node["replicas"] == found["partitions"] >= 3
    assert 0 < node["disk_free_bytes"] < node["disk_bytes"]
    assert node["memory_bytes"] > 1_000_000
    assert node["uptime_s"] > 0
    assert found["racks"] == {node["rack"]: 1}
    assert (await api.post("/v1/cluster/elect-preferred-leaders")) == {"elected": 0, "failed": []}


async def test_a_node_that_is_not_there_is_not_drained(api: Api) -> None:
    for verb in ("drain", "cancel-drain"):
        problem = await api.post(f"/v1/cluster/nodes/77/{verb}", status=404)
        assert problem["detail"] == "There is no node 77 in this cluster."
        await api.post(f"/v1/cluster/nodes/x/{verb}", status=400)


async def test_figures_of_a_node_count_for_a_while(gateway: RunningGateway) -> None:
    now = 0.0
    figures = FiguresOfNodes(gateway.gateway.client, lambda: now)

    async def ask() -> tuple[float | None, float]:
        (found,) = (await figures.of([1])).values()
        return found.cpu, found.uptime_s

    first = gateway.run(ask())
    assert first[0] is None
    now = 5.0
    assert gateway.run(ask()) == first
    now = 11.0
    later = gateway.run(ask())
    assert later[1] > first[1]
    assert later[0] is not None
    assert later[0] >= 0
    assert gateway.run(figures.of([77])) == {}


def test_figures_are_read_from_a_page_of_metrics() -> None:
    page = """# HELP postroad_node_info 1, with the node's version.
postroad_node_info{node="1",version="9.8.7"} 1
postroad_node_cpu_seconds_total{node="1"} 12.5
postroad_node_disk_free_bytes{node="1"} 5e+09
postroad_partition_bytes{node="1",topic="postroad_node_memory_bytes"} 7
"""
    found = read(page)
    assert (found.version, found.cpu_seconds, found.disk_free_bytes) == ("9.8.7", 12.5, 5_000_000_000)
    assert (found.memory_bytes, found.disk_bytes) == (0, 0)
