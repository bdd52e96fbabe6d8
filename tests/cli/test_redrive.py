"""`postroad redrive`: dead letters go back, once, to where they came from."""

from __future__ import annotations

import time

import pytest

from .conftest import PATIENCE_S, Command, consumed, read_json, read_lines


@pytest.fixture
def dead(run: Command, name: str) -> str:
    """A subscription that has rejected three of five messages; tenants take turns."""
    for n in range(5):
        run("publish", name, "-k", f"k{n}", "-H", f"tenant={'ab'[n % 2]}", str(n))
    run("subscription", "create", name, "--topic", name, "--start", "earliest")
    consumed(run, name, 3, "--ack", "reject")
    consumed(run, name, 2)
    deadline = time.monotonic() + PATIENCE_S
    while lag(run, name):
        assert time.monotonic() < deadline, "the letters are not copied"
    return name


def lag(run: Command, name: str) -> int:
    described = read_json(run("subscription", "describe", name, "--json").stdout)
    return sum(partition["lag"] for partition in described["partitions"])


def letters(run: Command, topic: str) -> list[str]:
    return [line["value"] for line in read_lines(run("consume", topic, "--json").stdout)]


def test_letters_go_back_to_their_topic_as_new_messages(run: Command, dead: str) -> None:
    assert sorted(letters(run, f"{dead}.dead")) == ["0", "1", "2"]
    assert run("redrive", dead).stdout == "sent 3 of 3 dead letters back; 0 don't match\n"
    again = read_lines(consumed(run, dead, 3, "--json"))
    assert sorted((m["key"], m["value"], m["deliveries"]) for m in again) == [
        ("k0", "0", 1),
        ("k1", "1", 1),
        ("k2", "2", 1),
    ]
    assert all(
        [header for header, _ in message["headers"]] == ["tenant", "postroad-for"] for message in again
    )


def test_letters_go_back_to_the_subscription_in_which_they_died(run: Command, dead: str) -> None:
    other = f"{dead}-other"
    run("subscription", "create", other, "--topic", dead, "--start", "earliest")
    consumed(run, other, 5)
    run("redrive", dead)
    assert letters(run, dead) == ["0", "1", "2", "3", "4", "0", "1", "2"]
    run("publish", dead, "new")
    assert consumed(run, other, 1) == "new\n"
    assert lag(run, other) == 0
    assert sorted(consumed(run, dead, 4).split()) == ["0", "1", "2", "new"]


def test_letters_go_to_all_subscriptions_on_demand(run: Command, dead: str) -> None:
    other = f"{dead}-other"
    run("subscription", "create", other, "--topic", dead, "--start", "earliest")
    consumed(run, other, 5)
    run("redrive", dead, "--to-all")
    assert sorted(consumed(run, other, 3).split()) == ["0", "1", "2"]
    assert sorted(consumed(run, dead, 3).split()) == ["0", "1", "2"]


def test_letters_that_die_again_can_be_redriven_again(run: Command, dead: str) -> None:
    run("redrive", dead)
    consumed(run, dead, 3, "--ack", "reject")
    deadline = time.monotonic() + PATIENCE_S
    while lag(run, dead):
        assert time.monotonic() < deadline, "the letters are not copied"
    assert read_json(run("redrive", dead, "--json").stdout)["sent"] == 3
    assert sorted(consumed(run, dead, 3).split()) == ["0", "1", "2"]


def test_letters_of_a_subscription_that_is_gone_stay_until_they_are_for_all(run: Command, dead: str) -> None:
    run("subscription", "delete", dead, "--yes")
    told = run("redrive", f"{dead}.dead", code=1).stderr
    assert f"3 × no subscription {dead} holds {dead} any more: --to-all sends it to all that do" in told
    assert read_json(run("redrive", f"{dead}.dead", "--to-all", "--json").stdout)["sent"] == 3


@pytest.mark.parametrize("options", [["--dry-run"], ["--reason", "expired"], []])
def test_redrive_leaves_no_subscription_in_lists(run: Command, dead: str, options: list[str]) -> None:
    run("redrive", dead, *options)
    for command in ("subscription", "group"):
        listed = run(command, "list").stdout
        assert f"{dead}.dead.redrive" not in listed


def test_letter_tells_the_reason_and_what_is_sent_back_does_not(run: Command, name: str) -> None:
    run("publish", name, "x")
    run("subscription", "create", name, "--topic", name, "--start", "earliest")
    consumed(run, name, 1, "--ack", "reject", "--reason", "no such customer")
    deadline = time.monotonic() + PATIENCE_S
    while lag(run, name):
        assert time.monotonic() < deadline, "the letter is not copied"
    (letter,) = read_lines(run("consume", f"{name}.dead", "--json").stdout)
    assert ["postroad-reason", "no such customer"] in letter["headers"]
    run("redrive", name)
    (message,) = read_lines(consumed(run, name, 1, "--json"))
    assert message["headers"] == [["postroad-for", name]]
    run("subscription", "consume", name, "--reason", "x", code=2)


def test_what_was_sent_back_is_not_sent_again(run: Command, dead: str) -> None:
    run("redrive", dead, "--limit", "2")
    assert read_json(run("redrive", dead, "--json").stdout) == {
        "dry_run": False,
        "seen": 1,
        "sent": 1,
        "kept": 0,
        "failed": {},
    }
    assert run("redrive", f"{dead}.dead").stdout == "sent 0 of 0 dead letters back; 0 don't match\n"


def test_dry_run_only_counts(run: Command, dead: str) -> None:
    for _ in range(2):
        assert run("redrive", dead, "--dry-run").stdout == (
            "would send 3 of 3 dead letters back; 0 don't match\n"
        )
    assert letters(run, dead) == ["0", "1", "2", "3", "4"]


def test_only_letters_that_match_go_back(run: Command, dead: str) -> None:
    assert read_json(run("redrive", dead, "--reason", "attempts", "--json").stdout)["kept"] == 3
    assert read_json(run("redrive", dead, "--filter", "tenant=b", "--json").stdout)["sent"] == 1
    assert read_json(run("redrive", dead, "--key-matches", "k[2-9]", "--json").stdout)["sent"] == 1
    assert (
        read_json(run("redrive", dead, "--since", "1h", "--reason", "rejected", "--json").stdout)["sent"] == 1
    )
    assert letters(run, dead) == ["0", "1", "2", "3", "4", "1", "2", "0"]


def test_expired_letters_go_back_and_live_on(run: Command, name: str) -> None:
    run("topic", "create", name)
    run("subscription", "create", name, "--topic", name)
    run("publish", name, "-H", "postroad-expires-at=1700000000000", "-H", "postroad-delay-ms=1", "old")
    deadline = time.monotonic() + PATIENCE_S
    assert run("subscription", "consume", name, "--wait", "200ms").stdout == ""
    while lag(run, name):
        assert time.monotonic() < deadline, "the letter is not copied"
        assert run("subscription", "consume", name, "--wait", "200ms").stdout == ""
    result = read_json(run("redrive", name, "--reason", "expired", "--json").stdout)
    assert (result["seen"], result["sent"]) == (1, 1)
    (message,) = read_lines(consumed(run, name, 1, "--json"))
    assert (message["value"], message["headers"]) == ("old", [["postroad-for", name]])


def test_letters_may_go_to_another_topic(run: Command, dead: str) -> None:
    missing = run("redrive", dead, "--to", f"{dead}-other", code=1).stderr
    assert missing == (
        f"postroad: some could not be sent back and stay: 3 × there is no topic {dead}-other\n"
    )
    run("topic", "create", f"{dead}-other")
    run("redrive", dead, "--to", f"{dead}-other", "--rate", "1000/s")
    assert sorted(letters(run, f"{dead}-other")) == ["0", "1", "2"]


def test_subscription_without_dead_letters_has_nothing_to_send_back(run: Command, name: str) -> None:
    run("publish", name, "x")
    run("subscription", "create", name, "--topic", name)
    assert run("redrive", name).stdout == "sent 0 of 0 dead letters back; 0 don't match\n"
    assert read_json(run("redrive", name, "--dry-run", "--json").stdout)["seen"] == 0
    assert "no subscription and no topic nothing" in run("redrive", "nothing", code=1).stderr


@pytest.mark.parametrize(
    "wrong", [["--rate", "fast"], ["--since", "5"], ["--filter", "x"], ["--reason", "age"]]
)
def test_wrong_calls_end_with_2(run: Command, wrong: list[str]) -> None:
    run("redrive", "s", *wrong, code=2)
