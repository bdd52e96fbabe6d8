"""Topics looked through over REST; a stock producer has written them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Producer

from tests.gateway.conftest import RunningGateway
from tests.gateway.rest.conftest import Api

Write = Callable[..., None]


@pytest.fixture
def write(gateway: RunningGateway, name: str) -> Write:
    """Messages by librdkafka, in the order of their times: (partition, value, key, headers, timestamp)."""

    def write(messages: list[tuple[Any, ...]], **config: Any) -> None:
        producer = Producer({"bootstrap.servers": gateway.bootstrap, "linger.ms": 0, **config})
        for number, (partition, value, *rest) in enumerate(messages):
            key, headers = (*rest, None, None)[:2]
            at_ms = 1_767_225_600_000 + number * 1000
            producer.produce(name, value, key, partition, headers=headers, timestamp=at_ms)
        assert producer.flush(30) == 0

    return write


async def browse(api: Api, name: str, query: str = "", status: int = 200, **filters: str) -> Any:
    wanted = "".join(f"&{key}={quote(value)}" for key, value in filters.items())
    return await api.get(f"/v1/topics/{name}/messages?{query}{wanted}", status=status)


def values(page: Any) -> list[Any]:
    return [message["value"] for message in page["messages"]]


async def topic(api: Api, name: str, partitions: int = 1, **configs: str) -> None:
    body = {"name": name, "partitions": partitions, "configs": configs}
    await api.post("/v1/topics", body, status=201)


async def test_a_topic_is_read_page_by_page_in_the_order_of_time(api: Api, name: str, write: Write) -> None:
    await topic(api, name, 3)
    write([(number % 3, f"v{number}") for number in range(10)])
    seen, query, pages = [], "limit=4", 0
    while query:
        page = await browse(api, name, query)
        assert page["scanned"] == page["found"] == len(page["messages"]) <= 4
        seen += values(page)
        query = page["next"] and f"limit=4&from={page['next']}"
        pages += 1
    assert seen == [f"v{number}" for number in range(10)]
    assert pages == 3
    (message,) = (await browse(api, name, "limit=1&partition=1"))["messages"]
    assert (message["partition"], message["offset"], message["timestamp_ms"]) == (1, 0, 1_767_225_601_000)
    assert (message["value_bytes"], message["is_cut"], message["key"]) == (2, False, None)
    found = await api.get(f"/v1/messages/{message['id']}")
    assert found["value"] == "v1"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("from=end", []),
        ("from=-2", ["v8", "v9"]),
        ("from=-4", ["v6", "v7", "v8", "v9"]),
        ("from=-1000", [f"v{number}" for number in range(10)]),
        ("from=-2&partition=1", ["v4", "v7"]),
        ("from=2&partition=0", ["v6", "v9"]),
        ("from=0:3,1:2,2:3", ["v7", "v9"]),
        ("from=2026-01-01T00:00:07Z", ["v7", "v8", "v9"]),
        ("from=2030-01-01", []),
    ],
)
async def test_it_begins_anywhere(api: Api, name: str, write: Write, query: str, expected: list[str]) -> None:
    await topic(api, name, 3)
    write([(number % 3, f"v{number}") for number in range(10)])
    page = await browse(api, name, query)
    assert (values(page), page["next"]) == (expected, None)


async def test_the_last_messages_of_all_partitions_are_as_many_as_asked_for(
    api: Api, name: str, write: Write
) -> None:
    """A partition that has less leaves more to the others."""
    await topic(api, name, 4)
    write([(0, "a")] + [(1, f"b{number}") for number in range(2)] + [(2, f"c{n}") for n in range(20)])
    assert values(await browse(api, name, "from=-10")) == ["a", "b0", "b1", *(f"c{n}" for n in range(13, 20))]
    assert values(await browse(api, name, "from=-2&limit=1")) == ["a"]  # forward, where there is no room
    assert values(await browse(api, name, "from=-0")) == []


async def test_a_filter_finds_messages_and_says_how_many_it_looked_at(
    api: Api, name: str, write: Write
) -> None:
    await topic(api, name, 2)
    orders = [{"total": number, "paid": number % 2 == 0} for number in range(500)]
    write(
        [(n % 2, json.dumps(order), f"order-{n}", [("source", b"shop")]) for n, order in enumerate(orders)]
        + [(0, b"\xff\x00 no json", "order-x", [("source", b"shop")])]
    )
    text = 'key ~ "order-*" and value.total > 490 and value.paid = true and header.source = "shop"'
    page = await browse(api, name, filter=text, values="json")
    assert [value["total"] for value in values(page)] == [492, 494, 496, 498]
    assert (page["scanned"], page["found"], page["next"]) == (501, 4, None)
    assert values(await browse(api, name, filter='value ~ "*no json*"')) == [{"base64": "/wAgbm8ganNvbg=="}]
    first = await browse(api, name, "limit=3", filter="value.total >= 0", values="json")
    assert (first["found"], len(first["messages"])) == (3, 3)
    seen = values(first)
    while first["next"]:
        first = await browse(
            api, name, f"limit=100&from={first['next']}", filter="value.total >= 0", values="json"
        )
        seen += values(first)
    assert sorted(value["total"] for value in seen) == list(range(500))


async def test_a_scan_that_runs_out_of_time_goes_on_where_it_stopped(
    api: Api, name: str, write: Write
) -> None:
    await topic(api, name, 2)
    write([(n % 2, json.dumps({"n": n, "pad": "x" * 500})) for n in range(8000)])
    query, scanned, seen, calls = "budget_ms=1", 0, [], 0
    while query:
        page = await browse(api, name, query, filter="value.n in (17, 4711, 7999)", values="json")
        scanned += page["scanned"]
        seen += [value["n"] for value in values(page)]
        query = page["next"] and f"budget_ms=50&from={page['next']}"
        calls += 1
    assert (scanned, sorted(seen)) == (8000, [17, 4711, 7999])
    assert calls > 1


async def test_aborted_messages_are_left_out_where_only_committed_ones_are_wanted(
    api: Api, name: str, write: Write, gateway: RunningGateway
) -> None:
    await topic(api, name)
    producer = Producer({"bootstrap.servers": gateway.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    for value, ending in (("kept", producer.commit_transaction), ("gone", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(name, value)
        producer.flush(30)
        ending(30)
    assert values(await browse(api, name)) == ["kept", "gone"]
    page = await browse(api, name, "committed=true")
    assert (values(page), page["next"]) == (["kept"], None)


async def test_large_values_are_cut_where_that_is_asked_for(api: Api, name: str, write: Write) -> None:
    await topic(api, name)
    write([(0, "ä" * 300_000)], **{"message.max.bytes": 1_000_000})
    (whole,) = (await browse(api, name))["messages"]
    assert (len(whole["value"]), whole["value_bytes"], whole["is_cut"]) == (300_000, 600_000, False)
    (cut,) = (await browse(api, name, "value_bytes=101"))["messages"]
    assert (cut["value"], cut["value_bytes"], cut["is_cut"]) == ("ä" * 50, 600_000, True)


async def test_a_page_ends_with_so_much_content(api: Api, name: str, write: Write) -> None:
    await topic(api, name)
    write([(0, bytes(900_000)) for _ in range(8)], **{"message.max.bytes": 1_000_000})
    first = await browse(api, name, "value_bytes=10")
    assert first["found"] == 5
    rest = await browse(api, name, f"value_bytes=10&from={first['next']}")
    assert (rest["found"], rest["next"]) == (3, None)


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("filter=" + quote("value.total >"), 400, "filter: Column 14: expected a text in quotes"),
        ("filter=" + quote('key = "a'), 400, "Column 7: the text that begins here has no closing"),
        ("from=yesterday", 400, "`from` must be beginning, end, an offset"),
        ("from=5", 400, "An offset belongs to one partition"),
        ("partition=9", 404, "has 2 partitions: there is no 9"),
        ("limit=0", 400, "limit"),
        ("limit=1001", 400, "limit"),
        ("budget_ms=60000", 400, "budget_ms"),
        ("filter=" + "x" * 4097, 400, "filter"),
    ],
)
async def test_what_cant_be_understood_is_refused(
    api: Api, name: str, query: str, status: int, says: str
) -> None:
    await topic(api, name, 2)
    assert says in (await browse(api, name, query, status=status))["detail"]


async def test_a_topic_that_is_not_there_is_not_found(api: Api, name: str) -> None:
    await browse(api, name, status=404)
