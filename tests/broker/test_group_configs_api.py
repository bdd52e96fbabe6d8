"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs: of groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from postroad.cluster.group_config import TABLE
from postroad.wire.messages import alter_configs, describe_configs
from postroad.wire.messages import incremental_alter_configs as incremental
from tests.broker.harness import Running, running_node

INVALID_GROUP_ID, BAD_CONFIG, INVALID_REQUEST = 24, 40, 42
GROUP = 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
DEFAULT, OVERRIDE = 5, 8

LOCK = "share.record.lock.duration.ms"


@pytest.fixture
def group(topic: str) -> str:
    """An id that no other test uses."""
    return f"group-of-{topic}"


def describe(running: Running, group: str, *keys: str, version: int = 4, **more: Any) -> Any:
    resource = describe_configs.DescribeConfigsResource(GROUP, group, list(keys) or None)
    request = describe_configs.DescribeConfigsRequest([resource], **more)
    return running.call(describe_configs, version, request).results[0]


def value(running: Running, group: str, key: str) -> tuple[str | None, int]:
    [config] = describe(running, group, key).configs
    return config.value, config.config_source


def alter(running: Running, group: str, *changes: Any, version: int = 1, **more: Any) -> int:
    configs = [incremental.AlterableConfig(*change) for change in changes]
    resource = incremental.AlterConfigsResource(GROUP, group, configs)
    request = incremental.IncrementalAlterConfigsRequest([resource], **more)
    return int(running.call(incremental, version, request).responses[0].error_code)


def replace(running: Running, group: str, version: int = 2, **configs: str | None) -> int:
    given = [alter_configs.AlterableConfig(name.replace("_", "."), text) for name, text in configs.items()]
    request = alter_configs.AlterConfigsRequest([alter_configs.AlterConfigsResource(GROUP, group, given)])
    return int(running.call(alter_configs, version, request).responses[0].error_code)


@pytest.mark.parametrize("version", range(describe_configs.MIN_VERSION, describe_configs.MAX_VERSION + 1))
def test_a_group_that_nobody_configured_is_described_with_the_defaults(
    shared: Running, group: str, version: int
) -> None:
    result = describe(shared, group, version=version)
    assert (result.error_code, result.resource_type, result.resource_name) == (0, GROUP, group)
    told = {config.name: (config.value, config.config_source) for config in result.configs}
    assert told == {name: (each.default, DEFAULT) for name, each in TABLE.definitions.items()}
    assert group not in shared.node.image.groups


@pytest.mark.parametrize("version", range(incremental.MIN_VERSION, incremental.MAX_VERSION + 1))
def test_every_version_sets_and_deletes_single_overrides(shared: Running, group: str, version: int) -> None:
    assert alter(shared, group, (LOCK, SET, "777"), ("postroad.order", SET, "key"), version=version) == 0
    assert value(shared, group, LOCK) == ("777", OVERRIDE)
    assert value(shared, group, "postroad.order") == ("key", OVERRIDE)
    assert alter(shared, group, (LOCK, DELETE, None), version=version) == 0
    assert value(shared, group, LOCK) == ("30000", DEFAULT)
    assert shared.node.image.groups[group] == {"postroad.order": "key"}


def test_documentation_and_synonyms_come_when_asked_for(shared: Running, group: str) -> None:
    alter(shared, group, (LOCK, SET, "777"))
    [full] = describe(shared, group, LOCK, include_documentation=True, include_synonyms=True).configs
    assert full.documentation
    assert [(each.value, each.source) for each in full.synonyms] == [("777", OVERRIDE), ("30000", DEFAULT)]
    assert not full.read_only


def test_topics_are_appended_to_and_subtracted_from(shared: Running, group: str) -> None:
    assert alter(shared, group, ("postroad.topics", APPEND, "jobs")) == 0
    assert alter(shared, group, ("postroad.topics", APPEND, "rushes,jobs")) == 0
    assert value(shared, group, "postroad.topics") == ("jobs,rushes", OVERRIDE)
    assert alter(shared, group, ("postroad.topics", SUBTRACT, "jobs")) == 0
    assert value(shared, group, "postroad.topics") == ("rushes", OVERRIDE)


def test_a_group_without_overrides_is_forgotten(shared: Running, group: str) -> None:
    alter(shared, group, (LOCK, SET, "777"))
    assert group in shared.node.image.groups
    assert alter(shared, group, (LOCK, DELETE, None)) == 0
    assert group not in shared.node.image.groups


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("no.such.config", SET, "1"), BAD_CONFIG),
        (("retention.ms", SET, "1"), BAD_CONFIG),
        ((LOCK, SET, "43200001"), BAD_CONFIG),
        ((LOCK, SET, None), BAD_CONFIG),
        ((LOCK, APPEND, "1"), BAD_CONFIG),
        ((LOCK, 9, "1"), INVALID_REQUEST),
        (("share.auto.offset.reset", SET, "sometime"), BAD_CONFIG),
        (("share.session.timeout.ms", SET, "5000"), BAD_CONFIG),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(
    shared: Running, group: str, change: tuple[str, int, str | None], code: int
) -> None:
    assert alter(shared, group, ("postroad.order", SET, "key"), change) == code
    assert group not in shared.node.image.groups


@pytest.mark.parametrize(("group", "code"), [("", INVALID_REQUEST), ("x" * 1025, INVALID_GROUP_ID)])
def test_what_can_be_no_group_can_not_be_configured(shared: Running, group: str, code: int) -> None:
    assert alter(shared, group, (LOCK, SET, "1")) == code
    assert replace(shared, group, postroad_order="key") == code


def test_configs_of_no_group_are_not_described(shared: Running) -> None:
    result = describe(shared, "")
    assert (result.error_code, bool(result.error_message), result.configs) == (INVALID_REQUEST, True, [])


def test_validate_only_changes_nothing(shared: Running, group: str) -> None:
    assert alter(shared, group, (LOCK, SET, "1"), validate_only=True) == 0
    assert alter(shared, group, (LOCK, SET, "soon"), validate_only=True) == BAD_CONFIG
    assert group not in shared.node.image.groups


@pytest.mark.parametrize("version", range(alter_configs.MIN_VERSION, alter_configs.MAX_VERSION + 1))
def test_the_old_way_replaces_all_overrides(shared: Running, group: str, version: int) -> None:
    assert alter(shared, group, (LOCK, SET, "777")) == 0
    assert replace(shared, group, version, postroad_order="key") == 0
    assert shared.node.image.groups[group] == {"postroad.order": "key"}
    assert replace(shared, group, version, postroad_order="random") == BAD_CONFIG
    assert replace(shared, group, version) == 0
    assert group not in shared.node.image.groups


def test_group_configs_survive_a_restart(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        assert alter(running, "workers", (LOCK, SET, "777"), ("postroad.topics", SET, "jobs")) == 0
        assert alter(running, "others", (LOCK, SET, "1")) == 0
        assert alter(running, "others", (LOCK, DELETE, None)) == 0
    with running_node(tmp_path) as running:
        assert value(running, "workers", LOCK) == ("777", OVERRIDE)
        assert running.node.image.groups == {"workers": {LOCK: "777", "postroad.topics": "jobs"}}


def test_node_gives_the_defaults_of_groups_that_do_not_say_otherwise(tmp_path: Path) -> None:
    node_default = 4
    with running_node(tmp_path, subscriptions_lock_ms="90s", subscriptions_session_ms="60s") as running:
        assert value(running, "plain", LOCK) == ("90000", node_default)
        assert alter(running, "own", (LOCK, SET, "1000")) == 0
        assert value(running, "own", LOCK) == ("1000", OVERRIDE)
        settings = running.on_loop(lambda: running.node.subscriptions.settings("plain"))
        assert (settings.lock_ms, settings.session_ms) == (90_000, 60_000)
        [config] = describe(running, "plain", LOCK, include_synonyms=True).configs
        assert [each.name for each in config.synonyms] == [f"group.{LOCK}"] * 2


def test_override_must_go_with_the_defaults_of_the_node(tmp_path: Path) -> None:
    with running_node(tmp_path, subscriptions_heartbeat_ms="40s") as running:
        assert alter(running, "group", ("share.session.timeout.ms", SET, "30000")) == BAD_CONFIG
