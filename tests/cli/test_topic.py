"""`postroad topic`."""

from __future__ import annotations

from .conftest import Command, read_json


def test_topic_is_created_described_altered_and_deleted(run: Command, name: str) -> None:
    assert run("topic", "create", name, "-p", "2", "-c", "retention.ms=5000000").stdout == f"created {name}\n"
    assert [name, "2", "1"] in [line.split() for line in run("topic", "list").stdout.splitlines()]

    run("topic", "alter", name, "-p", "3", "-c", "max.message.bytes=5000", "--reset", "retention.ms")
    described = read_json(run("topic", "describe", name, "--json").stdout)
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2]
    assert described["configs"] == {"max.message.bytes": "5000"}
    assert described["messages"] == 0

    assert run("topic", "delete", name, "--yes").stdout == f"deleted {name}\n"
    assert name not in run("topic", "list").stdout


def test_description_for_people_shows_places_and_configs(run: Command, name: str) -> None:
    run("topic", "create", name, "-c", "cleanup.policy=compact")
    run("publish", name, "one", "-k", "k")
    shown = run("topic", "describe", name).stdout.splitlines()
    assert shown[0].startswith(f"{name}  id ")
    assert shown[0].endswith("1 messages")
    assert shown[1].split() == ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "IN_SYNC", "START", "END"]
    assert "cleanup.policy  compact" in shown
    assert "retention.ms" in run("topic", "describe", name, "--all-configs").stdout


def test_topic_that_exists_is_an_error_unless_told(run: Command, name: str) -> None:
    run("topic", "create", name)
    assert run("topic", "create", name, code=1).stderr == f"postroad: topic {name} exists already\n"
    assert run("topic", "create", name, "--if-not-exists").stdout == f"{name} exists\n"


def test_misspelt_topic_is_answered_with_the_one_that_was_meant(run: Command, name: str) -> None:
    run("topic", "create", f"{name}-orders")
    for command in ("describe", "alter"):
        options = ["-p", "5"] if command == "alter" else []
        result = run("topic", command, f"{name}-order", *options, code=1)
        assert result.stderr == f"postroad: there is no topic {name}-order; did you mean {name}-orders?\n"


def test_illegal_name_and_unknown_config_are_explained(run: Command, name: str) -> None:
    assert run("topic", "create", "a/b", code=1).stderr.startswith("postroad: ")
    assert "no.such.config" in run("topic", "create", name, "-c", "no.such.config=1", code=1).stderr


def test_deleting_asks_first(run: Command, name: str) -> None:
    run("topic", "create", name)
    run("topic", "delete", name, code=2)  # nobody is there to be asked
    assert name in run("topic", "list").stdout


def test_list_is_json_for_programs(run: Command, name: str) -> None:
    run("topic", "create", name, "-p", "4")
    listed = read_json(run("topic", "list", "--json").stdout)
    assert {"topic": name, "partitions": 4, "replicas": 1} in listed


def test_internal_topics_are_shown_only_when_asked_for(run: Command, name: str) -> None:
    run("publish", name, "x")
    run("consume", name, "--group", name)
    assert "__consumer_offsets" not in run("topic", "list").stdout
    assert "__consumer_offsets" in run("topic", "list", "--internal").stdout
