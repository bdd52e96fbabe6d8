"""Metadata: nodes, topics, who leads, and topics that appear when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from postroad.wire.messages import metadata as api
from postroad.wire.primitives import ZERO_UUID
from tests.broker.harness import Running

ALL_VERSIONS = range(api.MIN_VERSION, api.MAX_VERSION + 1)
UNKNOWN_TOPIC, INVALID_TOPIC, UNKNOWN_ID = 3, 17, 100


def ask(running: Running, version: int, *names: str, create: bool = False, **more: Any) -> Any:
    topics = [api.MetadataRequestTopic(name=name) for name in names]
    request = api.MetadataRequest(topics=topics, allow_auto_topic_creation=create, **more)
    return running.call(api, version, request)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_every_version_tells_the_node_and_the_topic_asked_for(shared: Running, version: int) -> None:
    topic_id = shared.create(f"metadata-{version}", 3)
    answer = ask(shared, version, f"metadata-{version}")
    node = answer.brokers[0]
    assert (node.node_id, node.host, node.port) == (1, "127.0.0.1", shared.node.port)
    [topic] = answer.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, f"metadata-{version}", False)
    assert topic.topic_id == (topic_id if version >= 10 else ZERO_UUID)
    assert [
        (p.partition_index, p.leader_id, list(p.replica_nodes), list(p.isr_nodes)) for p in topic.partitions
    ] == [(index, 1, [1], [1]) for index in range(3)]
    if version >= 1:
        assert answer.controller_id == 1
    if version >= 2:
        assert answer.cluster_id


def test_version_zero_means_all_topics_by_an_empty_list_and_later_ones_none(shared: Running) -> None:
    shared.create("listed")
    assert "listed" in [topic.name for topic in ask(shared, 0).topics]
    assert ask(shared, 1).topics == []
    assert ask(shared, api.MAX_VERSION).topics == []


@pytest.mark.parametrize("version", [1, api.MAX_VERSION])
def test_null_means_all_topics_internal_ones_marked(shared: Running, version: int) -> None:
    shared.create(f"among-all-{version}")
    topics = shared.call(api, version, api.MetadataRequest(topics=None)).topics
    internal = {topic.name: topic.is_internal for topic in topics}
    assert internal[f"among-all-{version}"] is False
    assert internal["__consumer_offsets"] is True


def test_a_topic_is_found_by_its_id(shared: Running) -> None:
    topic_id = shared.create("by-id")
    request = api.MetadataRequest(topics=[api.MetadataRequestTopic(topic_id=topic_id, name=None)])
    assert shared.call(api, 12, request).topics[0].name == "by-id"


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_an_id_that_nobody_has_is_an_error_and_creates_nothing(shared: Running, version: int) -> None:
    name = None if version >= 12 else ""
    request = api.MetadataRequest(topics=[api.MetadataRequestTopic(topic_id=b"\7" * 16, name=name)])
    [topic] = shared.call(api, version, request).topics
    assert (topic.error_code, topic.name or "", topic.topic_id) == (UNKNOWN_ID, "", b"\7" * 16)


def test_a_null_name_before_version_twelve_is_refused_and_not_a_defect(shared: Running) -> None:
    request = api.MetadataRequest(topics=[api.MetadataRequestTopic(name=None)])
    assert shared.call(api, 10, request).topics[0].error_code == INVALID_TOPIC


@pytest.mark.parametrize("version", [0, 1, 3])
def test_old_versions_create_what_they_ask_for(shared: Running, version: int) -> None:
    [topic] = ask(shared, version, f"created-by-{version}").topics
    assert (topic.error_code, len(topic.partitions)) == (0, 1)
    shared.publish(f"created-by-{version}", b"at once")


def test_a_client_that_forbids_creation_is_told_that_the_topic_is_unknown(shared: Running) -> None:
    assert ask(shared, 12, "not-created").topics[0].error_code == UNKNOWN_TOPIC
    assert "not-created" not in shared.node.image.topics


def test_a_node_that_forbids_creation_creates_nothing(start: Callable[..., Running]) -> None:
    running = start(topics_auto_create=False)
    assert ask(running, 12, "wanted", create=True).topics[0].error_code == UNKNOWN_TOPIC
    assert ask(running, 0, "wanted").topics[0].error_code == UNKNOWN_TOPIC


def test_many_clients_that_ask_for_a_new_topic_at_once_all_get_it(shared: Running) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(shared, 9, "rush", create=True), range(24)))
    assert {(a.topics[0].error_code, len(a.topics[0].partitions)) for a in answers} == {(0, 1)}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "é", "x" * 250, "a b"])
@pytest.mark.parametrize("create", [False, True])
def test_a_name_that_no_topic_can_have_is_an_error_of_its_own(
    shared: Running, name: str, create: bool
) -> None:
    good = "beside-bad-names"
    shared.node.image.topics.get(good) or shared.create(good)
    bad, fine = ask(shared, 9, name, good, create=create).topics
    assert (bad.error_code, bad.name) == (INVALID_TOPIC, name)
    assert (fine.error_code, fine.name) == (0, good)


def test_a_name_that_collides_with_another_is_refused(shared: Running) -> None:
    shared.create("col.lides")
    assert ask(shared, 9, "col_lides", create=True).topics[0].error_code == INVALID_TOPIC


def test_topics_of_the_nodes_own_are_not_made_by_asking(shared: Running) -> None:
    assert ask(shared, 9, "__transaction_state", create=True).topics[0].error_code == INVALID_TOPIC


def test_operations_are_told_only_to_those_who_ask(shared: Running) -> None:
    shared.create("operations")
    silent = ask(shared, 9, "operations")
    assert silent.topics[0].topic_authorized_operations == -(1 << 31)
    asked = ask(shared, 9, "operations", include_topic_authorized_operations=True)
    assert asked.topics[0].topic_authorized_operations > 0
    cluster = ask(shared, 9, "operations", include_cluster_authorized_operations=True)
    assert cluster.cluster_authorized_operations > 0
