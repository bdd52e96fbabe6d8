"""Requests that are signed with users' access keys: botocore signs, the node tells a day's signing key."""

from __future__ import annotations

import json
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from postroad.gateway.security.credentials import Scope
from postroad.security.access_keys import secret_of
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from tests.clients.wait import until
from tests.gateway.security.asking import send, signed, sqs
from tests.gateway.security.conftest import ADMIN, STRANGER, WORKER, House
from tests.gateway.security.table import Place
from tests.gateway.sqs.conftest import connect, receive

LIST = {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"}
BODY = '{"QueueNamePrefix": "nothing"}'


@pytest.fixture
def place(house: House, name: str) -> Place:
    place = Place(house, name)
    place.make()
    return place


def status_and_code(house: House, headers: dict[str, str], body: str = BODY) -> tuple[int, str]:
    status, found, _ = send(house.url, "POST", "/", body, headers)
    return status, found.get("x-amzn-query-error", "").partition(";")[0]


def list_signed(house: House, key_id: str, secret: str, region: str = "us-east-1") -> tuple[int, str]:
    return status_and_code(house, signed(house.url, LIST, BODY, key_id, secret, region))


def test_boto3_works_with_a_users_key(place: Place) -> None:
    house = place.house
    rights = [place.right(right) for right in ((Op.READ, Type.GROUP, "n"), (Op.ALL, Type.TOPIC, "n"))]
    house.allow(WORKER, *rights)
    key_id = house.keys[WORKER]
    client = connect(house.url, key_id, house.secret(key_id))
    try:
        queue = client.get_queue_url(QueueName=place.name)["QueueUrl"]
        for number in range(20):  # also by the short way
            client.send_message(QueueUrl=queue, MessageBody=f"grüße {number}")
        message = receive(client, queue)[0]
        client.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        with pytest.raises(ClientError) as refused:
            client.delete_queue(QueueUrl=queue)
        assert refused.value.response["Error"]["Code"] == "AccessDenied"
        with pytest.raises(ClientError) as missing:
            client.get_queue_url(QueueName="of-somebody-else")
        assert missing.value.response["Error"]["Code"].endswith("NonExistentQueue")
    finally:
        house.disallow(WORKER, *rights)


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1", "my-own"])
def test_a_key_holds_in_any_region(house: House, region: str) -> None:
    key_id = house.keys[ADMIN]
    assert list_signed(house, key_id, house.secret(key_id), region) == (200, "")


def test_a_signature_that_is_not_the_keys_is_refused(house: House) -> None:
    key_id, other = house.keys[ADMIN], house.keys[STRANGER]
    assert list_signed(house, key_id, house.secret(other)) == (403, "SignatureDoesNotMatch")
    assert list_signed(house, key_id, "") == (403, "SignatureDoesNotMatch")
    headers = signed(house.url, LIST, BODY, key_id, house.secret(key_id))
    assert status_and_code(house, headers, '{"QueueNamePrefix": "other"}') == (403, "SignatureDoesNotMatch")


@pytest.mark.parametrize("key_id", ["PRAKAAAAAAAAAAAAAAAA", "x" * 5000, "postroad.node", "grün"])
def test_a_key_that_is_not_there_is_refused(house: House, key_id: str) -> None:
    headers = signed(house.url, LIST, BODY, "THE-ID", "secret")
    headers["Authorization"] = headers["Authorization"].replace("THE-ID", key_id).encode().decode("latin-1")
    assert status_and_code(house, headers) == (403, "InvalidClientTokenId")


def test_who_shows_nothing_is_refused(house: House) -> None:
    assert status_and_code(house, LIST) == (403, "MissingAuthenticationToken")


def test_a_region_without_end_is_no_question_for_a_node(house: House) -> None:
    key_id = house.keys[ADMIN]
    assert list_signed(house, key_id, house.secret(key_id), "x" * 100)[0] == 403


def test_a_key_that_is_disabled_signs_nothing_until_it_is_enabled(house: House) -> None:
    key_id = house.add_key(STRANGER)
    secret = house.secret(key_id)
    assert list_signed(house, key_id, secret)[0] == 200
    house.enable_key(key_id, enabled=False)
    assert list_signed(house, key_id, secret) == (403, "InvalidClientTokenId")
    house.enable_key(key_id, enabled=True)
    assert list_signed(house, key_id, secret)[0] == 200
    house.delete_key(key_id)
    assert list_signed(house, key_id, secret) == (403, "InvalidClientTokenId")


def test_keys_are_changed_without_a_gap(house: House) -> None:
    old, new = house.add_key(STRANGER), house.add_key(STRANGER)
    assert list_signed(house, old, house.secret(old))[0] == 200
    assert list_signed(house, new, house.secret(new))[0] == 200
    house.delete_key(old)
    assert list_signed(house, new, house.secret(new))[0] == 200
    assert list_signed(house, old, house.secret(old))[0] == 403


def test_a_users_keys_end_with_the_user(house: House) -> None:
    house.add_user("passing")
    key_id = house.keys["passing"]
    assert list_signed(house, key_id, house.secret(key_id))[0] == 200
    house.node.delete_user("passing")
    house.settle()
    assert list_signed(house, key_id, house.secret(key_id)) == (403, "InvalidClientTokenId")


def presigned(house: House, key_id: str, secret: str, expires_s: int = 60, **query: str) -> str:
    pairs = "&".join(f"{name}={value}" for name, value in query.items())
    request = AWSRequest("GET", f"{house.url}/?{pairs}")
    SigV4QueryAuth(Credentials(key_id, secret), "sqs", "us-east-1", expires=expires_s).add_auth(request)
    parts = urlsplit(request.url)
    return f"{parts.path}?{parts.query}"


def test_a_presigned_url_is_a_users_and_ends_with_its_key(place: Place) -> None:
    house = place.house
    key_id = house.add_key(WORKER)
    right = place.right((Op.WRITE, Type.TOPIC, "n"))
    where = presigned(
        house, key_id, house.secret(key_id), 3600, Action="SendMessage", QueueUrl=place.url, MessageBody="hi"
    )
    assert send(house.url, "GET", where, None, {})[0] == 403
    house.allow(WORKER, right)
    try:
        assert send(house.url, "GET", where, None, {})[0] == 200
        house.enable_key(key_id, enabled=False)
        assert send(house.url, "GET", where, None, {})[0] == 403
    finally:
        house.disallow(WORKER, right)


def test_a_large_body_is_read_once_its_key_is_known(house: House, place: Place) -> None:
    """On the short way bodies of strangers are not kept; here the key is looked up first."""
    big = "x" * 200_000
    key_id = house.add_key(ADMIN)
    headers = {"X-Amz-Target": "AmazonSQS.SendMessage", "Content-Type": "application/x-amz-json-1.0"}
    body = json.dumps({"QueueUrl": place.url, "MessageBody": big})
    assert status_and_code(house, signed(house.url, headers, body, key_id, house.secret(key_id)), body) == (
        200,
        "",
    )


def test_the_gateway_is_told_signing_keys_and_no_secrets(house: House) -> None:
    """What it remembers is good for one day and one region."""
    key_id = house.keys[ADMIN]
    assert list_signed(house, key_id, house.secret(key_id))[0] == 200
    identities = house.running.gateway.identities
    known: Any = identities._credentials
    remembered = known._signing_keys._known
    scopes = [scope for scope in remembered if scope.key_id == key_id]
    assert scopes
    assert house.secret(key_id).encode() not in repr(remembered).encode()
    assert all(isinstance(scope, Scope) and scope.day.isdigit() for scope in scopes)


@pytest.mark.parametrize("day", ["20010101", "21990101", "2026-1-1", "", "２０２６０１０１"])
def test_nodes_tell_no_keys_of_other_days(house: House, day: str) -> None:
    found = house.running.run(
        house.running.gateway.identities.signing_key(Scope(house.keys[ADMIN], day, "us-east-1"))
    )
    assert found is None


def test_another_master_key_makes_other_secrets(house: House) -> None:
    key_id = house.keys[ADMIN]
    assert list_signed(house, key_id, secret_of(bytes(32), key_id, 1)) == (403, "SignatureDoesNotMatch")


def test_the_rules_hold_within_a_moment_on_open_connections(place: Place) -> None:
    house = place.house
    right = place.right((Op.WRITE, Type.TOPIC, "n"))
    house.allow(WORKER, right)
    key_id = house.keys[WORKER]
    client = connect(house.url, key_id, house.secret(key_id))
    client.send_message(QueueUrl=place.url, MessageBody="one")
    house.node.disallow(WORKER, *right)

    def is_refused() -> bool:
        try:
            client.send_message(QueueUrl=place.url, MessageBody="two")
        except ClientError as error:
            return bool(error.response["Error"]["Code"] == "AccessDenied")
        return False

    until(is_refused, "the user may not write any more")


def test_a_caller_without_rights_waits_for_no_batch_of_others(place: Place) -> None:
    """Checked before: a receive that waits is not joined, and nothing is published."""
    house = place.house
    refused = sqs(house, STRANGER, "ReceiveMessage", QueueUrl=place.url, WaitTimeSeconds=20)
    assert refused.code == "AccessDenied"
    assert sqs(house, STRANGER, "SendMessage", QueueUrl=place.url, MessageBody="x").code == "AccessDenied"
    entries = [{"Id": "a", "MessageBody": "x"}]
    assert sqs(house, STRANGER, "SendMessageBatch", QueueUrl=place.url, Entries=entries).status == 403
    found = sqs(house, ADMIN, "GetQueueAttributes", QueueUrl=place.url, AttributeNames=["All"])
    assert found.content["Attributes"]["ApproximateNumberOfMessages"] == "0"


def test_a_receive_that_waits_when_its_right_ends_gets_nothing(place: Place) -> None:
    """What comes meanwhile was not delivered, and goes to others."""
    house = place.house
    rights = [place.right(right) for right in ((Op.READ, Type.GROUP, "n"), (Op.READ, Type.TOPIC, "n"))]
    house.allow(WORKER, *rights)
    outcomes: list[Any] = []
    waiting = threading.Thread(
        target=lambda: outcomes.append(
            sqs(house, WORKER, "ReceiveMessage", QueueUrl=place.url, WaitTimeSeconds=20)
        )
    )
    waiting.start()
    receivers = house.running.gateway._receivers
    until(lambda: place.name in receivers and bool(receivers[place.name]._requests), "it waits")
    house.disallow(WORKER, *rights)
    place.send("for others")
    waiting.join(60)
    assert [outcome.code for outcome in outcomes] == ["AccessDenied"]
    found = sqs(
        house, ADMIN, "ReceiveMessage", QueueUrl=place.url, WaitTimeSeconds=20, AttributeNames=["All"]
    )
    (message,) = found.content["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
