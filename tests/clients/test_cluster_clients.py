"""Stock clients on three nodes, with default settings: that a node dies is no affair of the application."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.client.metadata import Cluster
from postroad.testing import RunningCluster, cluster

from .cluster_load import (
    AioKafka,
    Client,
    Confluent,
    KafkaPython,
    Kcat,
    Share,
    assert_undisturbed,
    at_work,
    wait_for_progress,
)
from .java_client import Java, classpath
from .share import configure_group

PARTITIONS = 3
SETTINGS = {"topics.replicas": 3, "topics.partitions": PARTITIONS}


QUICK: list[type[Client]] = [Confluent, Share, AioKafka, Kcat]
ALL = [*QUICK, KafkaPython]  # its consumer may need its session's 45 s to come back


def clients_of(running: RunningCluster, kinds: Sequence[type[Client]]) -> list[Client]:
    has_kcat = shutil.which("kcat") is not None
    return [kind(running.bootstrap) for kind in kinds if has_kcat or kind is not Kcat]


def prepare(running: RunningCluster, clients: Sequence[Client]) -> None:
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    for done in admin.create_topics([NewTopic(client.topic, PARTITIONS, 3) for client in clients]).values():
        done.result(60)
    for client in clients:
        if isinstance(client, Share | Java):
            group = client.share_group if isinstance(client, Java) else client.group
            configure_group(admin, group, share_auto_offset_reset="earliest")
    running.wait_until_whole()


def test_stock_clients_go_on_when_a_node_dies(tmp_path: Path) -> None:
    with cluster(nodes=3, settings=SETTINGS, directory=tmp_path) as running:
        clients = clients_of(running, QUICK)
        prepare(running, clients)
        with at_work(clients):
            wait_for_progress(clients, 20)
            running.leader(clients[0].topic).kill()
            wait_for_progress(clients, 20)
    for client in clients:
        assert_undisturbed(client, least=40)


@pytest.mark.slow
@pytest.mark.cluster_slow
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_stock_clients_go_on_while_nodes_die_or_are_restarted_in_turn(tmp_path: Path, how: str) -> None:
    with cluster(nodes=3, settings=SETTINGS, directory=tmp_path) as running:
        clients = clients_of(running, ALL)
        disturb_in_turn(running, clients, how)
    for client in clients:
        assert_undisturbed(client, least=240)


@pytest.mark.slow
@pytest.mark.cluster_slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_javas_client_goes_on_while_nodes_die_or_are_restarted_in_turn(
    tmp_path: Path, how: str, protocol: str
) -> None:
    path = classpath(tmp_path)
    with cluster(nodes=3, settings=SETTINGS, directory=tmp_path) as running:
        client = Java(running.bootstrap, path, protocol)
        disturb_in_turn(running, [client], how)
    assert_undisturbed(client, least=240)


def disturb_in_turn(running: RunningCluster, clients: Sequence[Client], how: str) -> None:
    """Kill or stop each node, twice, and start it again; clients go on meanwhile.

    Clients need not connect again to a node that leads nothing: the next one goes once each node leads,
    or kcat would see all of its connections down and end itself.
    """
    prepare(running, clients)
    with at_work(clients):
        for node in [*running.nodes, *running.nodes]:
            wait_for_progress(clients, 20)
            getattr(node, how)()
            wait_for_progress(clients, 20)
            node.start()
            running.wait_until_whole()
            running.wait_until(lambda seen: does_each_lead(seen, clients), "each node leads in each topic")


def does_each_lead(seen: Cluster, clients: Sequence[Client]) -> bool:
    leaders = [{each.leader for each in seen.topics[client.topic].partitions} for client in clients]
    return all(len(of_topic) == len(seen.nodes) for of_topic in leaders)
