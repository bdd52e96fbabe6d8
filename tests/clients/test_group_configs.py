"""Configs of groups, by the clients that know them: confluent-kafka's and kafka-python's admin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType as PythonResourceType

from .conftest import Broker
from .python_kafka import admin_client

LOCK = "share.record.lock.duration.ms"
SET, DELETE = AlterConfigOpType.SET, AlterConfigOpType.DELETE
DEFAULT, OVERRIDE = ConfigSource.DEFAULT_CONFIG.value, ConfigSource.GROUP_CONFIG.value


@pytest.fixture
def python_admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    with admin_client(broker.bootstrap) as admin:
        yield admin


def described(admin: AdminClient, group: str, name: str) -> tuple[str, int]:
    (answer,) = admin.describe_configs([ConfigResource(ResourceType.GROUP, group)]).values()
    entry = answer.result(10)[name]
    return entry.value, entry.source


def alter(admin: AdminClient, group: str, *changes: tuple[str, str | None, AlterConfigOpType]) -> Any:
    entries = [
        ConfigEntry(name, value, incremental_operation=operation) for name, value, operation in changes
    ]
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
    (answer,) = admin.incremental_alter_configs([resource]).values()
    return answer.result(10)


def test_group_configs_are_altered_before_the_group_exists(admin: AdminClient, group: str) -> None:
    assert described(admin, group, LOCK) == ("30000", DEFAULT)
    alter(admin, group, (LOCK, "20000", SET), ("share.auto.offset.reset", "by_duration:PT30S", SET))
    assert described(admin, group, LOCK) == ("20000", OVERRIDE)
    assert described(admin, group, "share.auto.offset.reset") == ("by_duration:PT30S", OVERRIDE)
    alter(admin, group, (LOCK, None, DELETE))
    assert described(admin, group, LOCK) == ("30000", DEFAULT)


def test_topics_of_a_subscription_are_a_list(admin: AdminClient, group: str) -> None:
    alter(admin, group, ("postroad.topics", "jobs", AlterConfigOpType.APPEND))
    alter(admin, group, ("postroad.topics", "rushes", AlterConfigOpType.APPEND))
    assert described(admin, group, "postroad.topics") == ("jobs,rushes", OVERRIDE)
    alter(admin, group, ("postroad.topics", "jobs", AlterConfigOpType.SUBTRACT))
    assert described(admin, group, "postroad.topics") == ("rushes", OVERRIDE)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("share.auto.offset.reset", "by_duration:1d", "P1DT2H"),
        (LOCK, "43200001", "from 0 to 43200000"),
        ("share.record.lock.ms", "1", LOCK),
    ],
)
def test_wrong_group_config_is_refused_with_what_would_be_right(
    admin: AdminClient, group: str, name: str, value: str, told: str
) -> None:
    with pytest.raises(KafkaException) as refused:
        alter(admin, group, (name, value, SET))
    error = refused.value.args[0]
    assert error.code() == KafkaError.INVALID_CONFIG
    assert told in error.str()


@pytest.mark.parametrize("incremental", [True, False])
def test_kafka_python_alters_and_resets_group_configs(
    python_admin: KafkaAdminClient, group: str, incremental: bool
) -> None:
    def lock() -> str:
        resource = PythonResource(PythonResourceType.GROUP, group)
        return str(
            python_admin.describe_configs([resource], config_filter="all")["group"][group][LOCK]["value"]
        )

    resource = PythonResource(PythonResourceType.GROUP, group, {LOCK: "20000"})
    assert lock() == "30000"
    assert python_admin.alter_configs([resource], incremental=incremental) == {"group": {group: "OK"}}
    assert lock() == "20000"
    python_admin.reset_configs([resource], incremental=incremental)
    assert lock() == "30000"
