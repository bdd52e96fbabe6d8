"""Workers without a node: what a job's end means, with delays, retries and dead letters, in no time."""

from __future__ import annotations

import dataclasses
import typing
from datetime import timedelta
from typing import Any

import msgspec
import pytest

import postroad
from postroad.testing import workers


class Job(msgspec.Struct):
    name: str
    size: int = 1


@pytest.fixture
def app() -> postroad.App:
    return postroad.App()


async def test_job_arrives_as_the_type_that_the_worker_asks_for(app: postroad.App) -> None:
    done: list[Any] = []

    @app.worker("resize", topic="jobs")
    async def resize(job: Job) -> None:
        done.append(job)

    async with workers(app) as run:
        await app.publish("jobs", Job("cat.jpg", 3))
        await app.publish("jobs", {"name": "dog.jpg"})
        await app.publish("jobs", '{"name": "cow.jpg"}')
        await run.until_idle()
    assert done == [Job("cat.jpg", 3), Job("dog.jpg"), Job("cow.jpg")]


async def test_job_that_fails_comes_again_after_its_backoff_and_dies_with_its_error(
    app: postroad.App,
) -> None:
    tries: list[tuple[int, float]] = []

    @app.worker("resize", topic="jobs", attempts=3, backoff="10s")
    async def resize(job: Job, message: postroad.Message) -> None:
        tries.append((message.attempt, (run.now - began).total_seconds()))
        raise ValueError("no such picture")

    async with workers(app) as run:
        began = run.now
        await app.publish("jobs", Job("cat.jpg"), key="cat", headers={"shop": "1"})
        assert await run.until_idle() == 3
        assert tries == [(1, 0), (2, 10), (3, 30)]
        (letter,) = run.dead("resize")
    assert letter.reason == "ValueError: no such picture"
    assert (letter.key, letter.headers["shop"]) == ("cat", "1")
    assert letter.headers["postroad-dead-reason"] == "attempts"


async def test_retry_after_a_while_of_its_own(app: postroad.App) -> None:
    times: list[timedelta] = []

    @app.worker("poll", topic="jobs", backoff="1s")
    async def poll(job: bytes, message: postroad.Message) -> None:
        times.append(run.now - began)
        if message.attempt < 3:
            raise postroad.Retry("not ready", after="15m")

    async with workers(app) as run:
        began = run.now
        await app.publish("jobs", b"x")
        await run.until_idle()
        assert run.dead("poll") == []
    assert times == [timedelta(0), timedelta(minutes=15), timedelta(minutes=30)]


async def test_rejected_job_is_dead_at_once_with_the_reason(app: postroad.App) -> None:
    @app.worker("pay", topic="orders")
    async def pay(order: dict[str, int]) -> None:
        raise postroad.Reject("no such customer")

    async with workers(app) as run:
        await app.publish("orders", {"customer": 1})
        assert await run.until_idle() == 1
        (letter,) = run.dead("pay")
    assert letter.reason == "no such customer"
    assert letter.headers["postroad-dead-reason"] == "rejected"


@pytest.mark.parametrize("payload", [b"{", b'{"nom": 1}', b"\xff", None])
async def test_job_that_can_not_be_decoded_is_dead_at_once(app: postroad.App, payload: bytes | None) -> None:
    @app.worker("resize", topic="jobs", attempts=5)
    async def resize(job: Job) -> None:
        raise AssertionError("it has no job")

    async with workers(app) as run:
        await app.publish("jobs", payload)
        assert await run.until_idle() == 1
        (letter,) = run.dead("resize")
    assert letter.reason.startswith("can't be decoded: no Job: ")


async def test_delayed_job_waits_and_expired_job_dies(app: postroad.App) -> None:
    done: list[str] = []

    @app.worker("mail", topic="mails")
    def mail(to: str) -> None:
        done.append(to)

    async with workers(app) as run:
        await app.publish("mails", "later", delay="1h")
        await app.publish("mails", "at", at=run.now + timedelta(minutes=30))
        await app.publish("mails", "now")
        await app.publish("mails", "stale", delay="2h", expires="1h")
        assert await run.due() == 1
        assert done == ["now"]
        assert await run.pass_time("45m") == 1
        assert done == ["now", "at"]
        await run.until_idle()
        assert done == ["now", "at", "later"]
        assert [(letter.payload, letter.reason) for letter in run.dead("mail")] == [(b"stale", "expired")]


async def test_order_by_key_holds_through_retries(app: postroad.App) -> None:
    done: list[str] = []

    @app.worker("ledger", topic="bookings", order="key", backoff="1m", concurrency=5)
    async def ledger(booking: str, message: postroad.Message) -> None:
        if booking == "a1" and message.attempt == 1:
            raise OSError("away")
        done.append(booking)

    async with workers(app) as run:
        for booking in ("a1", "a2", "b1", "a3", "b2"):
            await app.publish("bookings", booking, key=booking[0])
        await run.until_idle()
    assert done == ["b1", "b2", "a1", "a2", "a3"]


async def test_what_a_message_publishes_is_there_only_if_the_worker_returned(app: postroad.App) -> None:
    @app.worker("bill", topic="orders", transaction=True, attempts=2)
    async def bill(order: str, message: postroad.Message) -> None:
        message.publish("invoices", f"{order} {message.attempt}")
        if order == "never" or message.attempt == 1:
            raise OSError("away")

    async with workers(app) as run:
        await app.publish("orders", "one")
        await app.publish("orders", "never")
        await run.until_idle()
        assert [each.payload for each in run.published("invoices")] == [b"one 2"]


async def test_middleware_is_around_jobs_and_publishing(app: postroad.App) -> None:
    seen: list[str] = []

    class Tell(postroad.Middleware):
        def __init__(self, name: str) -> None:
            self.name = name

        async def work(self, message: postroad.Message, call_next: Any) -> None:
            seen.append(f"{self.name} before {message.headers['tag']}")
            await call_next()
            seen.append(f"{self.name} after")

        async def publish(self, outgoing: postroad.Outgoing, call_next: Any) -> None:
            await call_next(outgoing.with_header("tag", self.name))

    app.add_middleware(Tell("outer"))
    app.add_middleware(Tell("inner"))

    @app.worker("jobs")
    async def work(job: str) -> None:
        seen.append(job)

    async with workers(app) as run:
        await app.publish("jobs", "a job")
        await run.until_idle()
    assert seen == ["outer before inner", "inner before inner", "a job", "inner after", "outer after"]


async def test_job_that_takes_longer_than_its_timeout_comes_again(app: postroad.App) -> None:
    import asyncio

    @app.worker("slow", topic="jobs", timeout="10ms", attempts=2)
    async def slow(job: str) -> None:
        await asyncio.sleep(60)

    async with workers(app) as run:
        await app.publish("jobs", "x")
        assert await run.until_idle() == 2
        assert [letter.reason for letter in run.dead("slow")] == ["TimeoutError: not done within 0.01 s"]


@dataclasses.dataclass
class Point:
    x: int
    y: int


async def test_dataclasses_and_plain_values_are_payloads(app: postroad.App) -> None:
    done: list[Any] = []

    @app.worker("points")
    def points(point: Point) -> None:
        done.append(point)

    @app.worker("anything")
    def anything(value) -> None:  # type: ignore[no-untyped-def]
        done.append(value)

    @app.worker("messages", topic="anything")
    async def messages(message: postroad.Message) -> None:
        done.append((message.payload, message.id))

    async with workers(app) as run:
        await app.publish("points", Point(1, 2))
        await app.publish("anything", [1, None, "x"], id="seven")
        await run.until_idle()
    assert done == [Point(1, 2), [1, None, "x"], (b'[1,null,"x"]', "seven")]


@pytest.mark.parametrize("kind", [Point | None, dict | None, str | None, bytes | None])
async def test_message_without_a_payload_is_none_where_the_type_says_so(app: postroad.App, kind: Any) -> None:
    done: list[Any] = []

    async def change(value: Any) -> None:
        done.append(value)

    change.__annotations__["value"] = kind
    app.worker("changes")(change)
    rest = typing.get_args(kind)[0]
    given = {Point: Point(1, 2), dict: {"x": 1}, str: "null", bytes: b"null"}[rest]
    async with workers(app) as run:
        await app.publish("changes", given)
        await app.publish("changes", None)
        await run.until_idle()
    assert done == [given, None]


async def test_workers_that_publish_for_each_other_without_end_are_stopped(
    app: postroad.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.testing.worker_runs.DELIVERIES_MAX", 50)

    @app.worker("echo")
    async def echo(word: str) -> None:
        await app.publish("echo", word)

    async with workers(app) as run:
        await app.publish("echo", "hello")
        with pytest.raises(AssertionError, match="there is still work after 50 deliveries"):
            await run.until_idle()
