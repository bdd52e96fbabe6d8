"""Web hooks with a reply_topic: a message is accepted with the endpoint's answer, or not at all."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from postroad.client import TopicPartition, browse, offsets, topics
from postroad.client.offsets import READ_COMMITTED
from postroad.gateway import message_ids
from postroad.gateway.gateway import Message
from postroad.gateway.webhooks.sender import ANSWER_BYTES_MAX
from postroad.wire.header_names import IN_REPLY_TO
from tests.gateway.webhooks.conftest import Queue, eventually, served
from tests.gateway.webhooks.receivers import Got, endpoint
from tests.gateway.webhooks.test_delivery import in_small_steps, nothing_left


async def with_replies(queue: Queue, url: str, **config: str) -> TopicPartition:
    """A topic for answers, and the web hook set to it."""
    name = f"{queue.name}-answers"
    await queue.in_gateway(topics.create(queue.running.gateway.client, name, config=config))
    await queue.set_hook(url, reply_topic=name)
    return TopicPartition(name, 0)


async def committed(queue: Queue, part: TopicPartition) -> int:
    """The end of the log, once everything there is committed or aborted: markers follow a commit."""
    client, ends = queue.running.gateway.client, [0]

    async def is_stable() -> bool:
        stable = (await queue.in_gateway(offsets.latest(client, [part], READ_COMMITTED)))[part]
        ends[0] = (await queue.in_gateway(offsets.latest(client, [part])))[part]
        return bool(stable == ends[0])

    await eventually(is_stable)
    return ends[0]


async def answers(queue: Queue, part: TopicPartition, *where: int) -> list[Any]:
    records, _ = await queue.in_gateway(browse.read(queue.running.gateway.client, part, list(where)))
    return [records[offset] for offset in where]


def upper(got: Got) -> web.StreamResponse:
    return web.Response(body=got.body.upper(), content_type="text/plain")


async def test_an_answer_is_published_with_its_acknowledgement(queue: Queue) -> None:
    async with endpoint(upper) as receiver, served(queue.running):
        part = await with_replies(queue, receiver.url)
        await queue.publish(Message(b"hello", b"k"))
        await nothing_left(queue)
        assert len(receiver.got) == 1
    assert await committed(queue, part) == 2, "an answer and a marker"
    (answer,) = await answers(queue, part, 0)
    assert (answer.key, answer.value) == (b"k", b"HELLO")
    headers = dict(answer.headers)
    assert headers["content-type"].startswith(b"text/plain")
    assert headers[IN_REPLY_TO].decode() == receiver.got[0].headers["ce-id"]
    assert len(message_ids.read(headers[IN_REPLY_TO].decode())) == 3


async def test_an_answer_without_a_body_is_an_acknowledgement_alone(queue: Queue) -> None:
    async with endpoint() as receiver, served(queue.running):
        part = await with_replies(queue, receiver.url)
        await queue.publish(b"hello")
        await nothing_left(queue)
    assert await committed(queue, part) == 0


async def test_a_message_comes_again_where_its_answer_can_not_be_published(queue: Queue) -> None:
    """And it is answered once in the end."""
    sizes = [ANSWER_BYTES_MAX + 1, 3000, 10]

    def shrinking(_: Got) -> web.StreamResponse:
        return web.Response(body=b"x" * (sizes.pop(0) if len(sizes) > 1 else sizes[0]))

    async with endpoint(shrinking) as receiver, served(queue.running):
        await in_small_steps(queue)
        part = await with_replies(queue, receiver.url, **{"max.message.bytes": "2000"})
        await queue.publish(b"hello")
        await nothing_left(queue)
        assert [got.headers["Postroad-Attempt"] for got in receiver.got] == ["1", "2", "3"]
    end = await committed(queue, part)
    (answer,) = await answers(queue, part, end - 2)
    assert answer.value == b"x" * 10


async def test_a_failure_is_not_answered(queue: Queue) -> None:
    statuses = [500, 200]

    def failing_first(_: Got) -> web.StreamResponse:
        return web.Response(status=statuses.pop(0), body=b"answer")

    async with endpoint(failing_first) as receiver, served(queue.running):
        await in_small_steps(queue)
        part = await with_replies(queue, receiver.url)
        await queue.publish(b"hello")
        await nothing_left(queue)

    assert await committed(queue, part) == 2, "an answer and a marker"
