"""Topic configs: Kafka's names and defaults, what is refused, and what comes out of them."""

from __future__ import annotations

import pytest

from postroad.cluster.config_changes import ConfigChange, ConfigOperation, alter_config, replace_config
from postroad.cluster.config_definition import ConfigSource, ConfigType
from postroad.cluster.controller import create_topic
from postroad.cluster.image import Image
from postroad.cluster.topic_config import DEFINITIONS, describe, min_insync_replicas, resolve, validate
from postroad.errors import InvalidConfig, InvalidRequest, UnknownTopicOrPartition
from tests.cluster.applied import commit, topic_id

NAMES_OF_KAFKA_4 = """
cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level
delete.retention.ms file.delete.delay.ms flush.messages flush.ms follower.replication.throttled.replicas
index.interval.bytes leader.replication.throttled.replicas local.retention.bytes local.retention.ms
max.compaction.lag.ms max.message.bytes message.timestamp.after.max.ms message.timestamp.before.max.ms
message.timestamp.type min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate
remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable retention.bytes retention.ms
segment.bytes segment.index.bytes segment.jitter.ms segment.ms unclean.leader.election.enable
"""


def test_every_config_of_kafka_4_is_known() -> None:
    ours = {name for name in DEFINITIONS if name.startswith("postroad.")}
    assert DEFINITIONS.keys() - ours == {*NAMES_OF_KAFKA_4.split()}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_default_is_valid_and_every_config_explained(name: str) -> None:
    definition = DEFINITIONS[name]
    definition.parse(definition.default)
    assert definition.doc.endswith(".")


def test_defaults_are_kafkas() -> None:
    settings = resolve({}, {})
    assert settings.retention_ms == 7 * 24 * 3600 * 1000
    assert settings.segment_bytes == 1 << 30
    assert settings.max_message_bytes == 1048588
    assert (settings.cleanup_delete, settings.cleanup_compact) == (True, False)
    assert settings.timestamp_type == "CreateTime"
    assert settings.min_cleanable_dirty_ratio == 0.5


def test_the_topic_comes_before_the_node_and_the_node_before_the_default() -> None:
    defaults = {"retention.ms": "1000", "segment.bytes": "2000"}
    settings = resolve({"retention.ms": "3000"}, defaults)
    assert (settings.retention_ms, settings.segment_bytes, settings.segment_ms) == (3000, 2000, 604_800_000)


def test_cleanup_policies_may_be_combined() -> None:
    settings = resolve({"cleanup.policy": "compact, delete"}, {})
    assert (settings.cleanup_delete, settings.cleanup_compact) == (True, True)


@pytest.mark.parametrize(
    ("overrides", "flush"),
    [
        ({}, ("os", 500)),
        ({"postroad.flush": "sync"}, ("sync", 500)),
        ({"postroad.flush": "interval"}, ("interval", 500)),
        ({"postroad.flush": "interval", "postroad.flush.interval.ms": "70"}, ("interval", 70)),
        ({"flush.messages": "1"}, ("sync", 500)),
        ({"flush.messages": "10000"}, ("sync", 500)),
        ({"flush.ms": "70"}, ("interval", 70)),
        ({"flush.ms": "0"}, ("sync", 500)),
        ({"flush.ms": "70", "flush.messages": "1"}, ("sync", 70)),
        ({"flush.ms": "70", "postroad.flush": "os"}, ("os", 70)),
        ({"flush.messages": str(2**63 - 1), "flush.ms": str(2**63 - 1)}, ("os", 500)),
    ],
)
def test_kafkas_flush_configs_keep_at_least_what_they_promise(
    overrides: dict[str, str], flush: tuple[str, int]
) -> None:
    settings = resolve(overrides, {"postroad.flush": "os", "postroad.flush.interval.ms": "500"})
    assert (settings.flush, settings.flush_interval_ms) == flush


def test_retention_is_by_time_unless_acknowledgements_are_asked_for() -> None:
    by_default = resolve({}, {})
    assert (by_default.retention_acknowledged, by_default.retention_groups) == (False, False)
    asked = resolve({"postroad.retention": "acknowledged", "postroad.retention.groups": "true"}, {})
    assert (asked.retention_acknowledged, asked.retention_groups) == (True, True)


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("retention.ms", "7d", "a whole number"),
        ("retention.ms", "", "a whole number"),
        ("retention.ms", "1_000", "a whole number"),
        ("retention.ms", "١", "a whole number"),
        ("retention.ms", "-2", "at least -1"),
        ("retention.ms", "9" * 5000, "up to 9223372036854775807"),
        ("segment.bytes", str(2**31), "up to 2147483647"),
        ("segment.bytes", "13", "at least 14"),
        ("min.cleanable.dirty.ratio", "1.1", "from 0 to 1"),
        ("min.cleanable.dirty.ratio", "nan", "a number"),
        ("cleanup.policy", "shred", "one or more of delete, compact"),
        ("cleanup.policy", ",", "one or more of delete, compact"),
        ("cleanup.policy", "delete,delete", "one or more of delete, compact"),
        ("compression.type", "brotli", "one of producer, uncompressed"),
        ("message.timestamp.type", "createtime", "one of CreateTime, LogAppendTime"),
        ("preallocate", "yes", "true or false"),
        ("postroad.flush", "never", "one of sync, os, interval"),
        ("postroad.retention", "never", "one of time, acknowledged"),
        ("postroad.retention.groups", "some", "true or false"),
    ],
)
def test_a_wrong_value_is_refused_with_what_would_be_right(name: str, value: str, right: str) -> None:
    with pytest.raises(InvalidConfig, match=f"{name}: .* it must be .*{right}"):
        validate({name: value})


@pytest.mark.parametrize(
    ("name", "near"), [("retention.mss", "retention.ms"), ("segment.byte", "segment.bytes")]
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(name: str, near: str) -> None:
    with pytest.raises(InvalidConfig, match=f"no topic config '{name}'; did you mean '{near}'"):
        validate({name: "1"})


def test_a_name_that_is_near_to_nothing_is_refused_without_a_guess() -> None:
    with pytest.raises(InvalidConfig, match=r"no topic config 'zzz'\.$"):
        validate({"zzz": "1"})


def test_lags_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"min\.compaction\.lag\.ms must not be above"):
        validate({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


# --- DescribeConfigs -----------------------------------------------------------------------------


def test_describe_tells_values_with_all_their_sources() -> None:
    (entry,) = describe({"retention.ms": "3"}, {"retention.ms": "2"}, ["retention.ms", "unknown"])
    assert (entry.value, entry.source, entry.type) == ("3", ConfigSource.TOPIC, ConfigType.LONG)
    assert entry.synonyms == (
        ("retention.ms", "3", ConfigSource.TOPIC),
        ("log.retention.ms", "2", ConfigSource.NODE),
        ("log.retention.ms", "604800000", ConfigSource.DEFAULT),
    )
    (entry,) = describe({}, {"retention.ms": "604800000"}, ["retention.ms"])
    assert (entry.source, len(entry.synonyms)) == (ConfigSource.DEFAULT, 1)


def test_what_has_no_effect_is_accepted_and_shown_as_such() -> None:
    validate({"preallocate": "true", "remote.storage.enable": "true"})
    (entry,) = describe({"preallocate": "true"}, {}, ["preallocate"])
    assert entry.value == "true"
    assert "has no effect" in entry.documentation
    assert len(describe({}, {})) == len(DEFINITIONS)


# --- changes -------------------------------------------------------------------------------------


@pytest.fixture
def image() -> Image:
    image = Image()
    config = {"retention.ms": "5", "cleanup.policy": "compact"}
    commit(image, create_topic(image, "orders", topic_id(1), nodes=[1], config=config))
    return image


def altered(image: Image, *changes: tuple[str, int, str | None]) -> dict[str, str]:
    commit(image, alter_config(image, "orders", [ConfigChange(*change) for change in changes]))
    return image.topics["orders"].config


def test_an_incremental_change_leaves_the_rest(image: Image) -> None:
    config = altered(
        image, ("segment.ms", ConfigOperation.SET, "9"), ("retention.ms", ConfigOperation.DELETE, None)
    )
    assert config == {"cleanup.policy": "compact", "segment.ms": "9"}


def test_lists_may_be_appended_to_and_subtracted_from(image: Image) -> None:
    policy = "cleanup.policy"
    assert altered(image, (policy, ConfigOperation.APPEND, "delete"))[policy] == "compact,delete"
    assert altered(image, (policy, ConfigOperation.APPEND, "delete"))[policy] == "compact,delete"
    assert altered(image, (policy, ConfigOperation.SUBTRACT, "compact"))[policy] == "delete"


def test_the_first_append_begins_with_what_held_before(image: Image) -> None:
    altered(image, ("cleanup.policy", ConfigOperation.DELETE, None))
    changes = [ConfigChange("cleanup.policy", ConfigOperation.APPEND, "compact")]
    commit(image, alter_config(image, "orders", changes, {"cleanup.policy": "delete"}))
    assert image.topics["orders"].config["cleanup.policy"] == "delete,compact"


def test_a_topic_without_a_cleanup_policy_keeps_everything(image: Image) -> None:
    assert altered(image, ("cleanup.policy", ConfigOperation.SUBTRACT, "compact"))["cleanup.policy"] == ""
    settings = resolve({"cleanup.policy": "", "retention.ms": "1"}, {"cleanup.policy": "delete"})
    assert (settings.cleanup_delete, settings.cleanup_compact) == (False, False)


def test_a_change_that_changes_nothing_writes_nothing(image: Image) -> None:
    change = ConfigChange("retention.ms", ConfigOperation.SET, "5")
    assert alter_config(image, "orders", [change]) == ([], [])


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (("retention.ms", ConfigOperation.SET, None), InvalidConfig, "a value is missing"),
        (("retention.ms", ConfigOperation.APPEND, "5"), InvalidConfig, "is not a list"),
        (("retention.ms", 9, "5"), InvalidRequest, "no config operation 9"),
        (("retention.ms", ConfigOperation.SET, "x"), InvalidConfig, "a whole number"),
        (("unknown", ConfigOperation.DELETE, None), InvalidConfig, "no topic config 'unknown'"),
    ],
)
def test_a_wrong_change_is_refused(
    image: Image, change: tuple[str, int, str | None], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        altered(image, change)


def test_a_config_is_changed_once_in_a_request(image: Image) -> None:
    with pytest.raises(InvalidRequest, match="once in a request"):
        altered(image, ("retention.ms", 0, "5"), ("retention.ms", 0, "6"))


def test_replacing_forgets_what_is_not_named(image: Image) -> None:
    commit(image, replace_config(image, "orders", {"segment.ms": "9"}))
    assert image.topics["orders"].config == {"segment.ms": "9"}


def test_configs_of_a_missing_topic_cannot_be_changed(image: Image) -> None:
    with pytest.raises(UnknownTopicOrPartition):
        alter_config(image, "missing", [])
    with pytest.raises(UnknownTopicOrPartition):
        replace_config(image, "missing", {})


@pytest.mark.parametrize(
    ("explicit", "replicas", "effective"),
    [(None, 1, 1), (None, 2, 1), (None, 3, 2), (None, 5, 4), ("2", 1, 1), ("1", 3, 1), ("3", 2, 2)],
)
def test_what_must_be_in_sync_is_the_topics_own_business_and_at_most_all(
    explicit: str | None, replicas: int, effective: int
) -> None:
    overrides = {} if explicit is None else {"min.insync.replicas": explicit}
    assert min_insync_replicas(overrides, replicas) == effective


def test_acks_all_asks_for_what_was_set_and_a_replicated_topic_ignores_the_node() -> None:
    node = {"min.insync.replicas": "3"}
    assert resolve({}, node).min_insync_replicas == 3
    assert resolve({"min.insync.replicas": "2"}, {}).min_insync_replicas == 2
    assert resolve({}, node, replicas=3).min_insync_replicas == 2
    assert resolve({"min.insync.replicas": "1"}, node, replicas=3).min_insync_replicas == 1
