"""`postroad transaction`: what is open, for how long and where, and giving it up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer

from postroad.testing import Node, node

from .conftest import PATIENCE_S, Command, read_json


@pytest.fixture(scope="module")
def postroad_session() -> Iterator[Node]:
    with node() as running:
        yield running


@pytest.fixture
def producer(name: str, run: Command, postroad_session: Node) -> Iterator[Producer]:
    """A transactional producer that has written one message to a topic of its id's name, and not ended."""
    run("topic", "create", name)
    made = Producer({"bootstrap.servers": postroad_session.bootstrap, "transactional.id": name})
    made.init_transactions(PATIENCE_S)
    made.begin_transaction()
    made.produce(name, b"undecided")
    made.flush(PATIENCE_S)
    yield made
    made.purge()


def test_an_open_transaction_is_listed_and_described(run: Command, producer: Producer, name: str) -> None:
    for options in ([], ["--open"], ["--older-than", "0"]):
        rows = read_json(run("transaction", "list", "--json", *options).stdout)
        [row] = [row for row in rows if row["transactional_id"] == name]
        assert row["state"] == "Ongoing"
        assert 0 <= row["open_seconds"] < PATIENCE_S
    rows = read_json(run("transaction", "list", "--json", "--older-than", "1h").stdout)
    assert name not in [row["transactional_id"] for row in rows]
    described = read_json(run("transaction", "describe", name, "--json").stdout)
    assert (described["state"], described["epoch"], described["timeout_seconds"]) == ("Ongoing", 0, 60.0)
    assert described["partitions"] == [{"topic": name, "partition": 0, "first_offset": 0}]
    shown = run("transaction", "describe", name).stdout
    assert f"{name}  Ongoing for " in shown
    assert "FIRST OFFSET" in shown


def test_an_aborted_transaction_is_never_read_and_its_producer_is_fenced(
    run: Command, producer: Producer, name: str
) -> None:
    assert run("transaction", "abort", name, "--yes").stdout == f"aborted the transaction of {name}\n"
    assert run("consume", name, "--committed").stdout == ""
    described = read_json(run("transaction", "describe", name, "--json").stdout)
    assert (described["state"], described["open_seconds"], described["partitions"]) == ("Empty", None, [])
    with pytest.raises(KafkaException, match=r"_FENCED|PRODUCER_FENCED"):
        producer.commit_transaction(PATIENCE_S)
    refused = run("transaction", "abort", name, "--yes", code=1)
    assert refused.stderr == f"postroad: {name} has no open transaction\n"


def test_messages_are_consumed_as_committed_once_their_transaction_is(
    run: Command, producer: Producer, name: str
) -> None:
    assert run("consume", name).stdout == "undecided\n"
    assert run("consume", name, "--committed").stdout == ""
    producer.commit_transaction(PATIENCE_S)
    assert run("consume", name, "--committed", "--follow", "-n", "1").stdout == "undecided\n"


def test_an_unknown_transactional_id_is_named_in_the_error(run: Command, name: str) -> None:
    for arguments in (["describe", name], ["abort", name, "--yes"]):
        refused = run("transaction", *arguments, code=1)
        assert refused.stderr == f"postroad: there is no transactional id {name}\n"


def test_an_abort_asks_first(run: Command, producer: Producer, name: str) -> None:
    assert "--yes" in run("transaction", "abort", name, code=2).stderr
    assert read_json(run("transaction", "describe", name, "--json").stdout)["state"] == "Ongoing"
