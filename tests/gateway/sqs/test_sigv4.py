"""Signatures: botocore signs, the gateway checks."""

from __future__ import annotations

import datetime
import http.client
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from postroad.client import topics
from postroad.errors import ConfigurationError
from postroad.gateway import sqs as dialect
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.sqs.conftest import connect, receive

KEYS = "AKUSER:user-secret, AK/ADMIN:admin-secret:admin"
BODY = b'{"QueueNamePrefix": "nothing"}'
ACTION = {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"}


@pytest.fixture(scope="module")
def guarded(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([dialect.routes], access_keys=KEYS)


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    code: str = error.value.response["Error"]["Code"]
    return code


def signed(url: str, change: Callable[[AWSRequest], None] = lambda _: None) -> AWSRequest:
    request = AWSRequest("POST", url + "/", dict(ACTION), BODY)
    SigV4Auth(Credentials("AKUSER", "user-secret"), "sqs", "eu-west-1").add_auth(request)
    change(request)
    return request


def send(request: AWSRequest) -> tuple[int, str]:
    parts = urlsplit(request.url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(request.method, target, request.data or None, dict(request.headers))
        response = connection.getresponse()
        return response.status, response.headers.get("x-amzn-query-error", response.read().decode())
    finally:
        connection.close()


def test_signed_requests_are_served(guarded: RunningGateway, name: str) -> None:
    sqs = connect(guarded.url, "AKUSER", "user-secret")
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody="grüße  mit   Lücken")
    assert receive(sqs, queue)[0]["Body"] == "grüße  mit   Lücken"


def test_deleting_and_purging_need_an_admins_key(guarded: RunningGateway, name: str) -> None:
    user = connect(guarded.url, "AKUSER", "user-secret")
    queue = user.create_queue(QueueName=name)["QueueUrl"]
    for refused in (user.delete_queue, user.purge_queue):
        with pytest.raises(ClientError) as error:
            refused(QueueUrl=queue)
        assert code_of(error) == "AccessDenied"
    admin = connect(guarded.url, "AK/ADMIN", "admin-secret")
    admin.purge_queue(QueueUrl=queue)
    admin.delete_queue(QueueUrl=queue)


def test_only_an_admin_shortens_how_long_messages_are_kept(guarded: RunningGateway, name: str) -> None:
    user = connect(guarded.url, "AKUSER", "user-secret")
    admin = connect(guarded.url, "AK/ADMIN", "admin-secret")
    queue = user.create_queue(QueueName=name, Attributes={"MessageRetentionPeriod": "86400"})["QueueUrl"]
    user.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "7"})
    user.set_queue_attributes(QueueUrl=queue, Attributes={"MessageRetentionPeriod": "100000"})
    shorter = {"MessageRetentionPeriod": "60"}
    with pytest.raises(ClientError) as error:
        user.set_queue_attributes(QueueUrl=queue, Attributes=shorter)
    assert code_of(error) == "AccessDenied"
    kept = user.get_queue_attributes(QueueUrl=queue, AttributeNames=["MessageRetentionPeriod"])
    assert kept["Attributes"] == {"MessageRetentionPeriod": "100000"}
    admin.set_queue_attributes(QueueUrl=queue, Attributes=shorter)


def test_queue_on_a_topic_that_exists_shortens_nothing_without_an_admins_key(
    guarded: RunningGateway, name: str
) -> None:
    guarded.run(topics.create(guarded.gateway.client, name, config={"retention.ms": "-1"}))
    shorter = {"MessageRetentionPeriod": "60"}
    with pytest.raises(ClientError) as error:
        connect(guarded.url, "AKUSER", "user-secret").create_queue(QueueName=name, Attributes=shorter)
    assert code_of(error) == "AccessDenied"
    connect(guarded.url, "AK/ADMIN", "admin-secret").create_queue(QueueName=name, Attributes=shorter)


@pytest.mark.parametrize(
    ("key", "secret", "code"),
    [
        ("AKUSER", "wrong", "SignatureDoesNotMatch"),
        ("AKUSER", "admin-secret", "SignatureDoesNotMatch"),
        ("NOBODY", "user-secret", "InvalidClientTokenId"),
    ],
)
def test_wrong_keys_are_refused(guarded: RunningGateway, key: str, secret: str, code: str) -> None:
    with pytest.raises(ClientError) as error:
        connect(guarded.url, key, secret).list_queues()
    assert code_of(error) == code


def test_a_request_by_botocore_is_right_and_every_change_makes_it_wrong(guarded: RunningGateway) -> None:
    assert send(signed(guarded.url))[0] == 200

    def replace(header: str, value: str) -> Callable[[AWSRequest], None]:
        def change(request: AWSRequest) -> None:
            del request.headers[header]
            if value:
                request.headers[header] = value

        return change

    def body(request: AWSRequest) -> None:
        request.data = b"{}"

    def query(request: AWSRequest) -> None:
        request.url += "?a=b"

    def authorization(old: str, new: str) -> Callable[[AWSRequest], None]:
        def change(request: AWSRequest) -> None:
            replace("Authorization", request.headers["Authorization"].replace(old, new))(request)

        return change

    for change, code in (
        (body, "SignatureDoesNotMatch"),
        (query, "SignatureDoesNotMatch"),
        (replace("X-Amz-Target", "AmazonSQS.DeleteQueue"), "SignatureDoesNotMatch"),
        (replace("Host", "elsewhere"), "SignatureDoesNotMatch"),
        (replace("X-Amz-Security-Token", "unsigned"), "IncompleteSignature"),
        (replace("X-Amz-Date", ""), "IncompleteSignature"),
        (replace("X-Amz-Date", "yesterday"), "IncompleteSignature"),
        (replace("Authorization", ""), "MissingAuthenticationToken"),
        (replace("Authorization", "Basic dXNlcjpwYXNz"), "IncompleteSignature"),
        (replace("Authorization", "AWS4-HMAC-SHA256"), "IncompleteSignature"),
        (authorization("/sqs/", "/sns/"), "IncompleteSignature"),
        (authorization("host;", ""), "IncompleteSignature"),
        (authorization(";x-amz-target", ""), "IncompleteSignature"),
        (authorization("eu-west-1", "eu-west-2"), "SignatureDoesNotMatch"),
        (authorization("Signature=", "Signature=0"), "SignatureDoesNotMatch"),
        (authorization("Signature=", "Signature=ü"), "SignatureDoesNotMatch"),
    ):
        status, error = send(signed(guarded.url, change))
        assert status in (400, 403)
        assert error == f"{code};Sender", change


def shifted(monkeypatch: pytest.MonkeyPatch, minutes: float) -> None:
    """botocore's clock, not ours."""
    import botocore.auth

    def now(*_: Any, **__: Any) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC).replace(tzinfo=None) + datetime.timedelta(minutes=minutes)

    monkeypatch.setattr(botocore.auth, "get_current_datetime", now)


@pytest.mark.parametrize(("minutes", "status"), [(-14, 200), (14, 200), (-16, 403), (16, 403)])
def test_a_request_is_good_for_fifteen_minutes(
    guarded: RunningGateway, monkeypatch: pytest.MonkeyPatch, minutes: int, status: int
) -> None:
    shifted(monkeypatch, minutes)
    assert send(signed(guarded.url))[0] == status


def presigned(url: str, expires_s: int, **form: str) -> AWSRequest:
    request = AWSRequest("GET", f"{url}/?{urlencode(form)}")
    SigV4QueryAuth(Credentials("AK/ADMIN", "admin-secret"), "sqs", "eu-west-1", expires_s).add_auth(request)
    return request


def test_a_presigned_url_works_until_it_expires(
    guarded: RunningGateway, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    form = {"Action": "ListQueues", "QueueNamePrefix": f"{name} ~*/ü"}
    assert send(presigned(guarded.url, 60, **form))[0] == 200
    bent = presigned(guarded.url, 60, **form)
    bent.url = bent.url.replace("ListQueues", "DeleteQueue")
    assert send(bent)[0] == 403
    shifted(monkeypatch, -30)
    assert send(presigned(guarded.url, 3600, **form))[0] == 200
    assert send(presigned(guarded.url, 60, **form))[0] == 403
    assert send(presigned(guarded.url, 700_000, **form))[0] == 400


def test_keys_that_can_not_be_read_stop_the_gateway(start_gateway: StartGateway) -> None:
    with pytest.raises(ConfigurationError):
        start_gateway([dialect.routes], access_keys="no colon")
