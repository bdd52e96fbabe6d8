"""Workers on a real node: each message has the fate that its job gave it, through all that goes wrong."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter

import msgspec
import pytest

import postroad
from postroad.client import Client, subscriptions
from postroad.testing import Node, node
from postroad.testing.ports import hold

from .conftest import header, records, until, working


class Job(msgspec.Struct):
    number: int


async def test_jobs_are_done_also_those_that_were_published_before_the_first_worker(
    app: postroad.App, name: str
) -> None:
    done: list[int] = []

    @app.worker(name, topic=name)
    async def work(job: Job) -> None:
        done.append(job.number)

    async with app:
        await app.publish(name, Job(0))
    async with working(app):
        await app.publish_many(name, map(Job, range(1, 100)))
        await until(lambda: len(done) >= 100)
    assert sorted(done) == list(range(100))


async def test_job_that_fails_comes_again_and_its_letter_has_the_error(app: postroad.App, name: str) -> None:
    attempts: list[int] = []

    @app.worker(name, attempts=3, backoff="10ms")
    async def work(job: Job, message: postroad.Message) -> None:
        attempts.append(message.attempt)
        raise ValueError("no such picture")

    async with working(app):
        await app.publish(name, Job(7), key="cat", headers={"shop": "1"})
        (letter,) = await records(app.bootstrap, f"{name}.dead", 1)
    assert attempts == [1, 2, 3]
    assert (letter.key, letter.value, header(letter, "shop")) == (b"cat", b'{"number":7}', "1")
    assert header(letter, "postroad-reason") == "ValueError: no such picture"
    assert header(letter, "postroad-dead-reason") == "attempts"


async def test_reject_and_payload_that_is_no_job_are_dead_letters_at_once(
    app: postroad.App, name: str
) -> None:
    @app.worker(name, attempts=5)
    async def work(job: Job) -> None:
        raise postroad.Reject(f"no such customer: {job.number}")

    async with working(app):
        await app.publish(name, Job(1))
        await app.publish(name, b"{")
        letters = await records(app.bootstrap, f"{name}.dead", 2)
    reasons = {letter.value: header(letter, "postroad-reason") for letter in letters}
    assert reasons[b'{"number":1}'] == "no such customer: 1"
    assert reasons[b"{"].startswith("can't be decoded: no Job: Input data was truncated")
    assert {header(letter, "postroad-dead-deliveries") for letter in letters} == {"1"}


async def test_retry_after_a_time_of_its_own(app: postroad.App, name: str) -> None:
    times: list[float] = []

    @app.worker(name, backoff="1h")
    async def work(job: Job, message: postroad.Message) -> None:
        times.append(time.monotonic())
        if message.attempt == 1:
            raise postroad.Retry("not yet", after="300ms")

    async with working(app):
        await app.publish(name, Job(1))
        await until(lambda: len(times) == 2)
    assert times[1] - times[0] >= 0.3


async def test_lock_is_renewed_while_a_job_runs(app: postroad.App, name: str) -> None:
    attempts: list[int] = []
    ended: list[int] = []

    @app.worker(name, lock="1s", concurrency=2)
    async def work(job: Job, message: postroad.Message) -> None:
        attempts.append(message.attempt)
        await asyncio.sleep(2.5)
        ended.append(job.number)

    async with working(app):
        await app.publish(name, Job(1))
        await until(lambda: bool(ended))
        await asyncio.sleep(0.2)
    assert attempts == [1]
    async with Client(app.bootstrap) as client:
        assert sum(each.lag for each in (await subscriptions.positions(client, name)).values()) == 0


async def test_job_that_blocks_the_loop_longer_than_its_lock_comes_again(
    app: postroad.App, name: str
) -> None:
    attempts: list[int] = []

    @app.worker(name, lock="1s", concurrency=1)
    async def work(job: Job, message: postroad.Message) -> None:
        attempts.append(message.attempt)
        if message.attempt == 1:
            time.sleep(2.5)  # noqa: ASYNC251  it hangs: nothing can renew its lock

    async with working(app):
        await app.publish(name, Job(1))
        await until(lambda: len(attempts) == 2)
    assert attempts == [1, 2]


async def test_plain_functions_run_in_threads_side_by_side(app: postroad.App, name: str) -> None:
    together = threading.Barrier(4)
    threads: set[str] = set()

    @app.worker(name, concurrency=4)
    def work(job: Job) -> None:
        together.wait(30)
        threads.add(threading.current_thread().name)

    async with working(app):
        await app.publish_many(name, map(Job, range(4)))
        await until(lambda: len(threads) == 4)


async def test_key_order_holds_with_many_jobs_at_once(app: postroad.App, name: str) -> None:
    done: dict[str, list[int]] = {}
    at_once: Counter[str] = Counter()
    most: Counter[str] = Counter()

    @app.worker(name, order="key", concurrency=8, backoff="10ms")
    async def work(job: Job, message: postroad.Message) -> None:
        key = message.key or ""
        at_once[key] += 1
        most[key] = max(most[key], at_once[key])
        await asyncio.sleep(0.001)
        at_once[key] -= 1
        if job.number % 7 == 3 and message.attempt == 1:
            raise OSError("away")
        done.setdefault(key, []).append(job.number)

    async with working(app):
        for number in range(20):
            for key in "abcde":
                await app.publish(name, Job(number), key=key)
        await until(lambda: sum(map(len, done.values())) == 100)
    assert done == {key: list(range(20)) for key in "abcde"}
    assert set(most.values()) == {1}


async def test_stop_finishes_what_runs_and_returns_the_rest_as_not_delivered(
    app: postroad.App, name: str
) -> None:
    begun: list[int] = []
    ended: list[int] = []
    may_end = asyncio.Event()

    @app.worker(name, concurrency=3)
    async def work(job: Job, message: postroad.Message) -> None:
        assert message.attempt == 1
        begun.append(job.number)
        await may_end.wait()
        ended.append(job.number)

    async with app:
        await app.publish_many(name, map(Job, range(50)))
        running = asyncio.create_task(app.work())
        await until(lambda: len(begun) == 3)
        app.stop()
        await asyncio.sleep(0.05)
        may_end.set()
        await running
    assert sorted(begun) == sorted(ended)
    assert len(begun) == 3
    async with working(app):
        await until(lambda: len(ended) == 50)
    assert sorted(ended) == list(range(50))


async def test_cancel_releases_what_runs(app: postroad.App, name: str) -> None:
    attempts: list[int] = []

    @app.worker(name)
    async def work(job: Job, message: postroad.Message) -> None:
        attempts.append(message.attempt)
        if message.attempt == 1:
            await asyncio.sleep(60)

    async with app:
        await app.publish(name, Job(1))
        running = asyncio.create_task(app.work())
        await until(lambda: attempts == [1])
        app.cancel()
        await running
    async with working(app):
        await until(lambda: len(attempts) > 1)
    assert attempts == [1, 2]


async def test_worker_that_may_not_go_on_says_why(app: postroad.App) -> None:
    @app.worker("x" * 300)
    async def work(job: Job) -> None: ...

    async with app:
        with pytest.raises(postroad.PostroadError):
            await app.work()


async def test_nothing_is_lost_when_the_node_is_killed_under_a_thousand_jobs() -> None:
    """Each job is done at least once, and the publisher's jobs are all there."""
    done: Counter[int] = Counter()
    held: set[int] = set()
    go_on = asyncio.Event()
    with node({"topics.partitions": 3}) as running:
        app = postroad.App(running.bootstrap, timeout="60s")

        @app.worker("all", topic="jobs", concurrency=1000)
        async def work(job: Job) -> None:
            held.add(job.number)
            await go_on.wait()
            done[job.number] += 1

        async with working(app):
            await app.publish_many("jobs", map(Job, range(1500)))
            await until(lambda: len(held) >= 1000, "1,000 jobs in flight")
            await asyncio.to_thread(running.kill)
            go_on.set()
            await asyncio.to_thread(running.start)
            await app.publish_many("jobs", map(Job, range(1500, 2000)))
            await until(lambda: len(done) == 2000, "all jobs are done")
            async with Client(running.bootstrap) as client:

                async def lag() -> int:
                    found = await subscriptions.positions(client, "all")
                    return sum(max(0, each.lag) for each in found.values())

                deadline = time.monotonic() + 60
                while await lag():
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.05)
    assert set(done) == set(range(2000))


async def test_publishing_without_a_node_says_so_at_once() -> None:
    with hold("127.0.0.1:0") as held:  # nobody else gets the port meanwhile
        address = f"127.0.0.1:{held.getsockname()[1]}"
        app = postroad.App(address, timeout="5s")
        with pytest.raises(postroad.PostroadError, match=f"nothing listens on {address}"):
            await app.publish("jobs", Job(1))


async def test_publishing_to_a_node_that_has_died_ends_within_its_timeout(postroad: Node) -> None:
    import postroad as api

    app = api.App(postroad.bootstrap, timeout="1s")
    async with app:
        await app.publish("jobs", Job(1))
        await asyncio.to_thread(postroad.kill)
        began = time.monotonic()
        with pytest.raises(api.PostroadError):
            await app.publish("jobs", Job(2))
        assert time.monotonic() - began < 20


async def test_transaction_of_a_worker_is_all_or_nothing(app: postroad.App, name: str) -> None:
    """What a job published, and that it is accepted, takes effect once, through aborts."""
    results = f"{name}-results"

    @app.worker(name, transaction=True, backoff="10ms", concurrency=4)
    async def work(job: Job, message: postroad.Message) -> None:
        message.publish(results, job.number)
        if job.number % 5 == 0 and message.attempt == 1:
            raise OSError("away")

    async with working(app):
        await app.publish_many(name, map(Job, range(100)))
        stream = app.subscribe(results, group=f"{name}-readers", of=int)
        found = [(await anext(stream)).value for _ in range(100)]
        assert sorted(found) == list(range(100))
        async with Client(app.bootstrap) as client:
            deadline = time.monotonic() + 30
            while sum(each.lag for each in (await subscriptions.positions(client, name)).values()):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)


async def test_records_of_a_stream_that_were_not_handled_come_again(app: postroad.App, name: str) -> None:
    async with app:
        await app.publish_many(name, map(Job, range(10)))
        async with app.subscribe(name, group=name, of=Job) as stream:
            first = [(await anext(stream)).value.number for _ in range(4)]
        async with app.subscribe(name, group=name, of=Job) as stream:
            rest = [(await anext(stream)).value.number for _ in range(7)]
    assert first == [0, 1, 2, 3]
    assert rest == [3, 4, 5, 6, 7, 8, 9]


async def test_messages_are_received_by_calls(app: postroad.App, name: str) -> None:
    async with app:
        await app.publish_many(name, map(Job, range(4)))
        async with app.receive(name, of=Job, backoff="10ms", attempts=3) as messages:
            seen: list[tuple[int, int]] = []
            async for message in messages:
                seen.append((message.value.number, message.attempt))
                if message.value.number == 1 and message.attempt == 1:
                    message.retry("later")
                elif message.value.number == 2:
                    message.reject("never")
                else:
                    async with message:
                        if message.value.number == 3 and message.attempt == 1:
                            raise postroad.Retry
                if len(seen) == 6:
                    break
            assert await messages.next(0.05) is None
        assert sorted(seen) == [(0, 1), (1, 1), (1, 2), (2, 1), (3, 1), (3, 2)]
        (letter,) = await records(app.bootstrap, f"{name}.dead", 1)
    assert header(letter, "postroad-reason") == "never"


async def test_what_is_held_when_a_receiver_ends_comes_again_to_the_next_one(
    app: postroad.App, name: str
) -> None:
    """It is released while a fetch is under way, which brings it once more when nobody takes it."""
    async with app, asyncio.timeout(60):
        await app.publish_many(name, map(Job, range(3)))
        async with app.receive(name, of=Job) as messages:
            (await anext(messages)).accept()
        async with app.receive(name, of=Job) as messages:
            left = [(await anext(messages)).value.number for _ in range(2)]
    assert sorted(left) == [1, 2]
