"""HTTP over TLS: boto3, websockets and plain HTTP clients; and a gateway that reaches its node by TLS."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path

import boto3
import pytest
import websockets.sync.client

from postroad.testing import Node, node
from tests.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("https"))


@pytest.fixture(scope="module")
def secured(authority: Authority) -> Iterator[Node]:
    """Both ports speak TLS, and the node asks the gateway for a certificate."""
    pair = authority.issue("node")
    with node(
        {
            "kafka.tls": True,
            "kafka.authentication": "certificate",
            "http.enabled": True,
            "http.tls": True,
            "tls.certificate": str(pair.certificate),
            "tls.key": str(pair.key),
            "tls.ca": str(authority.ca),
        }
    ) as running:
        yield running


def sqs(url: str, ca: Path | bool):  # type: ignore[no-untyped-def]
    return boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        verify=str(ca),
    )


def test_boto3_over_tls(secured: Node, authority: Authority) -> None:
    client = sqs(secured.http, authority.ca)
    queue = client.create_queue(QueueName="parcels")["QueueUrl"]
    assert queue.startswith("https://")
    client.send_message(QueueUrl=queue, MessageBody="a book")
    message = client.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"][0]
    assert message["Body"] == "a book"
    client.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    assert client.get_queue_url(QueueName="parcels")["QueueUrl"] == queue


def test_a_client_that_does_not_know_the_ca_refuses(secured: Node, tmp_path: Path) -> None:
    elsewhere = Authority(tmp_path / "elsewhere", "Another CA")
    with pytest.raises(Exception, match="CERTIFICATE_VERIFY_FAILED"):
        sqs(secured.http, elsewhere.ca).list_queues()


def test_a_web_socket_over_tls(secured: Node, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=str(authority.ca))
    sqs(secured.http, authority.ca).create_queue(QueueName="pushed")
    sqs(secured.http, authority.ca).send_message(QueueUrl=f"{secured.http}/0/pushed", MessageBody="hello")
    url = secured.http.replace("https://", "wss://") + "/v1/subscriptions/pushed/stream?credit=10"
    with websockets.sync.client.connect(url, ssl=context) as socket:
        frame = json.loads(socket.recv(timeout=10))
    assert "hello" in json.dumps(frame)


def test_old_versions_are_refused(secured: Node, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=str(authority.ca))
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError):
        HTTPSConnection(secured.http.removeprefix("https://"), context=context, timeout=5).connect()


def test_plain_http_gets_no_answer(secured: Node) -> None:
    with pytest.raises((urllib.error.URLError, OSError)):
        urllib.request.urlopen(secured.http.replace("https://", "http://") + "/healthz", timeout=5)


def test_pages_of_the_gateway_itself_may_use_it(secured: Node, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=str(authority.ca))
    request = urllib.request.Request(secured.http + "/v1/topics", headers={"Origin": secured.http})
    assert urllib.request.urlopen(request, context=context, timeout=5).status == 200
    request = urllib.request.Request(secured.http + "/v1/topics", headers={"Origin": "https://evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, context=context, timeout=5)
