"""Web hooks from end to end: a node, a gateway, and endpoints that are slow, dead, flapping."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partialmethod
from typing import Any

import pytest
from aiohttp import web

from postroad.client import TopicPartition, offsets
from postroad.errors import NetworkException, TryAgain
from postroad.gateway.gateway import Message
from postroad.gateway.webhooks.breaker import FAILURES_MAX, OPEN_FIRST_S
from postroad.gateway.webhooks.deliverer import Deliverer
from postroad.gateway.webhooks.deliveries import Deliveries
from postroad.gateway.webhooks.hook import Webhook
from postroad.gateway.webhooks.sender import Sender
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.webhooks.conftest import SECRET, Queue, eventually, served
from tests.gateway.webhooks.receivers import Behaviour, Got, endpoint, nobody


def answering(*statuses: int, **headers: str) -> Behaviour:
    """One after the other, the last one for ever."""
    left = list(statuses)

    def behave(_: Got) -> web.StreamResponse:
        return web.Response(status=left.pop(0) if len(left) > 1 else left[0], headers=headers)

    return behave


async def nothing_left(queue: Queue) -> None:
    async def look() -> bool:
        return await queue.lag() == 0

    await eventually(look)


async def test_a_message_is_posted_as_a_signed_cloud_event_and_accepted(queue: Queue) -> None:
    async with endpoint() as receiver, served(queue.running):
        await queue.set_hook(receiver.url, headers={"Authorization": "Bearer them"})
        await queue.publish(Message(b"hello", b"k", [("trace", b"t1")]))
        await receiver.has_got(1)
        await nothing_left(queue)
    (got,) = receiver.got
    assert got.body == b"hello"
    assert got.headers["ce-specversion"] == "1.0"
    assert got.headers["ce-source"] == f"/v1/topics/{queue.topic}"
    assert got.headers["ce-subject"] == got.headers["Postroad-Key"] == "k"
    assert got.headers["Postroad-Offset"] == "0"
    assert got.headers["Postroad-Attempt"] == "1"
    assert got.headers["Postroad-Header-trace"] == "t1"
    assert got.headers["Authorization"] == "Bearer them"
    signed = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    seal = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    assert got.headers["webhook-signature"] == f"v1,{seal}"
    assert abs(int(got.headers["webhook-timestamp"]) - time.time()) < 60


async def test_only_a_2xx_is_progress(queue: Queue) -> None:
    statuses = [500, 404, 302, 200]
    was_looked_at = asyncio.Event()

    async def fine_at_last(_: Got) -> web.StreamResponse:
        if len(statuses) == 1:
            await was_looked_at.wait()
        return web.Response(status=statuses.pop(0))

    async with endpoint(fine_at_last) as receiver, served(queue.running):
        await in_small_steps(queue)
        await queue.set_hook(receiver.url, timeout_ms=30_000)
        await queue.publish(b"1")
        for attempt in range(1, 5):
            await receiver.has_got(attempt)
            assert await queue.lag() == 1
        was_looked_at.set()
        await nothing_left(queue)
    assert [got.headers["Postroad-Attempt"] for got in receiver.got] == ["1", "2", "3", "4"]
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    assert len({got.headers["Postroad-Delivery-Id"] for got in receiver.got}) == 4


async def in_small_steps(queue: Queue, **more: str) -> None:
    """Failed deliveries come again soon."""
    config = {"postroad.backoff.initial.ms": "50", "postroad.backoff.factor": "1.0", **more}
    await queue.in_gateway(queue.running.gateway.directory.alter(queue.name, config))


async def test_after_the_last_attempt_a_message_is_a_dead_letter(queue: Queue) -> None:
    await in_small_steps(queue, **{"share.delivery.count.limit": "2"})
    async with endpoint(answering(500)) as receiver, served(queue.running):
        await queue.set_hook(receiver.url)
        await queue.publish(b"poison")
        await nothing_left(queue)
    assert len(receiver.got) == 2

    async def dead_letters() -> int:
        """The topic is made by the first of them."""
        client = queue.running.gateway.client
        client.forget()
        try:
            place = TopicPartition((await client.topic(f"{queue.name}.dead")).name, 0)
        except TryAgain:
            return 0
        return (await offsets.latest(client, [place]))[place]

    async def is_dead() -> bool:
        return bool(await queue.in_gateway(dead_letters()) == 1)

    await eventually(is_dead)


async def test_without_a_backoff_of_the_subscription_a_second_try_waits_a_second(queue: Queue) -> None:
    async with endpoint(answering(500, 200)) as receiver, served(queue.running):
        await queue.set_hook(receiver.url)
        await queue.publish(b"1")
        await receiver.has_got(2)
    first, second = receiver.got[:2]
    assert 0.75 < second.at - first.at < 8


async def test_retry_after_is_obeyed_for_all_messages(queue: Queue) -> None:
    await in_small_steps(queue)
    busy = answering(429, 200, **{"Retry-After": "1"})
    async with endpoint(busy) as receiver, served(queue.running):
        await queue.set_hook(receiver.url, concurrency=1)
        await queue.publish(b"1", b"2", b"3")
        await receiver.has_got(4)
        assert receiver.got[1].at - receiver.got[0].at >= 0.9
        await nothing_left(queue)


async def test_retry_after_makes_no_wait_shorter(queue: Queue) -> None:
    await in_small_steps(queue, **{"postroad.backoff.initial.ms": "60000"})
    async with endpoint(answering(503, **{"Retry-After": "0"})) as receiver, served(queue.running):
        await queue.set_hook(receiver.url)
        await queue.publish(b"1")
        await receiver.has_got(1)
        await asyncio.sleep(0.5)
        assert len(receiver.got) == 1
        assert await queue.lag() == 1


async def test_an_endpoint_that_fails_is_left_alone_whatever_it_asks_for(queue: Queue) -> None:
    await in_small_steps(queue, **{"postroad.backoff.initial.ms": "1"})
    async with endpoint(answering(503, **{"Retry-After": "0"})) as receiver, served(queue.running) as hooks:
        await queue.set_hook(receiver.url, concurrency=1)
        await queue.publish(*(b"%d" % number for number in range(10)))
        await receiver.has_got(FAILURES_MAX)

        async def is_open() -> bool:
            health = hooks.health(queue.name)
            return health is not None and health.state == "open"

        await eventually(is_open)
        await asyncio.sleep(0.3)
        tried_again = receiver.got[FAILURES_MAX:]
        assert not tried_again or tried_again[0].at - receiver.got[FAILURES_MAX - 1].at > 0.9 * OPEN_FIRST_S


async def test_only_429_and_503_can_ask_for_time(queue: Queue) -> None:
    await in_small_steps(queue)
    async with endpoint(answering(500, 200, **{"Retry-After": "60"})) as receiver, served(queue.running):
        await queue.set_hook(receiver.url)
        await queue.publish(b"1")
        await receiver.has_got(2)
        await nothing_left(queue)


async def test_410_turns_the_web_hook_off_and_keeps_the_message(queue: Queue) -> None:
    async with endpoint(answering(410)) as receiver, served(queue.running):
        await queue.set_hook(receiver.url)
        await queue.publish(b"1")

        async def is_off() -> bool:
            found = await queue.hook()
            return found is not None and not found.enabled

        await eventually(is_off)
        found = await queue.hook()
        assert found is not None
        assert "410" in found.note
        assert await queue.pull() == [b"1"]
        assert len(receiver.got) == 1


async def test_an_endpoint_that_is_gone_says_so_again_if_that_could_not_be_written_down(queue: Queue) -> None:
    notes: list[str] = []

    async def disable(note: str) -> None:
        notes.append(note)
        if len(notes) == 1:
            raise NetworkException("The node is away for a moment.")

    async with endpoint(answering(410)) as receiver:
        hook = Webhook(receiver.url, SECRET, verified=True)

        async def deliver() -> None:
            async with Sender(private=True) as sender:
                gateway = queue.running.gateway
                deliverer = Deliverer(gateway, queue.name, hook, sender, disable, Deliveries())
                await asyncio.wrap_future(told_twice)
                await deliverer.stop()

        told_twice: Future[None] = Future()
        await queue.publish(b"1")
        delivering = asyncio.create_task(queue.in_gateway(deliver()))

        async def is_told_twice() -> bool:
            return len(notes) == 2

        await eventually(is_told_twice)
        told_twice.set_result(None)
        await delivering
    assert len(receiver.got) == 2


async def test_a_flapping_endpoint_gets_everything_in_the_end(queue: Queue) -> None:
    await in_small_steps(queue, **{"share.delivery.count.limit": "0"})
    calls = 0

    def flap(_: Got) -> web.StreamResponse:
        nonlocal calls
        calls += 1
        return web.Response(status=200 if calls % 3 == 0 else 503)

    async with endpoint(flap) as receiver, served(queue.running):
        await queue.set_hook(receiver.url)
        await queue.publish(*(b"%d" % n for n in range(30)))
        await nothing_left(queue)
    assert set(receiver.values) == {b"%d" % n for n in range(30)}


async def test_no_more_requests_are_under_way_than_allowed(queue: Queue) -> None:
    are_three = asyncio.Event()

    async def slow(_: Got) -> web.StreamResponse:
        if receiver.at_once == 3:
            are_three.set()
        await are_three.wait()
        await asyncio.sleep(0.05)
        return web.Response()

    async with endpoint(slow) as receiver, served(queue.running):
        await queue.set_hook(receiver.url, concurrency=3, timeout_ms=30_000)
        await queue.publish(*(b"%d" % n for n in range(20)))
        await nothing_left(queue)
    assert receiver.most_at_once == 3
    assert sorted(receiver.values, key=int) == [b"%d" % n for n in range(20)]


async def test_no_more_requests_a_second_are_sent_than_allowed(queue: Queue) -> None:
    """One at the start, then one each time that a tenth of a second has passed, however late it is used."""
    async with endpoint() as receiver, served(queue.running):
        await queue.publish(*(b"%d" % n for n in range(15)))
        began = time.monotonic()
        await queue.set_hook(receiver.url, rate=10)
        await receiver.has_got(15)
        for number, at in enumerate(sorted(got.at for got in receiver.got)):
            assert number <= (at - began) * 10 + 0.1
        await nothing_left(queue)


@pytest.fixture
def dead_url() -> Iterator[str]:
    with nobody() as url:
        yield url


async def test_a_dead_endpoint_slows_no_other_and_holds_nothing(
    queue: Queue, gateway: RunningGateway, name: str, dead_url: str
) -> None:
    dead = Queue(gateway, f"{name}-dead")
    await dead.create(**{"share.delivery.count.limit": "0", "postroad.backoff.initial.ms": "10"})
    async with endpoint() as receiver, served(gateway) as supervisor:
        await dead.set_hook(dead_url)
        await queue.set_hook(receiver.url)
        await dead.publish(*[b"x" * 10_000] * 500)

        async def has_opened() -> bool:
            health = supervisor.health(dead.name)
            return health is not None and health.failed >= FAILURES_MAX and health.in_flight == 0

        await eventually(has_opened)
        began = time.monotonic()
        await queue.publish(*(b"%d" % n for n in range(200)))
        await receiver.has_got(200)
        assert time.monotonic() - began < 15
        health = supervisor.health(dead.name)
        assert health is not None
        assert health.in_flight <= 8
        assert health.failed < 100  # left alone, not tried with all it has
        assert health.last_error
        assert await dead.lag() == 500
        await dead.in_gateway(gateway.gateway.directory.alter(dead.name, {"postroad.webhook": None}))


async def test_an_endpoint_that_comes_back_gets_what_it_missed(queue: Queue) -> None:
    await in_small_steps(queue, **{"share.delivery.count.limit": "0"})
    state: dict[str, Any] = {"status": 500}
    async with (
        endpoint(lambda _: web.Response(status=state["status"])) as receiver,
        served(queue.running) as supervisor,
    ):
        await queue.set_hook(receiver.url)
        await queue.publish(*(b"%d" % n for n in range(50)))

        async def is_open() -> bool:
            health = supervisor.health(queue.name)
            return health is not None and health.state == "open"

        await eventually(is_open)
        state["status"] = 200
        await nothing_left(queue)
        health = supervisor.health(queue.name)
        assert health is not None
        assert health.state == "closed"
        assert health.delivered == 50


async def test_a_request_that_takes_too_long_has_failed(queue: Queue) -> None:
    await in_small_steps(queue)
    waits = [5.0, 0.0]

    async def slow_at_first(_: Got) -> web.StreamResponse:
        await asyncio.sleep(waits.pop(0) if waits else 0)
        return web.Response()

    async with endpoint(slow_at_first) as receiver, served(queue.running):
        await queue.set_hook(receiver.url, timeout_ms=200)
        await queue.publish(b"1")
        await receiver.has_got(2, within_s=12)  # its lock ends later
        await nothing_left(queue)


async def test_two_gateways_share_the_work_and_no_message_goes_out_twice(
    queue: Queue, start_gateway: StartGateway
) -> None:
    other = start_gateway([], webhooks_private=True)
    both_work = asyncio.Event()

    async def until_both_work(_: Got) -> web.StreamResponse:
        if receiver.at_once == 4:
            both_work.set()
        await both_work.wait()
        return web.Response()

    async with endpoint(until_both_work) as receiver, served(queue.running) as one, served(other) as two:
        await queue.set_hook(receiver.url, concurrency=2, timeout_ms=30_000)
        await queue.publish(*(b"%d" % n for n in range(200)))
        await nothing_left(queue)
        shares = [supervisor.health(queue.name) for supervisor in (one, two)]
    assert sorted(receiver.values, key=int) == [b"%d" % n for n in range(200)]
    assert all(share is not None and share.delivered for share in shares)


async def test_when_a_gateway_stops_another_goes_on_with_what_it_held(
    queue: Queue, start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Deliverer, "stop", partialmethod(Deliverer.stop, grace_s=0.2))
    other = start_gateway([], webhooks_private=True)
    first = True

    async def hang_once(_: Got) -> web.StreamResponse:
        nonlocal first
        if first:
            first = False
            await asyncio.sleep(30)
        return web.Response()

    async with endpoint(hang_once) as receiver:
        async with served(queue.running):
            await queue.set_hook(receiver.url, timeout_ms=30_000)
            await queue.publish(b"1")
            await receiver.has_got(1)
        async with served(other):
            await receiver.has_got(2)
            await nothing_left(queue)


async def test_a_web_hook_that_is_taken_away_gets_no_more(queue: Queue) -> None:
    async with endpoint() as receiver, served(queue.running) as supervisor:
        await queue.set_hook(receiver.url)
        await queue.publish(b"1")
        await nothing_left(queue)
        await queue.set_hook(receiver.url, enabled=False)

        async def is_gone() -> bool:
            return supervisor.health(queue.name) is None

        await eventually(is_gone)
        await queue.publish(b"2")
        assert await queue.pull() == [b"2"]
    assert receiver.values == [b"1"]


async def test_a_config_that_is_no_web_hook_is_left_alone(queue: Queue, gateway: RunningGateway) -> None:
    async with endpoint() as receiver, served(gateway):
        for text in (
            "{",
            '{"url": 1}',
            '{"url": "http://169.254.169.254/", "secret": "s", "verified": true}',
        ):
            await queue.in_gateway(gateway.gateway.directory.alter(queue.name, {"postroad.webhook": text}))
            await asyncio.sleep(0.2)
        await queue.set_hook(receiver.url)
        await queue.publish(b"1")
        await receiver.has_got(1)
