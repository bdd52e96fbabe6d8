"""Requests as users send them, and what became of them in two words: a status and a code."""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.broker.secured import PASSWORD
from tests.gateway.security.conftest import House

TIMEOUT_S = 60


class Outcome(NamedTuple):
    status: int
    code: str  # of SQS, or a problem's type
    text: str

    @property
    def content(self) -> Any:
        return json.loads(self.text)


def basic(user: str, password: str = PASSWORD) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def rest(
    house: House,
    user: str | None,
    method: str,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> Outcome:
    given = {} if user is None else basic(user)
    given |= headers or {}
    data = None if body is None else json.dumps(body)
    if data is not None:
        given["Content-Type"] = "application/json"
    status, _, text = send(house.url, method, path, data, given)
    problem = json.loads(text) if status >= 400 and text.startswith("{") else {}
    return Outcome(status, problem.get("type", "").removeprefix("/docs#"), text)


def sqs(house: House, user: str | None, action: str, **members: Any) -> Outcome:
    """In the JSON protocol, signed with the user's key, if there is a user."""
    headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0"}
    body = json.dumps(members)
    if user is not None:
        key_id = house.keys[user]
        headers = signed(house.url, headers, body, key_id, house.secret(key_id))
    status, found, text = send(house.url, "POST", "/", body, headers)
    code = found.get("x-amzn-query-error", "").partition(";")[0]
    return Outcome(status, code.removeprefix("AWS.SimpleQueueService."), text)


def signed(
    url: str, headers: dict[str, str], body: str, key_id: str, secret: str, region: str = "us-east-1"
) -> dict[str, str]:
    request = AWSRequest("POST", url + "/", dict(headers), body.encode())
    SigV4Auth(Credentials(key_id, secret), "sqs", region).add_auth(request)
    return dict(request.headers)


def send(
    url: str, method: str, path: str, body: str | None, headers: dict[str, str]
) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, None if body is None else body.encode(), headers)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return response.status, found, response.read().decode()
    finally:
        connection.close()
