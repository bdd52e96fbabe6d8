"""What a gateway may not do by itself is done in the caller's name, by the caller's password."""

from __future__ import annotations

import logging
from typing import Any

import boto3
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tests.broker.secured import PASSWORD
from tests.clients.wait import until
from tests.gateway.security.asking import Outcome, basic, rest, send
from tests.gateway.security.conftest import ADMIN, STRANGER, WORKER, House


def change(house: House, method: str, path: str, body: Any = None, user: str = ADMIN) -> Outcome:
    done = rest(house, user, method, path, body)
    assert done.status < 300, done
    return done


def logs_in(house: House, user: str, password: str) -> bool:
    """By librdkafka, at the node itself."""
    refusals: list[KafkaError] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": house.node.bootstrap, "security.protocol": "SASL_PLAINTEXT", "log_level": 0,
        "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": user, "sasl.password": password,
        "error_cb": refusals.append,
    }  # fmt: skip
    admin = AdminClient(settings)
    for _ in range(100):
        try:
            admin.list_topics(timeout=0.3)
        except KafkaException:
            admin.poll(0)
            if any(each.code() == KafkaError._AUTHENTICATION for each in refusals):
                return False
        else:
            return True
    raise AssertionError(f"neither let in nor refused: {refusals}")


def test_a_user_that_was_made_comes_in_by_password_and_by_key(house: House, name: str) -> None:
    made = change(house, "POST", "/v1/users", {"name": name}).content
    assert logs_in(house, name, made["password"])
    rule = {"permission": "allow", "principal": f"User:{name}", "operation": "all", "name": name}
    change(house, "POST", "/v1/acls", {"acls": [{**rule, "type": type_} for type_ in ("topic", "group")]})
    sqs = boto3.client(
        "sqs", endpoint_url=house.url, region_name="us-east-1", aws_access_key_id=made["access_key_id"],
        aws_secret_access_key=made["secret_access_key"],
    )  # fmt: skip
    assert sqs.create_queue(QueueName=name)["QueueUrl"].endswith(name)
    change(house, "POST", f"/v1/access-keys/{made['access_key_id']}/disable")
    until(lambda: _is_refused(sqs), "the key is disabled")
    another = change(house, "POST", f"/v1/users/{name}/password", {}).content["password"]
    assert not logs_in(house, name, made["password"])
    assert logs_in(house, name, another)
    change(house, "DELETE", f"/v1/users/{name}")
    assert not logs_in(house, name, another)


def _is_refused(sqs: Any) -> bool:
    try:
        sqs.list_queues()
    except sqs.exceptions.ClientError:
        return True
    return False


def test_nodes_write_down_who_asked_and_the_gateway_from_where(
    house: House, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "postroad.audit"):
        made = change(
            house, "POST", "/v1/users", {"name": name, "password": "well-known", "access_key": True}
        )
    lines = [each.getMessage() for each in caplog.records if "altered" in each.getMessage()]
    assert len(lines) == 2, lines  # a node's, and the gateway's
    assert all(f"User:{ADMIN}" in line and name in line for line in lines), lines
    assert made.content["password"] is None, "it is known to who gave it"
    said = caplog.text
    assert not [
        secret for secret in ("well-known", PASSWORD, made.content["secret_access_key"]) if secret in said
    ]


def test_answers_with_secrets_are_not_stored(house: House, name: str) -> None:
    headers = {**basic(ADMIN), "Content-Type": "application/json"}
    for path, body in (
        ("/v1/users", f'{{"name": "{name}"}}'),
        (f"/v1/users/{name}/password", "{}"),
        (f"/v1/users/{name}/keys", None),
    ):
        status, found, _ = send(house.url, "POST", path, body, headers)
        assert (status < 300, found["cache-control"]) == (True, "no-store"), path


def test_who_has_shown_no_password_is_told_to(house: House, name: str) -> None:
    """An admin's key of the settings may do whatever the gateway may; that is not among it."""
    running = house.running.gateway.identities
    keys, running.keys = running.keys, type(running.keys).parse("id:secret:admin")
    try:
        headers = {"Authorization": "Bearer id:secret", "Content-Type": "application/json"}
        status, _, text = send(house.url, "POST", "/v1/users", f'{{"name": "{name}"}}', headers)
    finally:
        running.keys = keys
    assert status == 403
    assert "your password is needed" in text


def test_the_users_own_rights_decide_and_not_the_gateways(house: House, name: str) -> None:
    for method, path, body in (
        ("POST", "/v1/users", {"name": name}),
        ("POST", f"/v1/users/{ADMIN}/password", {"password": "mine-now"}),
        ("POST", f"/v1/users/{STRANGER}/password", {"password": "even my own"}),
        ("POST", "/v1/acls", {"acls": [{"permission": "allow", "principal": f"User:{STRANGER}",
                                        "operation": "all", "type": "cluster", "name": "kafka-cluster"}]}),
    ):  # fmt: skip
        assert rest(house, STRANGER, method, path, body).code == "forbidden", path
    assert logs_in(house, ADMIN, PASSWORD)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"name": "postroad.gateway"}, "reserved"),
        ({"name": "*"}, "reserved"),
        ({"name": "a\nb"}, "visible characters"),
        ({"name": WORKER}, "There is a user"),
        ({"name": ""}, "body"),
        ({"name": "x" * 257}, "body"),
        ({"name": "y", "password": ""}, "body"),
    ],
)
def test_a_user_who_can_not_be_is_refused(house: House, body: Any, text: str) -> None:
    refused = rest(house, ADMIN, "POST", "/v1/users", body)
    assert refused.status in (400, 409, 422), refused
    assert text in refused.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"principal": "shop"},
        {"operation": "cluster-action"},  # nothing that is done with a topic
        {"type": "cluster", "name": "another"},
        {"name": "a\0b"},
        {"more": 1},
    ],
)
def test_a_rule_that_would_never_hold_is_refused(house: House, wrong: Any) -> None:
    rule = {
        "permission": "allow",
        "principal": "User:shop",
        "operation": "read",
        "type": "topic",
        "name": "a",
    }
    refused = rest(house, ADMIN, "POST", "/v1/acls", {"acls": [rule | wrong]})
    assert refused.status in (400, 422), refused


def test_a_rule_that_is_not_there_can_not_be_taken_back(house: House) -> None:
    path = "/v1/acls?permission=deny&principal=User%3Anobody&operation=read&type=topic&name=none"
    assert rest(house, ADMIN, "DELETE", path).code == "not-found"
