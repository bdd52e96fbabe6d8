"""A gateway whose registry is asked as Confluent's clients do."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from postroad.gateway.dialects import DIALECTS
from tests.gateway.conftest import RunningGateway, StartGateway

REGISTRY_JSON = "application/vnd.schemaregistry.v1+json"
TIMEOUT_S = 60


class Reply(NamedTuple):
    status: int
    body: Any
    media: str

    @property
    def code(self) -> int:
        found: int = self.body["error_code"]
        return found


class Asker:
    """Plain requests."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=TIMEOUT_S)
        try:
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            given = {"Content-Type": REGISTRY_JSON} if data is not None else {}
            connection.request(method, path, data, {**given, **(headers or {})})
            response = connection.getresponse()
            return Reply(response.status, json.loads(response.read()), response.getheader("Content-Type", ""))
        finally:
            connection.close()

    def register(self, subject: str, schema: Any, kind: str = "AVRO", **more: Any) -> Reply:
        body = {
            "schema": schema if isinstance(schema, str) else json.dumps(schema),
            "schemaType": kind,
            **more,
        }
        return self("POST", f"/subjects/{quote(subject, safe='')}/versions", body)


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway(DIALECTS)


@pytest.fixture(scope="module")
def ask(gateway: RunningGateway) -> Asker:
    return Asker(gateway.url)
