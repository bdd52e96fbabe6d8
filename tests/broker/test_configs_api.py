"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs."""

from __future__ import annotations

from typing import Any

import pytest

from postroad.wire.messages import alter_configs, delete_records, describe_configs
from postroad.wire.messages import incremental_alter_configs as incremental
from tests.broker.harness import Running

UNKNOWN_TOPIC, INVALID_TOPIC, BAD_CONFIG, INVALID_REQUEST = 3, 17, 40, 42
TOPIC, NODE, LOGGER = 2, 4, 8
COPY_RATE = "follower.replication.throttled.rate"
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
OVERRIDE, DEFAULT = 1, 5


def describe(running: Running, kind: int, name: str, *keys: str, version: int = 4, **more: Any) -> Any:
    resource = describe_configs.DescribeConfigsResource(kind, name, list(keys) or None)
    request = describe_configs.DescribeConfigsRequest([resource], **more)
    return running.call(describe_configs, version, request).results[0]


def value(running: Running, topic: str, key: str) -> tuple[str | None, int]:
    [config] = describe(running, TOPIC, topic, key).configs
    return config.value, config.config_source


@pytest.mark.parametrize("version", range(describe_configs.MIN_VERSION, describe_configs.MAX_VERSION + 1))
def test_every_version_describes_a_topics_configs(shared: Running, version: int) -> None:
    name = f"configured-{version}"
    shared.create(name, retention_ms=12345)
    result = describe(shared, TOPIC, name, version=version, include_synonyms=True)
    assert result.error_code == 0
    configs = {config.name: config for config in result.configs}
    assert configs["retention.ms"].value == "12345"
    assert configs["retention.ms"].config_source == OVERRIDE
    assert configs["retention.ms"].synonyms
    assert configs["cleanup.policy"].value == "delete"
    assert configs["cleanup.policy"].config_source != OVERRIDE
    if version >= 3:
        assert configs["retention.ms"].config_type > 0


def test_only_the_keys_asked_for_are_told(shared: Running, topic: str) -> None:
    shared.create(topic)
    result = describe(shared, TOPIC, topic, "segment.bytes", "no.such.config")
    assert [config.name for config in result.configs] == ["segment.bytes"]


def test_documentation_and_synonyms_come_only_when_asked_for(shared: Running, topic: str) -> None:
    shared.create(topic)
    [bare] = describe(shared, TOPIC, topic, "retention.ms").configs
    assert (bare.documentation, bare.synonyms) == (None, [])
    [full] = describe(
        shared, TOPIC, topic, "retention.ms", include_documentation=True, include_synonyms=True
    ).configs
    assert full.documentation
    assert full.synonyms


def test_the_nodes_own_settings_are_described_and_read_only(shared: Running) -> None:
    result = describe(shared, NODE, "1")
    assert result.error_code == 0
    assert result.configs
    assert [config.name for config in result.configs if not config.read_only] == [COPY_RATE]


def test_what_can_be_changed_while_a_node_runs_is_described_as_it_is_now(shared: Running) -> None:
    for value in ("1000", None):
        operation = DELETE if value is None else SET
        assert alter(shared, "", (COPY_RATE, operation, value), kind=NODE) == 0
        (rate,) = describe(shared, NODE, "1", COPY_RATE, include_synonyms=True).configs
        assert (rate.value, rate.config_source) == (("0", 5) if value is None else (value, 3))
        assert [each.value for each in rate.synonyms] == [*([value] if value else []), "0"]
    assert shared.node.image.node_configs == {}


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nowhere", UNKNOWN_TOPIC),
        (TOPIC, "no/where", INVALID_TOPIC),
        (NODE, "2", INVALID_REQUEST),
        (NODE, "one", INVALID_REQUEST),
        (LOGGER, "1", INVALID_REQUEST),
        (0, "", INVALID_REQUEST),
    ],
)
def test_what_can_not_be_described_is_told(shared: Running, kind: int, name: str, code: int) -> None:
    result = describe(shared, kind, name)
    assert (result.error_code, bool(result.error_message), result.configs) == (code, True, [])


# --- changing


def alter(
    running: Running, name: str, *changes: Any, kind: int = TOPIC, version: int = 1, **more: Any
) -> int:
    configs = [incremental.AlterableConfig(*change) for change in changes]
    resource = incremental.AlterConfigsResource(kind, name, configs)
    request = incremental.IncrementalAlterConfigsRequest([resource], **more)
    return int(running.call(incremental, version, request).responses[0].error_code)


@pytest.mark.parametrize("version", range(incremental.MIN_VERSION, incremental.MAX_VERSION + 1))
def test_every_version_sets_and_deletes_single_overrides(shared: Running, version: int) -> None:
    name = f"altered-{version}"
    shared.create(name, segment_bytes=5000)
    assert alter(shared, name, ("retention.ms", SET, "777"), version=version) == 0
    assert value(shared, name, "retention.ms") == ("777", OVERRIDE)
    assert value(shared, name, "segment.bytes") == ("5000", OVERRIDE)
    assert shared.partition(name).log.settings.retention_ms == 777
    assert alter(shared, name, ("retention.ms", DELETE, None), version=version) == 0
    assert value(shared, name, "retention.ms") == ("604800000", DEFAULT)


def test_lists_are_appended_to_and_subtracted_from(shared: Running, topic: str) -> None:
    shared.create(topic)
    assert alter(shared, topic, ("cleanup.policy", APPEND, "compact")) == 0
    assert value(shared, topic, "cleanup.policy")[0] == "delete,compact"
    assert shared.partition(topic).log.settings.cleanup_compact
    assert alter(shared, topic, ("cleanup.policy", SUBTRACT, "delete")) == 0
    assert value(shared, topic, "cleanup.policy")[0] == "compact"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("no.such.config", SET, "1"), BAD_CONFIG),
        (("retention.ms", SET, "soon"), BAD_CONFIG),
        (("retention.ms", SET, None), BAD_CONFIG),
        (("retention.ms", APPEND, "1"), BAD_CONFIG),
        (("retention.ms", 9, "1"), INVALID_REQUEST),
        (("retention.ms", -1, "1"), INVALID_REQUEST),
        (("cleanup.policy", APPEND, "shred"), BAD_CONFIG),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(
    shared: Running, topic: str, change: tuple[str, int, str | None], code: int
) -> None:
    shared.create(topic)
    assert alter(shared, topic, ("segment.ms", SET, "1000"), change) == code
    assert shared.node.image.topics[topic].config == {}


def test_other_resources_are_refused(shared: Running) -> None:
    assert alter(shared, "nowhere", ("retention.ms", SET, "1")) == UNKNOWN_TOPIC
    assert alter(shared, "1", ("limits.idle_ms", SET, "1"), kind=NODE) == INVALID_REQUEST
    assert alter(shared, "1", ("x", SET, "1"), kind=LOGGER) == INVALID_REQUEST


def test_validate_only_changes_nothing(shared: Running, topic: str) -> None:
    shared.create(topic)
    assert alter(shared, topic, ("retention.ms", SET, "1"), validate_only=True) == 0
    assert alter(shared, topic, ("retention.ms", SET, "soon"), validate_only=True) == BAD_CONFIG
    assert shared.node.image.topics[topic].config == {}


@pytest.mark.parametrize("version", range(alter_configs.MIN_VERSION, alter_configs.MAX_VERSION + 1))
def test_the_old_way_replaces_all_overrides(shared: Running, version: int) -> None:
    name = f"replaced-{version}"
    shared.create(name, segment_bytes=5000)

    def replace(resource_name: str, key: str, text: str | None) -> int:
        resource = alter_configs.AlterConfigsResource(
            TOPIC, resource_name, [alter_configs.AlterableConfig(key, text)]
        )
        request = alter_configs.AlterConfigsRequest([resource])
        return int(shared.call(alter_configs, version, request).responses[0].error_code)

    assert replace(name, "retention.ms", "777") == 0
    assert shared.node.image.topics[name].config == {"retention.ms": "777"}
    assert replace(name, "retention.ms", "soon") == BAD_CONFIG
    assert replace("nowhere", "retention.ms", "1") == UNKNOWN_TOPIC


def test_flush_can_be_altered_while_messages_come(shared: Running, topic: str) -> None:
    shared.create(topic)
    for mode in ("sync", "interval", "os", "sync"):
        assert alter(shared, topic, ("postroad.flush", SET, mode)) == 0
        shared.publish(topic, b"x")
    assert shared.fetch(topic, 0).high_watermark == 4


def test_the_advertised_listener_is_among_the_nodes_configs(shared: Running) -> None:
    [config] = describe(shared, NODE, "1", "advertised.listeners").configs
    assert (config.value, config.read_only) == (f"PLAINTEXT://127.0.0.1:{shared.node.port}", True)


def test_an_empty_cleanup_policy_keeps_everything_until_records_are_deleted(
    shared: Running, topic: str
) -> None:
    shared.create(topic, cleanup_policy="", retention_ms=1, segment_ms=1)
    shared.publish(topic, b"a", b"b")
    assert value(shared, topic, "cleanup.policy") == ("", OVERRIDE)
    log = shared.partition(topic).log
    assert shared.on_loop(lambda: log.expire(shared.began_ms + 10**9, log.end_offset)) == []
    wanted = delete_records.DeleteRecordsTopic(topic, [delete_records.DeleteRecordsPartition(0, 1)])
    answer = shared.call(delete_records, 2, delete_records.DeleteRecordsRequest([wanted], 10_000))
    assert answer.topics[0].partitions[0].error_code == 0
