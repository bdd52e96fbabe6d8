"""What all dialects share: publish, receive and settle, at one gateway or at several."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from postroad.client.producer import Sent
from postroad.client.share_message import AckType
from postroad.errors import GroupIdNotFound, InvalidRecordState
from postroad.gateway.gateway import Message
from postroad.gateway.receipts import Receipt, Receipts, WrongReceipt
from postroad.gateway.receiver import Received

from .conftest import RunningGateway, StartGateway


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([])


@pytest.fixture(scope="module")
def other(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([])


@pytest.fixture
def queue(gateway: RunningGateway, name: str) -> str:
    """A topic with a subscription of the same name."""
    config = {"share.auto.offset.reset": "earliest"}
    gateway.run(gateway.gateway.client.topic(name, create=True))
    gateway.run(gateway.gateway.directory.create(name, [name], config))
    return name


def publish(gateway: RunningGateway, topic: str, *values: bytes) -> list[int]:
    sent = gateway.run(gateway.gateway.publish(topic, [Message(value) for value in values]))
    offsets = []
    for place in sent:
        assert isinstance(place, Sent), place
        offsets.append(place.offset)
    return offsets


def receive(
    gateway: RunningGateway, queue: str, count: int = 10, wait_ms: int = 10_000, lock_ms: int | None = None
) -> list[Received]:
    return gateway.run(gateway.gateway.receive(queue, count, wait_ms, lock_ms))


def settle(gateway: RunningGateway, received: list[Received], type_: AckType, **more: Any) -> list[object]:
    receipts = [each.receipt for each in received]
    return list(gateway.run(gateway.gateway.settle(receipts, type_, **more)))


def values(received: list[Received]) -> list[bytes | None]:
    return [each.message.value for each in received]


def test_published_message_is_received_until_it_is_accepted(gateway: RunningGateway, queue: str) -> None:
    assert publish(gateway, queue, b"a", b"b") == [0, 1]
    received = receive(gateway, queue, lock_ms=60_000)
    assert values(received) == [b"a", b"b"]
    assert receive(gateway, queue, wait_ms=0) == []
    assert settle(gateway, received[:1], AckType.ACCEPT) == [None]
    assert settle(gateway, received[1:], AckType.RELEASE, delay_ms=0) == [None]
    (again,) = receive(gateway, queue)
    assert (again.message.value, again.message.delivery_count) == (b"b", 2)


def test_never_more_than_asked_for(gateway: RunningGateway, queue: str) -> None:
    publish(gateway, queue, *(b"%d" % n for n in range(7)))
    assert [len(receive(gateway, queue, 3)) for _ in range(3)] == [3, 3, 1]


def test_empty_queue_is_answered_at_once_without_a_wait_and_late_with_one(
    gateway: RunningGateway, queue: str
) -> None:
    def took(wait_ms: int) -> float:
        began = time.monotonic()
        assert receive(gateway, queue, wait_ms=wait_ms) == []
        return time.monotonic() - began

    assert min(took(0) for _ in range(5)) < 0.5
    assert 0.25 < took(300) < 8


def test_short_receive_is_not_held_up_by_a_long_one(gateway: RunningGateway, queue: str) -> None:
    async def both() -> float:
        long = asyncio.ensure_future(gateway.gateway.receive(queue, 1, 30_000))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        for _ in range(10):  # each would wait for a request that is under way, which takes a second
            assert await gateway.gateway.receive(queue, 1, 0) == []
        took = time.monotonic() - began
        await gateway.gateway.publish(queue, [Message(b"x")])
        assert values(await long) == [b"x"]
        return took

    assert gateway.run(both()) < 5


def test_long_receive_wakes_as_soon_as_a_message_comes(gateway: RunningGateway, queue: str) -> None:
    async def waits() -> float:
        waiting = asyncio.ensure_future(gateway.gateway.receive(queue, 1, 20_000))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        await gateway.gateway.publish(queue, [Message(b"x")])
        assert values(await waiting) == [b"x"]
        return time.monotonic() - began

    assert any(gateway.run(waits()) < 0.05 for _ in range(10)), "0.7 s later it asks again anyway"


def test_each_message_goes_to_one_of_many_that_wait(gateway: RunningGateway, queue: str) -> None:
    async def many() -> list[bytes | None]:
        waiting = [asyncio.ensure_future(gateway.gateway.receive(queue, 2, 20_000)) for _ in range(20)]
        await asyncio.sleep(0.1)
        await gateway.gateway.publish(queue, [Message(b"%d" % n) for n in range(40)])
        got = [each for received in await asyncio.gather(*waiting) for each in received]
        while len(got) < 40:  # some may have got one only, when it came before the others
            more = await gateway.gateway.receive(queue, 40, 10_000)
            assert more, f"only {len(got)} came"
            got += more
        return values(got)

    assert sorted(gateway.run(many()), key=lambda value: int(value or b"")) == [b"%d" % n for n in range(40)]


def test_message_that_came_for_nobody_is_there_for_the_next(gateway: RunningGateway, queue: str) -> None:
    async def gives_up() -> list[Received]:
        waiting = asyncio.ensure_future(gateway.gateway.receive(queue, 1, 5000))
        await asyncio.sleep(0.2)
        waiting.cancel()
        await gateway.gateway.publish(queue, [Message(b"x")])
        return await gateway.gateway.receive(queue, 1, 10_000)

    assert values(gateway.run(gives_up())) == [b"x"]


def test_returned_message_goes_to_who_waits_as_if_nobody_had_had_it(
    gateway: RunningGateway, name: str
) -> None:
    config = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "2"}
    gateway.run(gateway.gateway.client.topic(name, create=True))
    gateway.run(gateway.gateway.directory.create(name, [name], config))
    publish(gateway, name, b"x")

    async def returned() -> tuple[list[Received], float]:
        got = await gateway.gateway.receive(name, 1, 10_000)
        waiting = asyncio.ensure_future(gateway.gateway.receive(name, 1, 20_000))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        assert await gateway.gateway.settle([got[0].receipt], AckType.RETURN) == [None]
        return await waiting, time.monotonic() - began

    took: list[float] = []
    for _ in range(5):
        (again,), took_s = gateway.run(returned())
        took.append(took_s)
        assert (again.message.value, again.message.delivery_count) == (b"x", 1)
        assert settle(gateway, [again], AckType.RETURN) == [None]
    assert min(took) < 0.5, "0.9 s later it asks again anyway"


def test_receivers_may_want_different_locks(gateway: RunningGateway, queue: str) -> None:
    async def two() -> tuple[list[Received], list[Received]]:
        short = asyncio.ensure_future(gateway.gateway.receive(queue, 1, 20_000, 400))
        long = asyncio.ensure_future(gateway.gateway.receive(queue, 1, 20_000, 60_000))
        await asyncio.sleep(0.1)
        await gateway.gateway.publish(queue, [Message(b"a"), Message(b"b")])
        return await short, await long

    short, long = gateway.run(two())
    (again,) = receive(gateway, queue)
    assert again.message.value == short[0].message.value, "only the short lock has ended"
    assert settle(gateway, long, AckType.ACCEPT) == [None]


def test_any_gateway_settles_what_another_received(
    gateway: RunningGateway, other: RunningGateway, queue: str
) -> None:
    publish(gateway, queue, b"a", b"b")
    received = receive(gateway, queue, lock_ms=60_000)
    assert settle(other, received[:1], AckType.ACCEPT) == [None]
    assert settle(other, received[1:], AckType.RELEASE, delay_ms=0) == [None]
    assert values(receive(other, queue)) == [b"b"]


def test_receipt_of_an_earlier_delivery_opens_nothing(gateway: RunningGateway, queue: str) -> None:
    publish(gateway, queue, b"a")
    first = receive(gateway, queue, lock_ms=200)
    second = receive(gateway, queue, lock_ms=60_000)
    (error,) = settle(gateway, first, AckType.ACCEPT)
    assert isinstance(error, InvalidRecordState)
    assert settle(gateway, second, AckType.ACCEPT) == [None]


def test_one_stale_receipt_does_not_spoil_the_others(gateway: RunningGateway, queue: str) -> None:
    publish(gateway, queue, b"a", b"b", b"c")
    received = receive(gateway, queue, lock_ms=60_000)
    assert settle(gateway, received[1:2], AckType.ACCEPT) == [None]
    errors = settle(gateway, received, AckType.ACCEPT)
    assert [type(error) for error in errors] == [type(None), InvalidRecordState, type(None)]


def test_lock_is_extended_by_a_renewal(gateway: RunningGateway, queue: str) -> None:
    publish(gateway, queue, b"a")
    for lock_ms in (400, 2000, 10_000):  # a short one may end before we come to renew it
        received = receive(gateway, queue, wait_ms=20_000, lock_ms=lock_ms)
        renewed = settle(gateway, received, AckType.RENEW, lock_ms=60_000)
        if renewed == [None]:
            break
    assert renewed == [None]
    assert receive(gateway, queue, wait_ms=2 * lock_ms) == []
    assert settle(gateway, received, AckType.ACCEPT) == [None]


def test_subscription_that_does_not_exist_is_said_to(gateway: RunningGateway, name: str) -> None:
    with pytest.raises(GroupIdNotFound):
        receive(gateway, name, wait_ms=0)


def test_locks_outlive_their_gateway(
    start_gateway: StartGateway, gateway: RunningGateway, queue: str
) -> None:
    publish(gateway, queue, b"a")
    dying = start_gateway([])
    received = receive(dying, queue, lock_ms=60_000)
    dying.run(dying.gateway.__aexit__())
    assert receive(gateway, queue, wait_ms=300) == []
    assert settle(gateway, received, AckType.ACCEPT) == [None]


RECEIPT = Receipt("workers", b"t" * 16, 3, 1 << 40, b"o" * 16, 7)


def test_receipt_is_read_as_it_was_written_by_any_gateway_with_the_key() -> None:
    text = Receipts(b"key").write(RECEIPT)
    assert Receipts(b"key").read(text) == RECEIPT
    assert text.isascii()


@pytest.mark.parametrize(
    "bend",
    [
        lambda text: text[:-1],
        lambda text: text + "A",
        lambda text: text[:5] + ("A" if text[5] != "A" else "B") + text[6:],
        lambda text: "",
        lambda text: "é" + text,
        lambda text: "A" * 5000,
        lambda text: Receipts(b"another key").write(RECEIPT),
    ],
)
def test_receipt_that_was_made_up_or_bent_is_refused(bend: Callable[[str], str]) -> None:
    with pytest.raises(WrongReceipt):
        Receipts(b"key").read(bend(Receipts(b"key").write(RECEIPT)))
