"""Requests that nobody should send: each gets a proper answer, and the gateway goes on."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.gateway.sqs.actions import ACTIONS
from tests.gateway.conftest import RunningGateway
from tests.gateway.sqs.conftest import connect, receive

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
MEMBERS = sorted(
    {field.encode_name for action in ACTIONS.values() for field in msgspec.structs.fields(action.request)}
    - {"WaitTimeSeconds"}
)


def post(
    url: str, target: str | None, body: bytes, path: str = "/", **more: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """`_` stands for a hyphen in the names of further headers."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    headers = {"Content-Type": "application/x-amz-json-1.0"}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    if target is not None:
        headers["X-Amz-Target"] = target
    try:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def refused(gateway: RunningGateway, target: str, body: bytes) -> str:
    status, headers, answer = post(gateway.url, target, body)
    read = json.loads(answer)
    assert 400 <= status < 500
    assert read["message"]
    assert headers["x-amzn-query-error"].endswith(";Sender")
    name: str = read["__type"]
    return name.removeprefix("com.amazonaws.sqs#")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"", "SerializationException"),
        (b"{", "SerializationException"),
        (b"null", "SerializationException"),
        (b"[]", "SerializationException"),
        (b"{}", "MissingRequiredParameterException"),
        (b'{"QueueUrl": null, "MessageBody": "x"}', "MissingRequiredParameterException"),
        (b'{"QueueUrl": "x"}', "MissingRequiredParameterException"),
        (b'{"QueueUrl": 1, "MessageBody": "x"}', "SerializationException"),
        (b'{"QueueUrl": "\xff", "MessageBody": "x"}', "SerializationException"),
        (b'{"QueueUrl": "\\ud800", "MessageBody": "x"}', "SerializationException"),
        (b'{"a":' * 100_000, "SerializationException"),
        (b'{"QueueUrl": "x", "MessageBody": "y", "z": ' + b"[" * 100_000, "SerializationException"),
        (b'{"QueueUrl": "", "MessageBody": "x"}', "InvalidAddress"),
        (b'{"QueueUrl": "http://h/0/", "MessageBody": "x"}', "InvalidAddress"),
        (b'{"QueueUrl": "nowhere", "MessageBody": "x", "DelaySeconds": 1e99}', "SerializationException"),
        (b'{"QueueUrl": "' + b"x" * 100_000 + b'", "MessageBody": "x"}', "InvalidAddress"),
        (b'{"QueueUrl": "nowhere/%00%ff", "MessageBody": "x"}', "QueueDoesNotExist"),
    ],
)
def test_a_wrong_body_is_refused(gateway: RunningGateway, body: bytes, name: str) -> None:
    assert refused(gateway, "AmazonSQS.SendMessage", body) == name


@pytest.mark.parametrize(
    "target", ["", "SendMessage", "AmazonSQS.Fly", "AmazonSNS.SendMessage", "AmazonSQS."]
)
def test_an_unknown_action_is_refused(gateway: RunningGateway, target: str) -> None:
    assert refused(gateway, target, b"{}") == "UnknownOperationException"


def test_a_body_beyond_the_limit_is_refused(gateway: RunningGateway) -> None:
    body = b'{"QueueUrl": "x", "MessageBody": "' + b"x" * (5 << 20) + b'"}'
    assert refused(gateway, "AmazonSQS.SendMessage", body) == "RequestEntityTooLarge"


@settings(max_examples=150)
@given(data=st.data())
def test_fuzzed_requests_get_proper_answers(gateway: RunningGateway, data: st.DataObject) -> None:
    action = data.draw(st.sampled_from(sorted(set(ACTIONS) - {"CreateQueue"})))
    members: Any = data.draw(st.dictionaries(st.sampled_from(MEMBERS), JSON, max_size=6))
    status, headers, answer = post(gateway.url, f"AmazonSQS.{action}", json.dumps(members).encode())
    assert status < 500, (action, members, answer)
    json.loads(answer)
    assert (status == 200) != ("x-amzn-query-error" in headers)


@settings(max_examples=150)
@given(
    fields=st.lists(
        st.tuples(
            st.lists(
                st.sampled_from([*MEMBERS, "Attribute", "Tag", "1", "2", "Name", "Value", ""]), max_size=4
            ),
            st.text(max_size=10),
        ),
        max_size=6,
    ),
    action=st.sampled_from(sorted(set(ACTIONS) - {"CreateQueue"})),
)
def test_fuzzed_forms_get_proper_answers(
    gateway: RunningGateway, fields: list[tuple[list[str], str]], action: str
) -> None:
    form = [("Action", action), *((".".join(path), value) for path, value in fields)]
    status, _, answer = post(gateway.url, None, urlencode(form, errors="replace").encode())
    assert status < 500, (form, answer)
    ElementTree.fromstring(answer)


@settings(max_examples=100)
@given(body=st.binary(max_size=200))
def test_bytes_that_are_no_request_get_proper_answers(gateway: RunningGateway, body: bytes) -> None:
    assert refused(gateway, "AmazonSQS.CreateQueue", body)
    status, _, _ = post(gateway.url, None, body)
    assert 400 <= status < 500


def test_a_request_may_be_posted_to_the_queues_own_url(
    gateway: RunningGateway, sqs: Any, queue: str, name: str
) -> None:
    body = json.dumps({"QueueUrl": queue, "MessageBody": "x"}).encode()
    status, headers, answer = post(gateway.url, "AmazonSQS.SendMessage", body, f"/000000000000/{name}")
    assert status == 200, answer
    assert headers["Content-Type"] == "application/x-amz-json-1.0"
    assert headers["x-amzn-RequestId"]
    assert receive(sqs, queue)


@pytest.mark.parametrize(
    "browser",
    [
        {"Origin": "https://evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Host": "evil.example:8080"},
    ],
    ids=["another origin", "another site", "another name of this machine"],
)
def test_pages_from_elsewhere_send_nothing(
    gateway: RunningGateway, queue: str, browser: dict[str, str]
) -> None:
    """A page may post any text anywhere: in the query protocol the body alone says what is asked for."""
    as_json = json.dumps({"QueueUrl": queue, "MessageBody": "x"}).encode()
    as_query = urlencode({"Action": "SendMessage", "QueueUrl": queue, "MessageBody": "x"}).encode()
    for target, body in (("AmazonSQS.SendMessage", as_json), (None, as_query)):
        status, _, answer = post(gateway.url, target, body, **browser)
        assert (status, b"AccessDenied" in answer) == (403, True)
        assert post(gateway.url, target, body)[0] == 200


@pytest.mark.parametrize("text", [b"%FF", b"\xff", b"%C3", b"\xc3(", b"%ED%A0%80"])
def test_form_that_is_no_utf8_is_refused(gateway: RunningGateway, queue: str, text: bytes) -> None:
    """Before, a message came with other characters than it was sent with."""
    form = urlencode({"Action": "SendMessage", "QueueUrl": queue}).encode() + b"&MessageBody=a" + text
    status, _, answer = post(gateway.url, None, form, Content_Type="application/x-www-form-urlencoded")
    assert (status, b"MalformedQueryString" in answer) == (400, True)
    sqs = connect(gateway.url)
    sqs.send_message(QueueUrl=queue, MessageBody="whole")
    assert [message["Body"] for message in receive(sqs, queue, 10)] == ["whole"]


BROWSERS: list[dict[str, str]] = [
    {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"},
    {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
    {"Sec-Fetch-Site": "same-origin"},
]


@pytest.mark.parametrize("headers", [{}, *BROWSERS], ids=["program", "agent", "address bar", "own page"])
def test_get_in_a_browser_changes_nothing(
    gateway: RunningGateway, name: str, headers: dict[str, str]
) -> None:
    """A link or an image on any page can make a browser send it."""

    def ask(action: str, **fields: str) -> int:
        query = urlencode({"Action": action, **fields})
        connection = http.client.HTTPConnection(urlsplit(gateway.url).netloc, timeout=60)
        try:
            connection.request("GET", f"/?{query}", headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()

    assert ask("CreateQueue", QueueName=name) == (403 if headers else 200)
    assert ask("GetQueueUrl", QueueName=name) == (400 if headers else 200)
    assert ask("ListQueues") == 200
