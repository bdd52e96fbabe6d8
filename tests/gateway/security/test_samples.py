"""What was sampled is told to who may describe what it is of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from postroad.gateway.dialects import DIALECTS
from postroad.gateway.history.reading import Reading
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from tests.gateway.conftest import gateway_in_thread
from tests.gateway.security.asking import rest
from tests.gateway.security.conftest import ADMIN, STRANGER, WORKER, House


@pytest.fixture
def sampled(house: House, name: str) -> Iterator[House]:
    """Seen by a gateway that takes no samples of its own."""
    key = house.node.node.security.master_key
    topics = {name: {"end_offset": 7.0, "start_offset": 2.0}}
    reading = Reading(topics, {name: {"lag": 3.0}}, {}, {"1": {"connections": 4.0}}, {})
    with gateway_in_thread(house.node.bootstrap, DIALECTS, master_key=key) as running:

        async def take() -> None:
            running.gateway.history.take(reading, 1e9, 1e9)

        running.run(take())
        yield House(house.node, running)


def figures(house: House, user: str, kind: str) -> list[str]:
    found = rest(house, user, "GET", f"/v1/figures?of={kind}&limit=1000")
    assert found.status == 200, found
    return [each["name"] for each in found.content["figures"]]


def test_samples_are_told_to_who_may_describe(sampled: House, name: str) -> None:
    assert figures(sampled, ADMIN, "topic") == figures(sampled, ADMIN, "subscription") == [name]
    assert figures(sampled, ADMIN, "node") == ["1"]
    assert [figures(sampled, STRANGER, kind) for kind in ("topic", "subscription", "node")] == [[], [], []]
    path = f"/v1/history?of=topic&name={name}"
    assert rest(sampled, WORKER, "GET", path).status == 403
    assert rest(sampled, WORKER, "GET", path + "-none").status == 403, "whether it is there or not"
    assert rest(sampled, WORKER, "GET", "/v1/history?of=cluster").status == 403
    right = (Op.DESCRIBE, Type.TOPIC, name)
    sampled.allow(WORKER, right)
    try:
        seen, found = figures(sampled, WORKER, "topic"), rest(sampled, WORKER, "GET", path)
    finally:
        sampled.disallow(WORKER, right)
    assert seen == [name]
    assert found.content["series"]["messages"][-1] == 5.0
