"""Transactions over REST: what is published and what is acknowledged in one request is there, or is not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from postroad.client import AckType, TopicPartition, offsets
from postroad.client.offsets import READ_COMMITTED
from postroad.client.transactions import TransactionalProducer
from postroad.gateway import rest, transactions
from postroad.gateway.gateway import Gateway
from postroad.gateway.transactions import OFF, Transactions
from postroad.testing import node
from tests.clients.wait import until_async
from tests.gateway.conftest import RunningGateway, gateway_in_thread
from tests.gateway.rest.conftest import Api

PATH = "/v1/transactions"
LOCK_MS = 60_000


def receipts(messages: list[Any]) -> list[str]:
    return [message["receipt"] for message in messages]


async def lag(api: Api, subscription: str) -> int:
    return int((await api.get(f"/v1/subscriptions/{subscription}"))["counts"]["lag"])


async def committed(gateway: RunningGateway, topic: str, end: int) -> None:
    """The stable offset of its only partition gets there: markers follow the answer."""
    part, client = TopicPartition(topic, 0), gateway.gateway.client

    async def is_there() -> bool:
        found = await asyncio.to_thread(gateway.run, offsets.latest(client, [part], READ_COMMITTED))
        return found[part] == end

    await until_async(is_there, f"{end} messages and markers")


@pytest.fixture
async def queue(api: Api, name: str) -> str:
    """A queue of five messages, and a topic for answers."""
    await api.queue(name, lock_ms=LOCK_MS)
    await api.post("/v1/topics", {"name": f"{name}-out"}, status=201)
    await api.publish(name, *"abcde")
    return name


async def test_messages_are_taken_and_answered_in_one_request(
    api: Api, gateway: RunningGateway, queue: str
) -> None:
    came = await api.receive(queue, 5)
    publish = [
        {"topic": f"{queue}-out", "key": "k", "value": {"n": 1}, "headers": {"a": "b"}},
        {"topic": f"{queue}-out", "value": "two", "timestamp_ms": 1_700_000_000_000},
    ]
    answer = await api.post(PATH, {"acknowledge": receipts(came[:3]), "publish": publish})
    assert answer["acknowledged"] == 3
    assert [(each["topic"], each["offset"]) for each in answer["messages"]] == [
        (f"{queue}-out", n) for n in (0, 1)
    ]
    first, second = [await api.get(f"/v1/messages/{each['id']}?values=json") for each in answer["messages"]]
    assert (first["key"], first["value"], first["headers"]) == ("k", {"n": 1}, [["a", "b"]])
    assert (second["value"], second["timestamp_ms"]) == ("two", 1_700_000_000_000)
    await until_async(lambda: is_lag(api, queue, 2), "three are done")
    await committed(gateway, f"{queue}-out", 3)
    await api.settle(queue, "acknowledge", came[3:])
    assert await lag(api, queue) == 0


async def is_lag(api: Api, subscription: str, expected: int) -> bool:
    return await lag(api, subscription) == expected


async def test_either_half_of_a_transaction_may_be_left_out(api: Api, queue: str) -> None:
    published = await api.post(PATH, {"publish": [{"topic": f"{queue}-out", "value": "x"}]})
    assert (published["acknowledged"], len(published["messages"])) == (0, 1)
    came = await api.receive(queue, 5)
    accepted = await api.post(PATH, {"acknowledge": receipts(came)})
    assert accepted == {"acknowledged": 5, "messages": []}
    await until_async(lambda: is_lag(api, queue, 0), "all are done")


async def test_a_repetition_is_refused_and_answers_nothing_twice(
    api: Api, gateway: RunningGateway, queue: str
) -> None:
    came = await api.receive(queue, 1)
    request = {"acknowledge": receipts(came), "publish": [{"topic": f"{queue}-out", "value": "x"}]}
    await api.post(PATH, request)
    problem = await api.post(PATH, request, status=409)
    assert problem["type"] == "/docs#lock-lost"
    assert "acknowledge[0]" in problem["detail"]
    for _ in range(2):  # the second one waits for the end of the first
        await api.post(PATH, {"publish": [{"topic": f"{queue}-out", "value": "y"}]})
    found = await api.post(
        "/v1/subscriptions",
        {
            "name": f"{queue}-r",
            "topics": [f"{queue}-out"],
            "start": "earliest",
            "configs": {"share.isolation.level": "read_committed"},
        },
        status=201,
    )
    assert found["name"] == f"{queue}-r"
    assert [each["value"] for each in await api.receive(f"{queue}-r", 3)] == ["x", "y", "y"]


async def test_nothing_happens_where_a_lock_is_lost_and_the_others_stay_held(api: Api, queue: str) -> None:
    came = await api.receive(queue, 5)
    await api.settle(queue, "acknowledge", came[1:2])
    request = {"acknowledge": receipts(came), "publish": [{"topic": f"{queue}-out", "value": "x"}]}
    problem = await api.post(PATH, request, status=409)
    assert problem["type"] == "/docs#lock-lost"
    assert f"offset {came[1]['offset']}" in problem["detail"]
    rest_of_it = [came[0], *came[2:]]
    await api.settle(queue, "acknowledge", rest_of_it)
    assert await lag(api, queue) == 0


async def test_nothing_happens_where_a_message_is_too_large(api: Api, queue: str) -> None:
    await api.call("PATCH", f"/v1/topics/{queue}-out", {"configs": {"max.message.bytes": "2000"}})
    came = await api.receive(queue, 2)
    small, large = [{"topic": f"{queue}-out", "value": "x" * size} for size in (900, 3000)]
    request: Any = {"acknowledge": receipts(came), "publish": [small, small, small, large, small]}
    problem = await api.post(PATH, request, status=413)
    assert problem["detail"].startswith("publish[3]:")
    request["publish"].pop(3)
    answer = await api.post(PATH, request)
    assert len({each["offset"] for each in answer["messages"]}) == 4, "in several batches"
    await until_async(lambda: is_lag(api, queue, 3), "two are done")


@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        ({}, 422, "refused"),
        ({"acknowledge": [], "publish": []}, 422, "refused"),
        ({"acknowledge": ["nonsense"]}, 422, "wrong-receipt"),
        ({"acknowledge": [""]}, 400, "malformed"),
        ({"acknowledge": ["x"] * 1001}, 400, "malformed"),
        ({"publish": [{"topic": "t", "value": 1}] * 1001}, 400, "malformed"),
        ({"publish": [{"value": "no topic"}]}, 400, "malformed"),
        ({"publish": [{"topic": "a b", "value": 1}]}, 400, "malformed"),
        ({"publish": [{"topic": "t", "value": 1, "headers": {"postroad-delay-ms": "soon"}}]}, 422, "refused"),
        ({"publish": [{"topic": "__consumer_offsets", "value": 1}]}, None, None),
        ({"reject": ["x"]}, 400, "malformed"),
    ],
)
async def test_bad_input_is_refused(api: Api, body: Any, status: int | None, slug: str | None) -> None:
    async with api.session.post(PATH, json=body) as response:
        problem = await response.json(content_type=None)
        assert response.status == status if status else 400 <= response.status < 500
        assert slug is None or problem["type"] == f"/docs#{slug}"


async def test_an_idempotency_key_is_refused_and_the_answer_says_why(api: Api, queue: str) -> None:
    body = {"publish": [{"topic": f"{queue}-out", "value": "x"}]}
    problem = await api.post(PATH, body, status=422, headers={"Idempotency-Key": "once"})
    assert "Idempotency-Key" in problem["detail"]


async def test_a_receipt_of_a_deleted_subscription_is_not_found(api: Api, queue: str) -> None:
    came = await api.receive(queue, 1)
    await api.call("DELETE", f"/v1/subscriptions/{queue}", status=204)
    await api.post(PATH, {"acknowledge": receipts(came)}, status=404)


async def test_messages_of_several_queues_are_taken_at_once(api: Api, queue: str) -> None:
    await api.queue(f"{queue}-2", lock_ms=LOCK_MS)
    await api.publish(f"{queue}-2", "x")
    mine = [*await api.receive(queue, 2), *await api.receive(f"{queue}-2")]
    answer = await api.post(PATH, {"acknowledge": receipts(mine)})
    assert answer["acknowledged"] == 3
    await until_async(lambda: is_lag(api, queue, 3), "two are done")
    await until_async(lambda: is_lag(api, f"{queue}-2", 0), "the other one, too")


async def test_a_topic_is_made_by_its_first_message(api: Api, name: str) -> None:
    answer = await api.post(PATH, {"publish": [{"topic": name, "value": "x"}]})
    assert answer["messages"][0]["topic"] == name


async def test_more_transactions_than_ids_follow_each_other(api: Api, queue: str) -> None:
    request = {"publish": [{"topic": f"{queue}-out", "value": "x"}]}
    answers = await asyncio.gather(*(api.post(PATH, request) for _ in range(3 * transactions.IDS_MAX)))
    found = {each["messages"][0]["offset"] for each in answers}
    assert len(found) == 3 * transactions.IDS_MAX


async def test_a_pledged_message_is_seen_by_peek(api: Api, gateway: RunningGateway, queue: str) -> None:
    (came, *_) = await api.receive(queue, 5)

    async def pledge() -> None:
        producer = await TransactionalProducer.begin(gateway.gateway.client, queue)
        held = gateway.gateway.receipts.read(came["receipt"])
        mine = producer.take_part()
        (error,) = await gateway.gateway.settler.settle([held], AckType.PLEDGE, transaction=mine)
        assert error is None

    gateway.run(pledge())
    peeked = (await api.get(f"/v1/subscriptions/{queue}/messages"))["messages"]
    assert [each["state"] for each in peeked] == ["pledged", *["held"] * 4]
    state = (await api.get(f"/v1/messages/{came['id']}"))["subscriptions"][0]
    assert state["status"] == "in_flight"
    counts = (await api.get(f"/v1/subscriptions/{queue}"))["counts"]
    assert (counts["in_flight"], counts["ready"], counts["lag"]) == (5, 0, 5)


# --- gateways that die


@pytest.fixture
def named(gateway: RunningGateway, name: str) -> Iterator[Gateway]:
    """A gateway with a name, that has not cleared up yet."""
    inner = gateway.gateway
    inner.transactions.close()
    before = inner.transactions
    inner.transactions = gateway.run(made(inner, name))
    yield inner
    inner.transactions.close()
    inner.transactions = before


async def made(gateway: Gateway, name: str) -> Transactions:
    return Transactions(gateway.client, gateway.settler, name)


async def test_a_gateway_that_is_started_again_releases_what_it_left_open(
    api: Api, gateway: RunningGateway, named: Gateway, queue: str, name: str
) -> None:
    came = await api.receive(queue, 5)
    held = [named.receipts.read(receipt) for receipt in receipts(came)]

    async def die_before_commit() -> None:
        """As if it were killed: its producer says nothing more."""
        (slot, *_) = named.transactions._slots
        producer = await slot.producer()
        outcomes = await named.settler.settle(held, AckType.PLEDGE, transaction=producer.take_part())
        assert outcomes == [None] * 5
        slot.discard()

    gateway.run(die_before_commit())
    assert (await api.post(f"/v1/subscriptions/{queue}/receive", {"max": 5}))["messages"] == []

    async def start_again() -> None:
        named.transactions = await made(named, name)
        named.transactions.start()

    gateway.run(start_again())
    again = await api.receive(queue, 5)
    assert {message["deliveries"] for message in again} == {2}


async def test_a_gateway_whose_name_another_one_has_says_so_and_changes_nothing(
    api: Api, gateway: RunningGateway, named: Gateway, queue: str, name: str
) -> None:
    body = {"publish": [{"topic": f"{queue}-out", "value": "x"}]}
    await api.post(PATH, body)

    async def take_over() -> None:
        (slot, *_) = (await made(named, name))._slots
        await slot.producer()

    gateway.run(take_over())
    problem = await api.post(PATH, body, status=503)
    assert "http.name" in problem["detail"]
    await api.post(PATH, body)
    await committed(gateway, f"{queue}-out", 4)


def test_without_transactions_the_problem_names_the_setting(name: str) -> None:
    async def ask(url: str) -> None:
        async with aiohttp.ClientSession(url) as session:
            api = Api(session)
            problem = await api.post(PATH, {"publish": [{"topic": name, "value": "x"}]}, status=501)
            assert problem["detail"] == OFF
            assert "kafka.transactions" in OFF

    with (
        node({"http.enabled": False, "kafka.transactions": False}) as running,
        gateway_in_thread(running.bootstrap, [rest.routes]) as off,
    ):
        asyncio.run(ask(off.url))
