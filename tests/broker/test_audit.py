"""The audit log: who came in, who was refused what, who changed what; and that floods don't fill the disk."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postroad.broker.audit import LINES_A_SECOND, Audit
from postroad.broker.metrics.collect import collect
from postroad.errors import SaslAuthenticationFailed
from postroad.log_lines import FIELDS, JsonLines
from postroad.security.resources import Operation, ResourceType
from postroad.wire.messages import (
    alter_client_quotas,
    create_partitions,
    create_topics,
    delete_topics,
    fetch,
    incremental_alter_configs,
    metadata,
    produce,
)
from tests.broker.secured import Secured, log_in, scram_client, secured_node
from tests.clients.wait import until
from tests.faults.raw import batch_of, fetch_request, produce_request

NAME = "postroad.audit"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Secured]:
    with secured_node(tmp_path) as running:
        running.create("orders")
        running.add_user("shop")
        yield running


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """What was written so far, as JSON reads it."""
    caplog.set_level(logging.INFO, logger=NAME)

    def written(event: str = "") -> list[dict[str, Any]]:
        found = [json.loads(record.getMessage()) for record in caplog.records if record.name == NAME]
        return [line for line in found if event in ("", line["event"])]

    return written


def test_logins_and_failures_are_written(node: Secured, lines: Any) -> None:
    with node.connect() as connection:
        assert log_in(connection, scram_client("shop")) == 0
        (line,) = lines("login")
        assert line == {
            "event": "login",
            "peer": node.inside(connection).peer,
            "principal": "User:shop",
            "mechanism": "SCRAM-SHA-256",
        }
    with node.connect() as connection:
        assert log_in(connection, scram_client("shop", "wrong")) == SaslAuthenticationFailed.code
    with node.connect() as connection:
        assert log_in(connection, scram_client("my password", "oops")) == SaslAuthenticationFailed.code
    assert [line["user"] for line in lines("login failed")] == ["shop", "unknown"]
    page = node.run(collect(node.node))
    assert 'postroad_audit_events_total{node="1",event="login failed"} 2' in page
    assert "my password" not in json.dumps(lines())


def test_denials_are_written_once_while_the_rules_stand_still(node: Secured, lines: Any) -> None:
    with node.connect_as("shop") as connection:
        for _ in range(3):
            connection.call(produce, 9, produce_request("orders", batch_of(b"one")))
            connection.call(fetch, 12, fetch_request("orders", 0))
        write = {"operation": "write", "resource": "topic", "name": "orders", "principal": "User:shop"}
        found = [line for line in lines("denied") if write.items() <= line.items()]
        assert len(found) == 1
        assert len([line for line in lines("denied") if line["operation"] == "read"]) == 1
        node.allow("shop", Operation.READ, ResourceType.TOPIC, "orders")
        connection.call(produce, 9, produce_request("orders", batch_of(b"one")))
        assert len([line for line in lines("denied") if write.items() <= line.items()]) == 2


def test_what_is_left_out_of_a_list_is_no_denial(node: Secured, lines: Any) -> None:
    with node.connect_as("shop") as connection:
        connection.call(metadata, 12, metadata.MetadataRequest(topics=None))
    assert lines("denied") == []


def test_a_refused_request_about_the_cluster_is_written(node: Secured, lines: Any) -> None:
    with node.connect_as("shop") as connection:
        connection.call(alter_client_quotas, 1, alter_client_quotas.AlterClientQuotasRequest())
    (line,) = lines("denied")
    assert (line["operation"], line["resource"]) == ("alter_configs", "cluster")


def test_changes_are_written_with_who_made_them(node: Secured, lines: Any) -> None:
    node.call(
        create_partitions,
        3,
        create_partitions.CreatePartitionsRequest(
            [create_partitions.CreatePartitionsTopic("orders", 2)], timeout_ms=10_000
        ),
    )
    codec = incremental_alter_configs
    changed = codec.AlterableConfig("retention.ms", 0, "123456")
    resource = codec.AlterConfigsResource(2, "orders", [changed])
    node.call(codec, 1, codec.IncrementalAlterConfigsRequest([resource]))
    state = delete_topics.DeleteTopicState(name="orders")
    node.call(delete_topics, 6, delete_topics.DeleteTopicsRequest(topics=[state], timeout_ms=10_000))
    found = [(line["event"], line["principal"]) for line in lines() if line["event"] != "denied"]
    events = ["partitions added", "config altered", "topic deleted"]
    assert [event for event in found if event[0] in events] == [(event, "User:admin") for event in events]
    (line,) = lines("config altered")
    assert line["configs"] == ["retention.ms"]
    assert "123456" not in json.dumps(lines())


def test_what_is_only_validated_is_no_change(node: Secured, lines: Any) -> None:
    topic = create_topics.CreatableTopic(name="maybe", num_partitions=1, replication_factor=1)
    request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=True)
    assert node.call(create_topics, 7, request).topics[0].error_code == 0
    assert "maybe" not in json.dumps(lines())


class Loop:
    """Time that stands still until it is moved on."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Any]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, call: Any) -> Any:
        self.timers.append((at, call))
        return self

    def cancel(self) -> None:
        self.timers.clear()

    def pass_s(self, seconds: float) -> None:
        self.now += seconds
        for at, call in list(self.timers):
            if at <= self.now:
                call()


def test_a_flood_leaves_so_many_lines_a_second_and_how_many_more_there_were(lines: Any) -> None:
    loop = Loop()
    audit = Audit(loop)  # type: ignore[arg-type]
    for number in range(1000):
        audit.note("login failed", f"10.0.0.1:{number}", "User:ANONYMOUS")
    audit.note("login", "10.0.0.2:1", "User:shop")
    for number in range(100):
        audit.note("acls created", "10.0.0.3:1", "User:admin", number=number)
    assert len(lines("login failed")) == LINES_A_SECOND
    assert len(lines("login")) == 1
    assert len(lines("acls created")) == 100  # which is never left out
    loop.pass_s(1.0)
    assert lines("left out") == [{"event": "left out", "of": "login failed", "lines": 1000 - LINES_A_SECOND}]
    audit.note("login failed", "10.0.0.1:1", "User:ANONYMOUS")
    assert len(lines("login failed")) == LINES_A_SECOND + 1
    audit.close()


def test_lines_of_json_have_the_facts_as_fields() -> None:
    record = logging.LogRecord(NAME, logging.INFO, "", 0, "%s", ("{}",), None)
    setattr(record, FIELDS, {"event": "login", "principal": "User:shop\nroot"})
    line = json.loads(JsonLines().format(record))
    assert (line["logger"], line["event"], line["principal"]) == (NAME, "login", "User:shop\nroot")
    assert "\n" not in JsonLines().format(record)


def test_nothing_is_written_where_nobody_is_asked(tmp_path: Path, lines: Any) -> None:
    from tests.broker.harness import running_node

    with running_node(tmp_path) as node:
        node.create("orders")
        request = alter_client_quotas.AlterClientQuotasRequest(
            [
                alter_client_quotas.RequestEntryData(
                    [alter_client_quotas.RequestEntityData("user", "x")],
                    [alter_client_quotas.OpData("producer_byte_rate", 1e9)],
                )
            ]
        )
        node.call(alter_client_quotas, 1, request)
        until(lambda: node.node.image.quotas, "it holds")
    assert lines() == []
