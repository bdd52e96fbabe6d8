"""Group configs: names, defaults and ranges, what is refused, and what is decided about them."""

from __future__ import annotations

import pytest

from postroad.cluster import config_changes
from postroad.cluster.config_definition import ConfigSource, ConfigType
from postroad.cluster.controller import (
    ConfigChange,
    ConfigOperation,
    Decision,
    add_partitions,
    alter_group_config,
    create_topic,
    delete_group_config,
    delete_topic,
    note_topic,
    replace_group_config,
)
from postroad.cluster.group_config import TABLE, GroupSettings, describe, settings_of, validate
from postroad.cluster.image import Image, Topic
from postroad.cluster.start_at import StartAt, StartKind
from postroad.cluster.store import Event
from postroad.errors import InvalidConfig, InvalidGroupId, InvalidRequest, PolicyViolation
from tests.cluster.applied import commit, topic_id

SET, DELETE, APPEND, SUBTRACT = ConfigOperation
LOCK = "share.record.lock.duration.ms"
# The gateway's to read: texts without a setting here.
GATEWAYS = {"postroad.redrives", "postroad.redrives.cancel", "postroad.sqs", "postroad.webhook"}


@pytest.mark.parametrize("name", TABLE.definitions)
def test_every_default_is_valid_and_every_config_explained(name: str) -> None:
    definition = TABLE.definitions[name]
    definition.parse(definition.default)
    assert definition.doc.endswith(".")


def test_a_group_without_overrides_has_the_defaults() -> None:
    assert settings_of({}) == GroupSettings(
        lock_ms=30_000,
        delivery_limit=5,
        partition_locks_max=100_000,
        member_locks_max=100_000,
        locks_max=1_000_000,
        order="none",
        fair_by="",
        backoff_initial_ms=0,
        backoff_factor=2.0,
        backoff_max_ms=600_000,
        backoff_jitter=0.0,
        start=StartAt(StartKind.LATEST),
        committed_only=False,
        heartbeat_ms=5000,
        session_ms=45_000,
        renew_enabled=True,
        dead_letters=True,
        dead_letter_topic="",
        topics=(),
        at_most_once=False,
        deduplicate_ms=0,
        bookkeeping=False,
    )


def test_every_config_has_its_own_setting() -> None:
    overrides = {
        LOCK: "1",
        "share.delivery.count.limit": "2",
        "share.partition.max.record.locks": "3",
        "postroad.member.max.record.locks": "4",
        "postroad.max.record.locks": "5",
        "postroad.order": "key",
        "postroad.fair.by": "tenant",
        "postroad.backoff.initial.ms": "6",
        "postroad.backoff.factor": "1.5",
        "postroad.backoff.max.ms": "7",
        "postroad.backoff.jitter": "0.5",
        "share.auto.offset.reset": "by_duration:PT1S",
        "share.isolation.level": "read_committed",
        "share.heartbeat.interval.ms": "101",
        "share.session.timeout.ms": "102",
        "share.renew.acknowledge.enable": "false",
        "postroad.dead.letters": "false",
        "errors.deadletterqueue.topic.name": "dead",
        "postroad.topics": "jobs, rushes",
        "postroad.delivery": "at-most-once",
        "postroad.deduplicate.ms": "8",
        "postroad.bookkeeping": "true",
    }
    assert overrides.keys() | GATEWAYS == TABLE.definitions.keys()
    assert validate(overrides) == overrides
    start = StartAt(StartKind.AGO, 1000)
    assert settings_of(overrides) == GroupSettings(
        *(1, 2, 3, 4, 5, "key", "tenant", 6, 1.5, 7, 0.5, start, True, 101, 102),
        *(False, False, "dead", ("jobs", "rushes"), True, 8, True),
    )


def test_an_override_of_a_later_postroad_is_passed_over() -> None:
    assert settings_of({"postroad.later": "1", LOCK: "7"}).lock_ms == 7


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (LOCK, ["0", "43200000"]),
        ("share.delivery.count.limit", ["0", "1000"]),
        ("share.partition.max.record.locks", ["1", "1000000"]),
        ("share.auto.offset.reset", ["latest", "earliest", "by_duration:P1DT2H", "at:0"]),
        ("postroad.backoff.factor", ["1", "1.0", "100"]),
        ("postroad.backoff.jitter", ["0", "1", "0.25"]),
        ("postroad.topics", ["", "a", "a.b,c_d, e-f", "__mine"]),
        ("errors.deadletterqueue.topic.name", ["", "dead", "_dead"]),
        ("postroad.fair.by", ["", "tenant", "x" * 249]),
        ("postroad.deduplicate.ms", ["0", "300000", "3600000"]),
        ("postroad.sqs", ["", '{"DelaySeconds": 5}']),
    ],
)
def test_what_is_right_is_accepted(name: str, values: list[str]) -> None:
    for value in values:
        validate({name: value})


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        (LOCK, "-1", "from 0 to 43200000"),
        (LOCK, "43200001", "from 0 to 43200000"),
        (LOCK, "30s", "a whole number"),
        ("share.delivery.count.limit", "1001", "from 0 to 1000"),
        ("share.partition.max.record.locks", "0", "from 1 to 1000000"),
        ("share.partition.max.record.locks", "1000001", "from 1 to 1000000"),
        ("share.isolation.level", "READ_COMMITTED", "one of read_uncommitted, read_committed"),
        ("share.renew.acknowledge.enable", "yes", "true or false"),
        ("share.auto.offset.reset", "yesterday", "latest, earliest, by_duration: .*P1DT2H"),
        ("share.auto.offset.reset", "by_duration:1d", "latest, earliest, by_duration: .*P1DT2H"),
        ("share.auto.offset.reset", "at:noon", "at: with milliseconds"),
        ("share.heartbeat.interval.ms", "99", "from 100 to 300000"),
        ("postroad.backoff.factor", "0.9", "from 1 to 100"),
        ("postroad.backoff.factor", "inf", "from 1 to 100"),
        ("postroad.backoff.jitter", "1.01", "from 0 to 1"),
        ("postroad.backoff.jitter", "-0.1", "from 0 to 1"),
        ("postroad.order", "fifo", "one of none, key, partition"),
        ("postroad.delivery", "exactly-once", "one of at-least-once, at-most-once"),
        ("postroad.dead.letters", "", "true or false"),
        ("postroad.fair.by", "x" * 250, "up to 249 characters"),
        ("postroad.deduplicate.ms", "3600001", "from 0 to 3600000"),
        ("postroad.topics", "a b", "topics with commas between"),
        ("postroad.topics", "a,,b", "topics with commas between"),
        ("postroad.topics", "a,a", "each once"),
        ("postroad.topics", "__consumer_offsets", "none of the nodes' own"),
        ("errors.deadletterqueue.topic.name", "a/b", "empty, or a topic name"),
        ("errors.deadletterqueue.topic.name", "__dead", "doesn't begin with '__'"),
    ],
)
def test_a_wrong_value_is_refused_with_what_would_be_right(name: str, value: str, right: str) -> None:
    with pytest.raises(InvalidConfig, match=f"{name}: .* it must be .*{right}"):
        validate({name: value})


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(InvalidConfig, match=f"no group config 'share.record.lock.ms'; did you mean '{LOCK}'"):
        validate({"share.record.lock.ms": "1"})


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            {"share.session.timeout.ms": "5000"},
            r"\(5000\) must be above share.heartbeat.interval.ms \(5000\)",
        ),
        ({"share.heartbeat.interval.ms": "45000"}, r"share.session.timeout.ms \(45000\) must be above"),
        ({"postroad.backoff.initial.ms": "600001"}, "must not be above postroad.backoff.max.ms"),
    ],
)
def test_values_that_contradict_each_other_are_refused(config: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidConfig, match=text):
        validate(config)


def test_describe_tells_overrides_before_defaults() -> None:
    (entry,) = describe({LOCK: "7"}, [LOCK, "unknown"])
    assert (entry.value, entry.source, entry.type) == ("7", ConfigSource.GROUP, ConfigType.INT)
    node_name = f"group.{LOCK}"  # as Kafka calls the default of all groups
    assert entry.synonyms == ((LOCK, "7", ConfigSource.GROUP), (node_name, "30000", ConfigSource.DEFAULT))
    assert [entry.name for entry in describe({})] == sorted(TABLE.definitions)
    assert {entry.source for entry in describe({})} == {ConfigSource.DEFAULT}


# --- decisions -----------------------------------------------------------------------------------


@pytest.fixture
def image() -> Image:
    return Image()


def alter(image: Image, *changes: tuple[str, int, str | None], group: str = "workers") -> Decision:
    return alter_group_config(image, group, [ConfigChange(*change) for change in changes])


def altered(image: Image, *changes: tuple[str, int, str | None]) -> dict[str, str] | None:
    commit(image, alter(image, *changes))
    return image.groups.get("workers")


def test_the_first_override_makes_the_group_and_the_last_one_takes_it_along(image: Image) -> None:
    assert altered(image, (LOCK, SET, "7")) == {LOCK: "7"}
    assert altered(image, ("postroad.order", SET, "key")) == {LOCK: "7", "postroad.order": "key"}
    assert altered(image, (LOCK, DELETE, None)) == {"postroad.order": "key"}
    assert altered(image, ("postroad.order", DELETE, None)) is None


def test_topics_may_be_appended_to_and_subtracted_from(image: Image) -> None:
    topics = "postroad.topics"
    assert altered(image, (topics, APPEND, "jobs")) == {topics: "jobs"}
    assert altered(image, (topics, APPEND, "rushes, jobs")) == {topics: "jobs,rushes"}
    assert altered(image, (topics, SUBTRACT, "jobs")) == {topics: "rushes"}
    assert altered(image, (topics, SUBTRACT, "rushes")) == {topics: ""}, "it was created, so it stays"


def test_each_change_is_told_once_and_with_the_id(image: Image) -> None:
    assert commit(image, alter(image, (LOCK, SET, "7"))).groups == ["workers"]
    assert commit(image, alter(image, (LOCK, SET, "8"))).groups == ["workers"]
    assert commit(image, delete_group_config(image, "workers")).groups == ["workers"]


def test_a_change_that_changes_nothing_writes_nothing(image: Image) -> None:
    assert alter(image, (LOCK, DELETE, None)) == ([], [])
    assert delete_group_config(image, "workers") == ([], [])
    altered(image, (LOCK, SET, "7"))
    assert alter(image, (LOCK, SET, "7")) == ([], [])
    assert replace_group_config(image, "workers", {LOCK: "7"}) == ([], [])


def test_replacing_forgets_what_is_not_named(image: Image) -> None:
    altered(image, (LOCK, SET, "7"))
    commit(image, replace_group_config(image, "workers", {"postroad.order": "key"}))
    assert image.groups == {"workers": {"postroad.order": "key"}}
    commit(image, replace_group_config(image, "workers", {}))
    assert image.groups == {}


def test_of_two_changes_decided_on_the_same_image_one_wins(image: Image) -> None:
    first, second = alter(image, (LOCK, SET, "7")), alter(image, ("postroad.order", SET, "key"))
    commit(image, first)
    [compare] = second.compares
    assert compare.revision != image.key_revision(compare.key)


@pytest.mark.parametrize("group", ["a/b", "ä ö", ".", "x" * 1024])
def test_a_group_may_be_called_almost_anything(image: Image, group: str) -> None:
    commit(image, alter(image, (LOCK, SET, "7"), group=group))
    assert image.groups == {group: {LOCK: "7"}}


@pytest.mark.parametrize(
    ("group", "error"), [("", InvalidRequest), ("x" * 1025, InvalidGroupId), ("a\0b", InvalidGroupId)]
)
def test_an_id_that_no_group_can_have_is_refused(image: Image, group: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        alter(image, (LOCK, SET, "7"), group=group)
    with pytest.raises(error):
        replace_group_config(image, group, {})
    with pytest.raises(error):
        delete_group_config(image, group)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ([(LOCK, SET, None)], InvalidConfig, "a value is missing"),
        ([(LOCK, APPEND, "5")], InvalidConfig, "is not a list"),
        ([(LOCK, 9, "5")], InvalidRequest, "no config operation 9"),
        ([("retention.ms", DELETE, None)], InvalidConfig, "no group config 'retention.ms'"),
        ([(LOCK, SET, "5"), (LOCK, DELETE, None)], InvalidRequest, "once in a request"),
    ],
)
def test_a_wrong_change_is_refused(
    image: Image, changes: list[tuple[str, int, str | None]], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        altered(image, *changes)


def test_configs_that_take_too_much_room_are_refused(image: Image) -> None:
    topics = ",".join(f"{number:0240d}" for number in range(280))
    with pytest.raises(PolicyViolation, match="The group's configs take"):
        altered(image, ("postroad.topics", SET, topics))


def test_groups_beyond_the_bound_are_refused_and_the_others_go_on(
    image: Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_changes, "CONFIGURED_GROUPS_MAX", 1)
    altered(image, (LOCK, SET, "7"))
    with pytest.raises(PolicyViolation, match="1 groups have configs"):
        alter(image, (LOCK, SET, "7"), group="others")
    assert altered(image, (LOCK, SET, "8")) == {LOCK: "8"}
    assert altered(image, (LOCK, DELETE, None)) is None


# --- which topics came later -----------------------------------------------------------------------


def make_topic(image: Image, number: int, partitions: int = 1) -> Topic:
    commit(image, create_topic(image, "jobs", topic_id(number), nodes=[1], partitions=partitions))
    return image.topics["jobs"]


def name_topics(image: Image, names: str) -> None:
    altered(image, ("postroad.topics", SET, names))


def test_topic_that_comes_after_it_was_named_came_later(image: Image) -> None:
    name_topics(image, "others, jobs")
    topic = make_topic(image, 1)
    assert image.came_later("workers", topic, 0)
    name_topics(image, "jobs")
    assert image.came_later("workers", topic, 0), "it is named all the time"


def test_partition_that_comes_after_its_topic_was_named_came_later(image: Image) -> None:
    make_topic(image, 1, partitions=2)
    name_topics(image, "jobs")
    commit(image, add_partitions(image, "jobs", 3, nodes=[1]))
    topic = image.topics["jobs"]
    assert [image.came_later("workers", topic, index) for index in range(3)] == [False, False, True]
    altered(image, (LOCK, SET, "7"))
    assert [image.came_later("workers", topic, index) for index in range(3)] == [False, False, True]


def test_topic_that_is_created_anew_came_later(image: Image) -> None:
    make_topic(image, 1)
    name_topics(image, "jobs")
    commit(image, delete_topic(image, "jobs"))
    assert image.came_later("workers", make_topic(image, 2), 0)


def test_topic_that_is_named_anew_existed_then(image: Image) -> None:
    name_topics(image, "jobs")
    topic = make_topic(image, 1)
    name_topics(image, "")
    name_topics(image, "jobs")
    assert not image.came_later("workers", topic, 0)


def test_topic_whose_state_is_forgotten_counts_as_one_that_existed(image: Image) -> None:
    assert note_topic(image, "workers", make_topic(image, 1)) == ([], []), "nobody names it"
    commit(image, delete_topic(image, "jobs"))
    name_topics(image, "jobs")
    topic = make_topic(image, 2)
    commit(image, note_topic(image, "workers", topic))
    assert not image.came_later("workers", topic, 0)
    assert note_topic(image, "workers", topic) == ([], [])
    assert image.groups["workers"] == {"postroad.topics": "jobs"}


def test_every_topic_came_later_than_a_group_of_an_older_postroad(image: Image) -> None:
    """Those that it held have a ledger; only for others is it asked."""
    topic = make_topic(image, 1)
    image.apply([Event("groups/workers", b'{"config": {"postroad.topics": "jobs"}}', 9)])
    assert image.came_later("workers", topic, 0)
