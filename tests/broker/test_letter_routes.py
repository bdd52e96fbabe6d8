"""No dead letter goes round in circles: what would close one is refused, and nothing is copied along it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from postroad.cluster.controller import ConfigChange, ConfigOperation, alter_group_config
from postroad.wire.messages import incremental_alter_configs as incremental
from postroad.wire.messages import share_group_heartbeat
from tests.broker.harness import Running
from tests.broker.test_dead_letters import reject
from tests.broker.test_queues import GROUP
from tests.clients.share_session import session
from tests.simulator.simulated_node import SimulatedNode

BAD_CONFIG, INVALID_REQUEST = 40, 42
SET, GROUP_RESOURCE = 0, 32
TOPICS, LETTERS, SWITCH = "postroad.topics", "errors.deadletterqueue.topic.name", "postroad.dead.letters"


@pytest.mark.parametrize(
    "configs",
    [
        {TOPICS: "jobs", LETTERS: "jobs"},
        {TOPICS: "jobs,{group}.dead"},
        {TOPICS: "{group}.dead", LETTERS: ""},
    ],
)
def test_subscription_whose_letters_go_to_one_of_its_topics_is_refused(
    shared: Running, topic: str, configs: dict[str, str]
) -> None:
    given = {name: value.format(group=topic) for name, value in configs.items()}
    answer = set_configs(shared, topic, given)
    assert answer.error_code == BAD_CONFIG
    assert "would come back for ever" in answer.error_message
    assert topic not in shared.node.image.groups


def test_letters_that_come_back_over_several_subscriptions_are_refused(shared: Running, topic: str) -> None:
    a, b, c = (f"{topic}-{letter}" for letter in "abc")
    assert set_configs(shared, a, {TOPICS: f"{a}-jobs", LETTERS: f"{b}-jobs"}).error_code == 0
    assert set_configs(shared, b, {TOPICS: f"{b}-jobs", LETTERS: f"{c}-jobs"}).error_code == 0
    answer = set_configs(shared, c, {TOPICS: f"{c}-jobs", LETTERS: f"{a}-jobs"})
    assert answer.error_code == BAD_CONFIG
    assert f"{a}-jobs → {b}-jobs → {c}-jobs" in answer.error_message
    off = {TOPICS: f"{c}-jobs", LETTERS: f"{a}-jobs", SWITCH: "false"}
    assert set_configs(shared, c, off).error_code == 0
    assert set_configs(shared, c, {SWITCH: "true"}).error_code == BAD_CONFIG


def test_letters_that_end_somewhere_may_pass_any_number_of_subscriptions(shared: Running, topic: str) -> None:
    for one in range(5):
        given = {TOPICS: f"{topic}-{one}", LETTERS: f"{topic}-{one + 1}"}
        assert set_configs(shared, f"{topic}-s{one}", given).error_code == 0
        assert set_configs(shared, f"{topic}-t{one}", given).error_code == 0


def test_topic_that_members_named_can_not_become_the_dead_letter_topic(
    start: Callable[..., Running],
) -> None:
    running = start()
    running.create("jobs")
    with session(running.bootstrap, GROUP, "jobs"):
        pass
    assert set_configs(running, GROUP, {LETTERS: "jobs"}).error_code == BAD_CONFIG


@pytest.mark.parametrize("there", [True, False])
def test_member_that_names_the_dead_letter_topic_is_refused(
    start: Callable[..., Running], there: bool
) -> None:
    running = start()
    if there:
        running.create(f"{GROUP}.dead")
    answer = join(running, GROUP, f"{GROUP}.dead")
    assert answer.error_code == INVALID_REQUEST
    assert "would come back for ever" in answer.error_message
    assert not running.node.subscriptions.exists(GROUP)
    assert join(running, "letters", f"{GROUP}.dead").error_code == 0


def test_message_in_a_circle_that_was_there_before_is_neither_copied_nor_lost(
    simulate: Callable[..., SimulatedNode],
) -> None:
    running = simulate()
    running.create("jobs")
    running.run(set_unchecked(running, GROUP, {TOPICS: "jobs", LETTERS: "jobs"}))
    running.publish("jobs", b"x")
    reject(running, 1)
    [ledger] = running.node.subscriptions.ledgers(GROUP)
    running.run_for(600)  # many tries
    assert running.partition("jobs").high_watermark == 1
    assert [dying.first for dying in ledger.dying] == [0]
    assert set_configs(running, GROUP, {LETTERS: "elsewhere"}).error_code == 0
    running.until(lambda: not list(ledger.dying), within_s=600)
    assert running.partition("elsewhere").high_watermark == 1


def set_configs(running: Running, group: str, configs: dict[str, str]) -> Any:
    changes = [incremental.AlterableConfig(name, SET, value) for name, value in configs.items()]
    resource = incremental.AlterConfigsResource(GROUP_RESOURCE, group, changes)
    request = incremental.IncrementalAlterConfigsRequest([resource], False)
    return running.call(incremental, 1, request).responses[0]


async def set_unchecked(running: Running, group: str, configs: dict[str, str]) -> None:
    """As a version has left it that refused no circle."""
    changes = [ConfigChange(name, ConfigOperation.SET, value) for name, value in configs.items()]
    await running.node.topics.decide(lambda image: alter_group_config(image, group, changes))
    await running.node.subscriptions.configured(group)


def join(running: Running, group: str, topic: str) -> Any:
    request = share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=group, member_id="m", member_epoch=0, subscribed_topic_names=[topic]
    )
    return running.call(share_group_heartbeat, 1, request)
