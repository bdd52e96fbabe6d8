import asyncio
from typing import Any

import aiohttp

from postroad.gateway import rest
from tests.gateway.conftest import StartGateway
from tests.gateway.rest.conftest import Api, dead

LOCK_MS = 100


async def test_an_acknowledged_message_does_not_come_again(api: Api, name: str) -> None:
    await api.queue(name)
    await api.publish(name, "a", "b")
    came = await api.receive(name, 2)
    assert await api.settle(name, "acknowledge", came[:1]) == [{"done": True, "problem": None}]
    # The locks of both are to end now, but one of them holds nothing any more.
    ended = await api.settle(name, "extend", came, status=207, lock_ms=LOCK_MS)
    assert [result["done"] for result in ended] == [False, True]
    again = await api.receive(name, max=10)
    assert [(message["value"], message["deliveries"]) for message in again] == [("b", 2)]
    await api.settle(name, "acknowledge", again)
    assert (await api.get(f"/v1/subscriptions/{name}"))["counts"]["lag"] == 0


async def test_a_receipt_is_good_at_any_gateway(api: Api, name: str, start_gateway: StartGateway) -> None:
    await api.queue(name)
    await api.publish(name, "a")
    came = await api.receive(name)
    other = start_gateway([rest.routes])
    async with aiohttp.ClientSession(other.url) as session:
        await Api(session).settle(name, "acknowledge", came)
    results = await api.settle(name, "acknowledge", came, status=207)
    assert results[0]["problem"]["type"] == "/docs#lock-lost"


async def test_a_released_message_comes_again_after_its_delay(api: Api, name: str) -> None:
    await api.queue(name)
    await api.publish(name, "a")
    await api.settle(name, "release", await api.receive(name))
    began = asyncio.get_running_loop().time()
    await api.settle(name, "release", await api.receive(name), delay_ms=500)
    (came,) = await api.receive(name)
    assert came["deliveries"] == 3
    assert asyncio.get_running_loop().time() - began > 0.4


async def test_receive_with_a_short_lock_and_no_wait_brings_what_is_there(api: Api, name: str) -> None:
    await api.queue(name)
    await api.publish(name, *"abcde")
    request = {"max": 5, "wait_ms": 0, "lock_ms": 500}
    came = (await api.post(f"/v1/subscriptions/{name}/receive", request))["messages"]
    assert [message["value"] for message in came] == [*"abcde"]


async def test_a_release_for_longer_than_a_day_is_refused(api: Api, name: str) -> None:
    await api.queue(name)
    await api.publish(name, "a")
    (came,) = await api.receive(name)
    request = {"receipts": [came["receipt"]], "delay_ms": 86_400_001}
    await api.post(f"/v1/subscriptions/{name}/release", request, status=400)
    await api.settle(name, "release", [came], delay_ms=86_400_000)


async def test_an_extended_lock_holds(api: Api, name: str) -> None:
    await api.queue(name)
    await api.publish(name, "a")
    came, lock_ms = await held_and_extended(api, name)
    assert (await api.post(f"/v1/subscriptions/{name}/receive", {"wait_ms": 2 * lock_ms}))["messages"] == []
    await api.settle(name, "acknowledge", came)


async def test_who_waits_gets_a_message_when_its_shortened_lock_ends(api: Api, name: str) -> None:
    """And not when it would have ended before, nor when the next request to the node looks."""
    await api.queue(name)
    await api.publish(name, "a")
    came = await api.receive(name)
    took: list[float] = []
    while not took or took[-1] > 0.6:
        # One may be held up for other reasons, but not all of them. After five deliveries it would be dead.
        assert len(took) < 4, took
        await api.settle(name, "extend", came, lock_ms=LOCK_MS)
        began = asyncio.get_running_loop().time()
        came = await api.receive(name, wait_ms=20_000)
        took.append(asyncio.get_running_loop().time() - began)


async def held_and_extended(api: Api, name: str) -> tuple[list[Any], int]:
    """A message whose lock was extended by a minute, and how long it was before. Who is held up for longer
    than that tries again with a longer one."""
    for lock_ms in (300, 1000, 5000):
        came = await api.receive(name, lock_ms=lock_ms)
        request = {"receipts": [came[0]["receipt"]], "lock_ms": 60_000}
        async with api.session.post(f"/v1/subscriptions/{name}/extend", json=request) as response:
            if response.status == 200:
                return came, lock_ms
    raise AssertionError("no lock could be extended")


async def test_a_rejected_message_is_a_dead_letter(api: Api, name: str) -> None:
    await api.queue(name)
    (published,) = await api.publish(name, "a")
    came = await api.receive(name)
    await api.settle(name, "reject", came)
    assert (await dead(api, published["id"], name))["status"] == "dead"
    results = await api.settle(name, "release", came, status=207)
    assert results[0]["problem"]["type"] == "/docs#lock-lost"
    assert (await api.post(f"/v1/subscriptions/{name}/receive", {"wait_ms": 300}))["messages"] == []


async def test_each_receipt_has_its_own_result(api: Api, name: str) -> None:
    await api.queue(name)
    await api.queue(name + "-other")
    await api.publish(name, "a", "b")
    await api.publish(name + "-other", "c")
    first, second = await api.receive(name, 2)
    (foreign,) = await api.receive(name + "-other")
    await api.settle(name, "acknowledge", [first])
    made_up = {"receipt": "no receipt"}
    bent = {"receipt": second["receipt"][:-4] + "AAA="}
    results = await api.settle(
        name, "acknowledge", [first, second, foreign, made_up, bent, second], status=207
    )
    assert [result["done"] for result in results] == [False, True, False, False, False, True]
    types = [result["problem"] and result["problem"]["type"] for result in results]
    assert types == ["/docs#lock-lost", None, *["/docs#wrong-receipt"] * 3, None]


async def test_a_long_poll_wakes_with_the_message(api: Api, name: str) -> None:
    """And not when its request to the node is over, after a second."""
    await api.queue(name)
    request = {"wait_ms": 20_000, "lock_ms": 600_000}
    took: list[float] = []
    while not took or took[-1] > 0.4:
        assert len(took) < 10, took  # one may be held up for other reasons, but not all of them
        waiting = asyncio.create_task(api.post(f"/v1/subscriptions/{name}/receive", request))
        await asyncio.sleep(0.2)
        began = asyncio.get_running_loop().time()
        await api.publish(name, "a")
        assert len((await waiting)["messages"]) == 1
        took.append(asyncio.get_running_loop().time() - began)


async def test_without_messages_a_receive_ends_in_time(api: Api, name: str) -> None:
    await api.queue(name)
    began = asyncio.get_running_loop().time()
    assert (await api.post(f"/v1/subscriptions/{name}/receive"))["messages"] == []
    assert (await api.post(f"/v1/subscriptions/{name}/receive", {"wait_ms": 300}))["messages"] == []
    assert asyncio.get_running_loop().time() - began < 8


async def test_what_comes_for_one_who_has_hung_up_goes_to_the_next(api: Api, name: str) -> None:
    await api.queue(name)
    async with aiohttp.ClientSession(api.session._base_url) as session:
        leaving = asyncio.create_task(
            session.post(f"/v1/subscriptions/{name}/receive", json={"wait_ms": 20_000})
        )
        await asyncio.sleep(0.3)
        leaving.cancel()
    await asyncio.sleep(0.1)
    await api.publish(name, "a")
    (came,) = await api.receive(name)
    assert (came["value"], came["deliveries"]) == ("a", 1)


async def test_a_topic_that_was_deleted_does_not_stop_the_subscriptions_others(api: Api, name: str) -> None:
    for topic in (f"{name}-a", f"{name}-b"):
        await api.post("/v1/topics", {"name": topic}, status=201)
    topics = [f"{name}-a", f"{name}-b"]
    await api.post("/v1/subscriptions", {"name": name, "topics": topics}, status=201)
    await api.publish(f"{name}-b", "b")
    await api.call("DELETE", f"/v1/topics/{name}-a", status=204)
    (came,) = await api.receive(name)
    assert came["value"] == "b"


async def test_ten_consumers_share_a_queue(api: Api, name: str) -> None:
    await api.queue(name)
    await api.publish(name, *map(str, range(200)))

    async def work() -> list[str]:
        done: list[str] = []
        while True:
            request = {"max": 7, "wait_ms": 300, "lock_ms": 600_000}
            came = (await api.post(f"/v1/subscriptions/{name}/receive", request))["messages"]
            if not came:
                return done
            await api.settle(name, "acknowledge", came)
            done += [message["value"] for message in came]

    done = [value for values in await asyncio.gather(*(work() for _ in range(10))) for value in values]
    assert sorted(done, key=int) == list(map(str, range(200)))


async def test_an_unknown_subscription_is_not_found(api: Api, name: str) -> None:
    await api.post(f"/v1/subscriptions/{name}/receive", {}, status=404)
    await api.post(f"/v1/subscriptions/{name}/acknowledge", {"receipts": ["x"]}, status=404)
