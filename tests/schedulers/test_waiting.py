"""How much waits for a consumer group or a subscription, as their own clients have left it."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Consumer, TopicPartition

import postroad
from postroad.errors import GroupIdNotFound
from postroad.schedulers.access import Access
from postroad.schedulers.waiting import messages_waiting
from postroad.testing import Node


@pytest.fixture
def names() -> tuple[str, str]:
    run = uuid.uuid4().hex
    return f"topic-{run}", f"group-{run}"


def publish(node: Node, topic: str, count: int) -> None:
    with postroad.SyncClient(node.bootstrap) as client:
        client.publish_many(topic, [{"number": number} for number in range(count)])


def test_all_of_a_topic_waits_for_who_has_not_begun(postroad_session: Node, names: tuple[str, str]) -> None:
    topic, group = names
    access = Access(postroad_session.bootstrap)
    assert messages_waiting(access, group, [topic]) == 0, "a topic that is yet to come has no messages"
    publish(postroad_session, topic, 5)
    assert messages_waiting(access, group, [topic]) == 5
    with pytest.raises(GroupIdNotFound, match="name its topics"):
        messages_waiting(access, group)


def test_what_a_group_has_not_committed_waits_for_it(postroad_session: Node, names: tuple[str, str]) -> None:
    topic, group = names
    access = Access(postroad_session.bootstrap)
    publish(postroad_session, topic, 5)
    consumer = Consumer({"bootstrap.servers": postroad_session.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    consumer.close()
    for topics in ([], [topic]):
        assert messages_waiting(access, group, topics) == 2
    publish(postroad_session, f"{topic}-new", 4)
    assert messages_waiting(access, group, [topic, f"{topic}-new"]) == 6


def test_what_a_subscription_has_not_settled_waits_for_it(
    postroad_session: Node, names: tuple[str, str]
) -> None:
    topic, group = names
    access = Access(postroad_session.bootstrap)
    publish(postroad_session, topic, 3)
    client = postroad.SyncClient(postroad_session.bootstrap)
    with client, client.receive(group, topic=topic, of=dict) as messages:
        first = messages.next(None)
        assert first is not None
        first.accept()
    assert messages_waiting(access, group) == 2
    assert messages_waiting(access, group, [topic]) == 2
