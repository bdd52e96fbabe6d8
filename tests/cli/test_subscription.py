"""`postroad subscription`: what it promises is set and shown, its messages are held, looked at, moved."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from postroad.testing import Node

from .conftest import PATIENCE_S, Command, consumed, read_json, read_lines


@pytest.fixture
def topic(run: Command, name: str) -> str:
    """Five messages."""
    run("publish", name, *"01234")
    return name


@pytest.fixture
def subscription(run: Command, topic: str) -> str:
    """On that topic and of the same name, from its beginning on."""
    run("subscription", "create", topic, "--topic", topic, "--start", "earliest")
    return topic


@pytest.fixture
def member(run: Command, subscription: str, postroad_session: Node) -> Iterator[None]:
    """A consumer that has taken all five messages, accepted them and waits for more."""
    command = [sys.executable, "-m", "postroad", "subscription", "consume", subscription, "--follow"]
    process = subprocess.Popen([*command, "-b", postroad_session.bootstrap], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert [process.stdout.readline() for _ in range(5)] == [b"%d\n" % n for n in range(5)]
        deadline = time.monotonic() + PATIENCE_S
        while described(run, subscription)["partitions"][0]["lag"]:
            assert time.monotonic() < deadline, "the messages are not accepted"
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        process.communicate()


def described(run: Command, name: str) -> Any:
    return read_json(run("subscription", "describe", name, "--json").stdout)


def assert_nothing_comes(run: Command, name: str) -> None:
    assert run("subscription", "consume", name, "--wait", "300ms").stdout == ""


def test_created_subscription_has_what_it_was_promised(run: Command, topic: str) -> None:
    run(
        "subscription", "create", topic, "-t", topic, "--start", "earliest", "--lock", "1m30s",
        "--attempts", "none", "--backoff", "500ms", "--backoff-factor", "3", "--backoff-max", "1h",
        "--backoff-jitter", "0.5", "--order", "key", "--fair-by", "tenant", "--delivery", "at-least-once",
        "--dead-letters", "lost", "--max-locks", "5000", "--partition-max-locks", "600",
        "--member-max-locks", "70", "--config", "share.heartbeat.interval.ms=200",
    )  # fmt: skip
    assert described(run, topic)["configs"] == {
        "postroad.topics": topic,
        "share.auto.offset.reset": "earliest",
        "share.record.lock.duration.ms": "90000",
        "share.delivery.count.limit": "0",
        "postroad.backoff.initial.ms": "500",
        "postroad.backoff.factor": "3.0",
        "postroad.backoff.max.ms": "3600000",
        "postroad.backoff.jitter": "0.5",
        "postroad.order": "key",
        "postroad.fair.by": "tenant",
        "postroad.delivery": "at-least-once",
        "postroad.dead.letters": "true",
        "errors.deadletterqueue.topic.name": "lost",
        "postroad.max.record.locks": "5000",
        "share.partition.max.record.locks": "600",
        "postroad.member.max.record.locks": "70",
        "share.heartbeat.interval.ms": "200",
    }


def test_start_may_be_a_time(run: Command, topic: str) -> None:
    run("subscription", "create", topic, "-t", topic, "--start", "2h", "--dead-letters", "none")
    configs = described(run, topic)["configs"]
    start = configs["share.auto.offset.reset"]
    assert start.startswith("at:")
    assert abs(int(start.removeprefix("at:")) - (time.time() - 7200) * 1000) < 60_000
    assert configs["postroad.dead.letters"] == "false"


def test_subscription_holds_messages_before_a_consumer_comes(run: Command, topic: str) -> None:
    run("subscription", "create", topic, "--topic", topic)
    run("publish", topic, "after")
    assert consumed(run, topic, 1) == "after\n"


def test_subscription_that_exists_is_not_created_again(run: Command, subscription: str) -> None:
    refused = run("subscription", "create", subscription, "-t", subscription, code=1)
    assert f"`postroad subscription alter {subscription}`" in refused.stderr


def test_consume_brings_the_messages_of_topics_that_exist(run: Command, topic: str) -> None:
    run("subscription", "create", topic, "-t", f"{topic}-missing", "-t", topic, "--start", "earliest")
    done = run("subscription", "consume", topic, "--max", "5", "--wait", f"{PATIENCE_S}s")
    assert done.stdout == "0\n1\n2\n3\n4\n"
    assert done.stderr == f"topic {topic}-missing does not exist yet; its messages come when it does\n"


def test_consume_of_topics_of_which_none_exists_fails(run: Command, name: str) -> None:
    run("subscription", "create", name, "-t", name)
    failed = run("subscription", "consume", name, code=1)
    assert failed.stderr == f"postroad: there is nothing to consume: topic {name} does not exist\n"


def test_consumer_group_is_no_subscription(run: Command, topic: str) -> None:
    run("consume", topic, "-g", topic)
    refused = run("subscription", "create", topic, "-t", topic, code=1)
    assert refused.stderr == f"postroad: {topic} is a consumer group: choose another name\n"


def test_topic_that_is_not_there_is_noted_and_held_once_it_is(run: Command, name: str) -> None:
    noted = run("subscription", "create", name, "-t", name)
    assert f"there is no topic {name}" in noted.stderr
    run("publish", name, "first")
    assert consumed(run, name, 1) == "first\n"


def test_wrong_value_is_refused_with_what_would_be_right(run: Command, topic: str) -> None:
    wrong = "share.record.lock.duration.ms=46800000"
    refused = run("subscription", "create", topic, "-t", topic, "--config", wrong, code=1)
    assert "share.record.lock.duration.ms" in refused.stderr
    assert run("subscription", "describe", topic, code=1).stderr.startswith(
        "postroad: there is no subscription"
    )


def test_subscription_is_listed_with_its_lag(run: Command, subscription: str) -> None:
    listed = read_json(run("subscription", "list", "--json").stdout)
    assert {
        "subscription": subscription,
        "state": "Empty",
        "members": 0,
        "topics": [subscription],
        "lag": 5,
    } in listed
    assert subscription in run("subscription", "list").stdout


def test_members_and_partitions_are_described(run: Command, subscription: str, member: None) -> None:
    found = described(run, subscription)
    assert found["state"] == "Stable"
    (consumer,) = found["members"]
    assert (consumer["client"], consumer["partitions"]) == ("postroad-cli", [[subscription, 0]])
    (partition,) = found["partitions"]
    assert (partition["start"], partition["end"], partition["lag"], partition["in_flight"]) == (5, 5, 0, 0)
    shown = run("subscription", "describe", subscription).stdout
    assert "IN FLIGHT" in shown
    assert f"{subscription}/0" in shown


def test_altered_subscription_promises_otherwise(run: Command, subscription: str) -> None:
    run("subscription", "alter", subscription, "--lock", "2s", "--attempts", "3")
    configs = described(run, subscription)["configs"]
    assert configs["share.record.lock.duration.ms"] == "2000"
    run("subscription", "alter", subscription, "--reset", "share.record.lock.duration.ms")
    assert "share.record.lock.duration.ms" not in described(run, subscription)["configs"]
    assert described(run, subscription)["configs"]["share.delivery.count.limit"] == "3"


def test_topics_come_and_go_and_what_goes_is_forgotten(run: Command, subscription: str) -> None:
    other = f"{subscription}-other"
    run("publish", other, "x")
    run("subscription", "alter", subscription, "--add-topic", other)
    assert {part["topic"] for part in described(run, subscription)["partitions"]} == {subscription, other}
    run("subscription", "alter", subscription, "--remove-topic", subscription)
    found = described(run, subscription)
    assert found["configs"]["postroad.topics"] == other
    assert [part["topic"] for part in found["partitions"]] == [other]
    left = run("subscription", "alter", subscription, "--remove-topic", other, code=1)
    assert "that leaves no topic" in left.stderr


def test_topic_that_members_read_is_not_removed(run: Command, subscription: str, member: None) -> None:
    other = f"{subscription}-other"
    run("topic", "create", other)
    run("subscription", "alter", subscription, "--add-topic", other)
    refused = run("subscription", "alter", subscription, "--remove-topic", subscription, code=1)
    assert "stop them first" in refused.stderr
    assert other in described(run, subscription)["configs"]["postroad.topics"]


def test_deleted_subscription_is_gone_with_its_promises(run: Command, subscription: str) -> None:
    run("subscription", "delete", "--yes", subscription)
    for command in (["describe"], ["delete", "--yes"], ["peek"]):
        refused = run("subscription", *command, subscription, code=1).stderr
        assert refused.startswith(f"postroad: there is no subscription {subscription}")
    run("subscription", "create", subscription, "-t", subscription)
    assert described(run, subscription)["configs"] == {"postroad.topics": subscription}


def test_subscription_with_members_is_not_deleted(run: Command, subscription: str, member: None) -> None:
    refused = run("subscription", "delete", "--yes", subscription, code=1).stderr
    assert refused == f"postroad: subscription {subscription} has members: stop them first\n"


def test_unknown_subscription_is_answered_with_one_that_may_be_meant(run: Command, subscription: str) -> None:
    refused = run("subscription", "describe", f"{subscription}x", code=1).stderr
    assert refused.endswith(f"did you mean {subscription}?\n")


def test_purged_messages_do_not_come(run: Command, subscription: str) -> None:
    run("subscription", "purge", subscription, code=2)  # nobody is there to be asked
    assert (
        run("subscription", "purge", subscription, "--yes").stdout == f"purged {subscription}: 5 messages\n"
    )
    run("publish", subscription, "new")
    assert consumed(run, subscription, 1) == "new\n"


def test_messages_come_again_from_where_it_is_sought_to(run: Command, subscription: str) -> None:
    assert consumed(run, subscription, 5) == "0\n1\n2\n3\n4\n"
    assert_nothing_comes(run, subscription)
    tried = run("subscription", "seek", subscription, "--to", "3", "--dry-run", "--json")
    assert read_json(tried.stdout) == [{"topic": subscription, "partition": 0, "before": 5, "after": 3}]
    run("subscription", "seek", subscription, "--to", "3", "--topic", f"{subscription}:0")
    assert consumed(run, subscription, 2) == "3\n4\n"
    run("subscription", "seek", subscription, "--to", "1h")
    assert consumed(run, subscription, 2) == "0\n1\n"
    run("subscription", "seek", subscription, "--to", "latest")
    assert_nothing_comes(run, subscription)


def test_only_topics_of_the_subscription_are_sought(run: Command, subscription: str) -> None:
    refused = run("subscription", "seek", subscription, "--to", "latest", "-t", "other", code=1).stderr
    assert refused == f"postroad: subscription {subscription} does not have other; it has: {subscription}\n"


def test_released_messages_come_again_and_rejected_ones_are_dead(run: Command, subscription: str) -> None:
    taken = consumed(run, subscription, 5, "--ack", "release", "--json")
    assert [(line["value"], line["deliveries"]) for line in read_lines(taken)] == [(v, 1) for v in "01234"]
    taken = consumed(run, subscription, 2, "--ack", "reject", "--json")
    assert [(line["value"], line["deliveries"]) for line in read_lines(taken)] == [("0", 2), ("1", 2)]
    assert consumed(run, subscription, 3) == "2\n3\n4\n"
    assert_nothing_comes(run, subscription)


def test_peek_shows_states_and_touches_nothing(run: Command, subscription: str, name: str) -> None:
    later = int((time.time() + 3600) * 1000)
    run("publish", subscription, "--header", f"postroad-deliver-at={later}", "--key", "k", "later")
    for _ in range(2):
        seen = read_json(run("subscription", "peek", subscription, "--json").stdout)
        assert [(m["offset"], m["state"], m["value"], m["deliveries"]) for m in seen] == [
            *((n, "available", str(n), 0) for n in range(5)),
            (5, "delayed", "later", 0),
        ]
        assert abs(seen[5]["available_at"] - later) < 1000
        assert (seen[5]["key"], seen[0]["available_at"]) == ("k", None)
    shown = run("subscription", "peek", subscription, "--from", "3", "--limit", "2").stdout.splitlines()
    assert [line.split()[2:4] for line in shown] == [
        ["OFFSET", "STATE"],
        ["3", "available"],
        ["4", "available"],
    ]
    assert "no partition 7" in run("subscription", "peek", subscription, "-p", "7", code=1).stderr


def test_peek_skips_what_is_done(run: Command, subscription: str) -> None:
    consumed(run, subscription, 3)
    seen = read_json(run("subscription", "peek", subscription, "--json", "--from", "1").stdout)
    assert [message["offset"] for message in seen] == [3, 4]
    consumed(run, subscription, 2)
    assert run("subscription", "peek", subscription).stderr == "no messages are left\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["create", "s"],
        ["create", "s", "-t", "t", "--lock", "soon"],
        ["create", "s", "-t", "t", "--start", "1200"],
        ["create", "s", "-t", "t", "--attempts", "many"],
        ["create", "s", "-t", "t", "--order", "random"],
        ["create", "s", "-t", "t", "--config", "no-equals-sign"],
        ["alter", "s"],
        ["alter", "s", "--topic", "t", "--add-topic", "u"],
        ["seek", "s"],
        ["consume", "s", "--ack", "perhaps"],
    ],
    ids=" ".join,
)
def test_wrong_calls_end_with_2(run: Command, arguments: list[str]) -> None:
    run("subscription", *arguments, code=2)


def test_lock_of_no_time_is_refused_with_the_reason(run: Command, topic: str) -> None:
    refused = run("subscription", "create", topic, "-t", topic, "--lock", "0s", code=2).stderr
    assert "0s is shorter than 1ms: the lock would end before the consumer has the message" in refused
    assert "13h is longer than 12h" in run("subscription", "alter", topic, "--lock", "13h", code=2).stderr


@pytest.mark.parametrize(
    ("start", "config"),
    [
        ("earliest", "earliest"),
        ("beginning", "earliest"),
        ("latest", "latest"),
        ("end", "latest"),
        ("2026-03-01T08:00+00:00", "at:1772352000000"),
        ("at:1772352000000", "at:1772352000000"),
        ("by_duration:P1DT2H", "by_duration:P1DT2H"),
    ],
)
def test_start_takes_the_words_of_the_documents(run: Command, topic: str, start: str, config: str) -> None:
    run("subscription", "create", f"{topic}-s", "-t", topic, "--start", start)
    assert described(run, f"{topic}-s")["configs"].get("share.auto.offset.reset", "latest") == config


def test_seek_beyond_the_end_says_where_it_went(run: Command, subscription: str) -> None:
    sought = run("subscription", "seek", subscription, "--to", "1200", "--json")
    assert read_json(sought.stdout)[0]["after"] == 5
    assert sought.stderr == f"{subscription}/0 ends at 5, before 1200: using the end instead\n"
    sought = run("subscription", "seek", subscription, "--to", "2999-01-01")
    assert sought.stderr == f"no message in {subscription}/0 is that recent: using the end instead\n"


def test_subscription_does_not_lose_a_topic_that_it_never_had(run: Command, subscription: str) -> None:
    refused = run("subscription", "alter", subscription, "--remove-topic", "other", code=1).stderr
    assert refused == (f"postroad: subscription {subscription} does not have other; it has: {subscription}\n")
