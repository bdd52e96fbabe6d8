"""The stream of a subscription, seen by the `websockets` package."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from postroad.gateway.gateway import Message
from tests.gateway.conftest import RunningGateway
from tests.gateway.push.conftest import Queue

SOON_S = 30.0
QUIET_S = 0.3  # long enough for a message that should not come to show up


async def say(socket: ClientConnection, type_: str, **fields: Any) -> None:
    await socket.send(json.dumps({"type": type_, **fields}))


async def hear(socket: ClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(SOON_S):
        frame: dict[str, Any] = json.loads(await socket.recv())
        return frame


async def hear_messages(socket: ClientConnection, count: int) -> list[dict[str, Any]]:
    frames = [await hear(socket) for _ in range(count)]
    assert {frame["type"] for frame in frames} <= {"message"}
    return frames


async def hears_nothing(socket: ClientConnection) -> bool:
    try:
        async with asyncio.timeout(QUIET_S):
            await socket.recv()
    except TimeoutError:
        return True
    return False


async def end_of(socket: ClientConnection) -> int:
    """The code of the close frame."""
    async with asyncio.timeout(SOON_S):
        await socket.wait_closed()
    return socket.close_code or 0


async def pull(queue: Queue, wait_ms: int = 0) -> list[bytes | None]:
    return await asyncio.to_thread(queue.pull, wait_ms)


async def publish(queue: Queue, *values: bytes | Message) -> None:
    await asyncio.to_thread(queue.publish, values)


async def test_messages_come_as_they_are_published_and_are_gone_when_accepted(queue: Queue) -> None:
    async with connect(queue.url) as socket:
        await say(socket, "credit", messages=10)
        await publish(queue, Message(b"hello", b"k", [("trace", b"a1"), ("none", None)], 1_767_225_600_000))
        frame = await hear(socket)
        assert frame == {
            "type": "message",
            "id": 1,
            "topic": queue.topic,
            "partition": 0,
            "offset": 0,
            "timestamp": 1_767_225_600_000,
            "attempt": 1,
            "key": "k",
            "value": "hello",
            "headers": [["trace", "a1"], ["none", None]],
        }
        await say(socket, "accept", ids=[1], request=5)
        assert await hear(socket) == {"type": "settled", "request": 5, "failed": []}
    assert await pull(queue) == []


async def test_never_more_than_the_credit_is_sent(queue: Queue) -> None:
    await publish(queue, *(b"%d" % n for n in range(50)))
    async with connect(queue.url) as socket:
        assert await hears_nothing(socket)
        for credit in (3, 1, 7):
            await say(socket, "credit", messages=credit)
            frames = await hear_messages(socket, credit)
            assert len(frames) == credit
            assert await hears_nothing(socket)


async def test_an_accept_frees_no_credit(queue: Queue) -> None:
    await publish(queue, b"1", b"2")
    async with connect(queue.url) as socket:
        await say(socket, "credit", messages=1)
        await hear_messages(socket, 1)
        await say(socket, "accept", ids=[1])
        assert await hears_nothing(socket)


async def test_what_was_not_accepted_is_released_when_the_connection_closes(queue: Queue) -> None:
    await publish(queue, b"done", b"held")
    async with connect(f"{queue.url}?credit=10") as socket:
        await hear_messages(socket, 2)
        await say(socket, "accept", ids=[1])  # no answer is waited for: it counts nevertheless
    assert await pull(queue, 20_000) == [b"held"]


async def test_a_broken_connection_releases_too(queue: Queue) -> None:
    await publish(queue, b"held")
    socket = await connect(f"{queue.url}?credit=10")
    await hear_messages(socket, 1)
    socket.transport.abort()
    assert await pull(queue, 20_000) == [b"held"]


async def test_released_messages_come_again_after_their_delay(queue: Queue) -> None:
    await publish(queue, b"1")
    async with connect(f"{queue.url}?credit=10") as socket:
        await hear_messages(socket, 1)
        began = asyncio.get_running_loop().time()
        await say(socket, "release", ids=[1], delay_ms=300)
        (again,) = await hear_messages(socket, 1)
        assert asyncio.get_running_loop().time() - began >= 0.29
        assert (again["id"], again["attempt"]) == (2, 2)


async def test_rejected_messages_do_not_come_again(queue: Queue) -> None:
    await publish(queue, b"1")
    async with connect(f"{queue.url}?credit=10") as socket:
        await hear_messages(socket, 1)
        await say(socket, "reject", ids=[1], request=1)
        assert (await hear(socket))["failed"] == []
        assert await hears_nothing(socket)


async def test_an_extended_lock_outlives_its_first_time_and_an_ended_one_is_told(
    gateway: RunningGateway, name: str
) -> None:
    async def is_extended(lock_ms: int) -> bool:
        """False if the lock ended before we came to extend it."""
        queue = Queue(gateway, f"{name}-{lock_ms}")
        await asyncio.to_thread(queue.create)
        await publish(queue, b"1", b"2")
        async with connect(f"{queue.url}?credit=2&lock_ms={lock_ms}") as socket:
            await hear_messages(socket, 2)
            await say(socket, "extend", ids=[2], lock_ms=60_000, request=1)
            extended = await hear(socket)
            if extended["type"] == "expired" or extended["failed"]:
                return False
            assert await hear(socket) == {"type": "expired", "ids": [1]}
            assert await pull(queue, 20_000) == [b"1"]
            await say(socket, "accept", ids=[1, 2], request=2)
            (failed,) = (await hear(socket))["failed"]
            assert failed["ids"] == [1]
            assert "Not held" in failed["error"]
        return True

    assert await is_extended(1000) or await is_extended(8000)


async def test_batches_come_in_one_frame(queue: Queue) -> None:
    await publish(queue, *(b"%d" % n for n in range(25)))
    async with connect(f"{queue.url}?credit=25&batch=10") as socket:
        values: list[str] = []
        while len(values) < 25:
            frame = await hear(socket)
            assert frame["type"] == "messages"
            assert 1 <= len(frame["messages"]) <= 10
            values += [message["value"] for message in frame["messages"]]
    assert values == [str(n) for n in range(25)]


async def test_receipts_settle_too_here_and_elsewhere(queue: Queue) -> None:
    await publish(queue, b"1", b"2")
    async with (
        connect(f"{queue.url}?credit=10&receipts=true") as socket,
        connect(queue.url) as other,
    ):
        first, second = await hear_messages(socket, 2)
        await say(socket, "accept", receipts=[first["receipt"]], request=1)
        assert (await hear(socket))["failed"] == []
        await say(other, "accept", receipts=[second["receipt"], "made-up"], request=2)
        (failed,) = (await hear(other))["failed"]
        assert failed["receipts"] == ["made-up"]
    assert await pull(queue) == []


async def test_bytes_that_are_no_text_come_in_base64(queue: Queue) -> None:
    await publish(queue, Message(b"\xff\x00", b"\xfe", [("h", b"\xfd")]), Message(None))
    async with connect(f"{queue.url}?credit=10") as socket:
        binary, empty = await hear_messages(socket, 2)
    assert (binary["value"], binary["key"]) == ({"base64": "/wA="}, {"base64": "/g=="})
    assert binary["headers"] == [["h", {"base64": "/Q=="}]]
    assert (empty["value"], empty["key"]) == (None, None)
    assert "headers" not in empty


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        "[]",
        '{"type": "fly"}',
        '{"type": "credit"}',
        '{"type": "credit", "messages": 0}',
        '{"type": "credit", "messages": -3}',
        '{"type": "credit", "messages": 100001}',
        '{"type": "credit", "messages": 1, "surprise": 2}',
        '{"type": "accept"}',
        '{"type": "accept", "ids": ["1"]}',
        '{"type": "release", "ids": [1], "delay_ms": -1}',
        "[" * 100_000,
        b"\x01\x00\x00\x00\x01",
    ],
)
async def test_a_frame_that_cant_be_read_is_answered_with_a_text_and_ends_the_connection(
    queue: Queue, frame: str | bytes
) -> None:
    async with connect(queue.url) as socket:
        await socket.send(frame)
        error = await hear(socket)
        assert error["type"] == "error"
        assert error["code"] == 4000
        assert await end_of(socket) == 4000


async def test_credit_that_adds_up_to_too_much_ends_the_connection(queue: Queue) -> None:
    async with connect(queue.url) as socket:
        await say(socket, "credit", messages=60_000)
        await say(socket, "credit", messages=60_000)
        assert "100,000" in (await hear(socket))["error"]
        assert await end_of(socket) == 4000


async def test_a_frame_beyond_a_mebibyte_ends_the_connection(queue: Queue) -> None:
    async with connect(queue.url) as socket:
        with suppress(ConnectionClosed):  # it may end before we have sent all of it
            await socket.send(" " * (1 << 20) + "{}")
        assert await end_of(socket) == 1009


@pytest.mark.parametrize(
    ("query", "status"),
    [("batch=0", 400), ("batch=x", 400), ("lock_ms=-1", 400), ("receipts=1", 400), ("credit=１", 400)],
)
async def test_wrong_options_are_refused(queue: Queue, query: str, status: int) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{queue.url}?{query}")
    assert refused.value.response.status_code == status


async def test_an_unknown_subscription_is_refused(queue: Queue) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(queue.url.replace(queue.name, "nobody-knows"))
    assert refused.value.response.status_code == 404


async def test_unknown_subprotocols_are_refused(queue: Queue) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(queue.url, subprotocols=["mqtt"])  # type: ignore[list-item]
    assert refused.value.response.status_code == 400


async def test_pages_from_elsewhere_may_not_connect(queue: Queue) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(queue.url, origin="https://elsewhere.example")  # type: ignore[arg-type]
    assert refused.value.response.status_code == 403
    async with connect(queue.url, origin=queue.running.url):  # type: ignore[arg-type]
        pass


async def test_the_stream_of_a_deleted_subscription_ends(queue: Queue) -> None:
    gateway = queue.running.gateway
    async with connect(queue.url) as socket:
        await asyncio.to_thread(
            queue.running.run, gateway.directory.alter(queue.name, {"postroad.topics": None})
        )
        await asyncio.to_thread(queue.running.run, gateway.directory.delete(queue.name))
        await say(socket, "credit", messages=1)
        assert queue.name in (await hear(socket))["error"]
        assert await end_of(socket) == 4004
