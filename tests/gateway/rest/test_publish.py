import asyncio
import base64
from typing import Any

import aiohttp
import pytest

from postroad.gateway import rest
from postroad.testing import node
from tests.gateway.conftest import StartGateway, gateway_in_thread
from tests.gateway.rest.conftest import Api

BYTES = bytes(range(256))


async def test_a_message_comes_as_it_was_published(api: Api, name: str) -> None:
    await api.queue(name)
    new = {
        "value": "hello",
        "key": "k",
        "headers": {"a": "1", "none": None},
        "timestamp_ms": 1_700_000_000_000,
    }
    answer = await api.post(f"/v1/topics/{name}/messages", new, status=201)
    (published,) = answer["messages"]
    (came,) = await api.receive(name)
    assert {key: came[key] for key in ("id", "topic", "partition", "offset")} == {
        key: published[key] for key in ("id", "topic", "partition", "offset")
    }
    assert (came["value"], came["key"], came["timestamp_ms"]) == ("hello", "k", 1_700_000_000_000)
    assert came["headers"] == [["a", "1"], ["none", None]]
    assert came["deliveries"] == 1


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("text", b"text"),
        ({"base64": base64.b64encode(BYTES).decode()}, BYTES),
        (None, None),
        ({"a": [1, 2.5, None]}, b'{"a": [1, 2.5, null]}'),
        ([1, "x"], b'[1, "x"]'),
        (17, b"17"),
        (False, b"false"),
        ({"base64": "no base64!", "more": 1}, b'{"base64": "no base64!", "more": 1}'),
    ],
)
async def test_any_json_is_a_value(api: Api, name: str, value: object, stored: bytes | None) -> None:
    await api.queue(name)
    await api.publish(name, value)
    (came,) = await api.receive(name, values="base64")
    assert came["value"] == (None if stored is None else {"base64": base64.b64encode(stored).decode()})


async def test_values_that_are_json_can_be_had_as_json(api: Api, name: str) -> None:
    await api.queue(name)
    await api.publish(name, {"a": 1}, "no json", {"base64": "/w=="})
    came = await api.receive(name, 3, values="json")
    assert [message["value"] for message in came] == [{"a": 1}, "no json", {"base64": "/w=="}]


async def test_several_are_published_in_order(api: Api, name: str) -> None:
    await api.queue(name)
    published = await api.publish(name, *map(str, range(100)))
    assert [message["offset"] for message in published] == list(range(100))
    came = await api.receive(name, 100)
    assert [message["value"] for message in came] == list(map(str, range(100)))


async def test_what_can_not_be_stored_is_told_of_each(api: Api, name: str) -> None:
    await api.queue(name)
    new = [{"value": "good"}, {"value": "bad", "partition": 7}, {"value": "good"}]
    results = (await api.post(f"/v1/topics/{name}/messages", new, status=207))["messages"]
    assert [result["offset"] for result in results] == [0, None, 1]
    assert results[1]["problem"]["status"] == 404
    await api.post(f"/v1/topics/{name}/messages", {"value": "bad", "partition": 7}, status=404)


async def test_bytes_are_published_as_they_are(api: Api, name: str) -> None:
    await api.queue(name)
    headers = [
        ("Content-Type", "image/png"),
        ("Postroad-Key", "k"),
        ("Postroad-Header", "a=1"),
        ("Postroad-Header", "b=x=y"),
    ]
    await api.call("POST", f"/v1/topics/{name}/messages", data=BYTES, headers=headers, status=201)
    (came,) = await api.receive(name)
    assert came["value"] == {"base64": base64.b64encode(BYTES).decode()}
    assert came["key"] == "k"
    assert came["headers"] == [["a", "1"], ["b", "x=y"], ["content-type", "image/png"]]


async def test_a_form_is_most_likely_a_mistake(api: Api, name: str) -> None:
    await api.queue(name)
    await api.call("POST", f"/v1/topics/{name}/messages", data={"a": "b"}, status=415)


async def test_a_delayed_message_waits(api: Api, name: str) -> None:
    """And holds up nobody: who receives late enough gets two at once, but never the one of tomorrow."""
    await api.queue(name)
    began = asyncio.get_running_loop().time()
    delays = {"tomorrow": 86_400_000, "late": 400, "at once": 0}
    new = [{"value": value, "delay_ms": delay_ms} for value, delay_ms in delays.items()]
    await api.post(f"/v1/topics/{name}/messages", new, status=201)
    came = await api.receive(name, 2)
    assert sorted(message["value"] for message in came) == ["at once", "late"]
    assert asyncio.get_running_loop().time() - began > 0.3


async def test_an_expired_message_does_not_come(api: Api, name: str) -> None:
    await api.queue(name)
    await api.post(f"/v1/topics/{name}/messages", {"value": "old", "expires_at_ms": 1000}, status=201)
    await api.publish(name, "new")
    assert [message["value"] for message in await api.receive(name)] == ["new"]


async def test_a_time_is_given_once(api: Api, name: str) -> None:
    await api.queue(name)
    new = {"value": "x", "delay_ms": 1, "headers": {"postroad-delay-ms": "2"}}
    await api.post(f"/v1/topics/{name}/messages", new, status=422)


async def test_a_message_larger_than_the_topic_takes_is_refused(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name, "configs": {"max.message.bytes": "1000"}}, status=201)
    new = [{"value": "x" * 2000}]
    assert (await api.post(f"/v1/topics/{name}/messages", new, status=413))["type"] == "/docs#too-large"


async def test_a_body_larger_than_the_gateway_takes_is_refused(api: Api, name: str) -> None:
    await api.call("POST", f"/v1/topics/{name}/messages", data=b"x" * (5 << 20), status=413)


async def test_the_first_message_makes_a_topic_where_that_is_wanted(
    api: Api, name: str, start_gateway: StartGateway
) -> None:
    strict = start_gateway([rest.routes], auto_create=False)
    async with aiohttp.ClientSession(strict.url) as session:
        await Api(session).post(f"/v1/topics/{name}/messages", {"value": "x"}, status=404)
    await api.post(f"/v1/topics/{name}/messages", {"value": "x"}, status=201)
    assert (await api.get(f"/v1/topics/{name}"))["partitions"][0]["end"] == 1


# --- Idempotency-Key


async def test_a_repeated_request_is_stored_once_and_answered_alike(
    api: Api, name: str, start_gateway: StartGateway
) -> None:
    await api.queue(name)
    await api.call("PATCH", f"/v1/topics/{name}", {"partitions": 3})
    new = [{"value": str(number), "key": str(number % 7)} for number in range(20)] + [{"value": "no key"}]
    options = {"headers": {"Idempotency-Key": "order-17"}, "status": 201}
    first = await api.post(f"/v1/topics/{name}/messages", new, **options)
    assert await api.post(f"/v1/topics/{name}/messages", new, **options) == first
    other = start_gateway([rest.routes])
    async with aiohttp.ClientSession(other.url) as session:
        assert await Api(session).post(f"/v1/topics/{name}/messages", new, **options) == first
    parts = (await api.get(f"/v1/topics/{name}"))["partitions"]
    assert sum(part["end"] for part in parts) == len(new)


async def test_requests_at_the_same_moment_are_stored_once(api: Api, name: str) -> None:
    await api.queue(name)
    options = {"headers": {"Idempotency-Key": "k"}, "status": 201}
    answers = await asyncio.gather(
        *(api.post(f"/v1/topics/{name}/messages", {"value": "x"}, **options) for _ in range(10))
    )
    assert all(answer == answers[0] for answer in answers)
    assert (await api.get(f"/v1/topics/{name}"))["partitions"][0]["end"] == 1


async def test_a_key_means_one_request_to_one_topic(api: Api, name: str) -> None:
    await api.queue(name)
    await api.queue(name + "-other")
    options = {"headers": {"Idempotency-Key": "k"}}
    await api.post(f"/v1/topics/{name}/messages", {"value": "x"}, status=201, **options)
    problem = await api.post(f"/v1/topics/{name}/messages", {"value": "y"}, status=422, **options)
    assert problem["type"] == "/docs#idempotency-key-reused"
    await api.post(f"/v1/topics/{name}-other/messages", {"value": "y"}, status=201, **options)


async def test_bytes_are_repeated_once_too(api: Api, name: str) -> None:
    await api.queue(name)
    options: dict[str, Any] = {
        "headers": {"Idempotency-Key": "k", "Postroad-Key": "a"},
        "status": 201,
        "data": b"x",
    }
    path = f"/v1/topics/{name}/messages"
    assert await api.call("POST", path, **options) == await api.call("POST", path, **options)
    options["headers"]["Postroad-Key"] = "b"
    await api.call("POST", path, **{**options, "status": 422})


async def test_what_is_too_large_is_told_at_each_repetition(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name, "configs": {"max.message.bytes": "1000"}}, status=201)
    new = [{"value": "x" * size} for size in (10, 500, 2000, 500, 2000, 10)]
    options = {"headers": {"Idempotency-Key": "k"}, "status": 207}
    first = await api.post(f"/v1/topics/{name}/messages", new, **options)
    assert [result["offset"] for result in first["messages"]] == [0, 1, None, 2, None, 3]
    assert await api.post(f"/v1/topics/{name}/messages", new, **options) == first


async def test_a_repetition_after_a_crash_of_the_node_is_stored_once(name: str) -> None:
    with (
        node({"http.enabled": False}) as broker,
        gateway_in_thread(broker.bootstrap, [rest.routes]) as gateway,
    ):
        async with aiohttp.ClientSession(gateway.url) as session:
            api = Api(session)
            options = {"headers": {"Idempotency-Key": "k"}, "status": 201}
            first = await api.post(f"/v1/topics/{name}/messages", {"value": "x"}, **options)
            broker.kill()
            broker.start()
            assert await api.post(f"/v1/topics/{name}/messages", {"value": "x"}, **options) == first


@pytest.mark.parametrize("value", ["abc", "-5", "99999999999999999", "soon"])
async def test_a_time_that_can_not_be_read_is_refused(api: Api, name: str, value: str) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    path = f"/v1/topics/{name}/messages"
    header = ["postroad-delay-ms", value]
    problem = await api.post(path, {"value": "x", "headers": [header]}, status=422)
    assert f"postroad-delay-ms is '{value}'" in problem["detail"]
    raw = {"Content-Type": "text/plain", "Postroad-Header": "=".join(header)}
    await api.call("POST", path, status=422, data=b"x", headers=raw)
