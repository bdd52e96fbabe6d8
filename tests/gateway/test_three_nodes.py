"""A gateway in front of three nodes: its clients go on when one dies, and what was deleted stays so (S4)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from websockets.asyncio.client import connect as connect_websocket

from postroad.testing import RunningCluster, cluster
from postroad.testing.process import Setting
from tests.clients.wait import until
from tests.faults import sqs_load
from tests.faults.load import running_threads
from tests.faults.sqs_load import VISIBILITY_S, Ledger, Receiver, Sender
from tests.gateway.sqs.conftest import attributes_of, connect
from tests.gateway.test_celery import Tasks
from tests.gateway.webhooks.receivers import endpoint, fine

SETTINGS: dict[str, Setting] = {
    "topics.replicas": 3,
    "topics.partitions": 3,
    "http.enabled": True,
    "http.webhooks_private": True,
}
PATIENCE_S = 90.0
LOAD = 40  # messages before and after each fault
RETRIABLE = 500  # and above: an SDK tries again by itself


@contextmanager
def gateway_of_three(directory: Path) -> Iterator[RunningCluster]:
    with cluster(nodes=3, settings=SETTINGS, directory=directory) as running:
        yield running
        log = (directory / "gateway.log").read_text()
        assert "Traceback" not in log, log


class Load:
    """Senders and receivers of a standard queue and of a FIFO queue; each call is tried by hand."""

    def __init__(self, http: str) -> None:
        self.sqs = sqs_load.client(http)
        self.ledgers = {name: Ledger() for name in ("load", "load.fifo")}
        self.queues = {name: self._create(name) for name in self.ledgers}

    def _create(self, name: str) -> str:
        attributes = {"VisibilityTimeout": str(VISIBILITY_S)}
        if name.endswith(".fifo"):
            attributes["FifoQueue"] = "true"
        url: str = self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return url

    @contextmanager
    def running(self) -> Iterator[None]:
        """Until the block ends; then all that was sent is received, and nothing is left."""
        receivers = [Receiver(self.sqs, self.queues[name], ledger) for name, ledger in self.ledgers.items()]
        senders = [Sender(self.sqs, self.queues[name], "s", ledger) for name, ledger in self.ledgers.items()]
        with running_threads(*receivers):
            with running_threads(*senders):
                yield
            for name, ledger in self.ledgers.items():
                until(partial(ledger.sent.issubset, ledger.worked_on), f"{name}: all came", PATIENCE_S)
                until(partial(self._is_empty, name), f"{name} is empty", PATIENCE_S)

    def _is_empty(self, name: str) -> bool:
        return self.left(name) == 0

    def left(self, name: str) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answered = sqs_load.attempt(
            self.sqs.get_queue_attributes, QueueUrl=self.queues[name], AttributeNames=names
        )
        return sum(int(answered["Attributes"][each]) for each in names) if answered else -1

    def wait(self) -> None:
        """Every queue has taken and given some more."""
        for ledger in self.ledgers.values():
            until(partial(_has, ledger.sent, len(ledger.sent) + LOAD), "messages are sent", PATIENCE_S)
            until(partial(_has, ledger.deleted, len(ledger.deleted) + LOAD // 2), "deleted", PATIENCE_S)

    def check(self) -> None:
        for ledger in self.ledgers.values():
            assert ledger.came_back == []
            assert [body for body, ids in ledger.ids.items() if len(ids) > 1] == [], "sent once, stored twice"
        assert self.ledgers["load.fifo"].overtook == []


def _has(found: Sized, count: int) -> bool:
    return len(found) >= count


def test_queues_go_on_when_a_node_dies(tmp_path: Path) -> None:
    with gateway_of_three(tmp_path) as running:
        load = Load(running.http)
        with load.running():
            load.wait()
            running.leader("load.fifo").kill()
            load.wait()
    load.check()


@pytest.mark.slow
@pytest.mark.cluster_slow
@pytest.mark.parametrize("how", ["kill", "stop", "pause"])
def test_queues_go_on_while_nodes_come_and_go(tmp_path: Path, how: str) -> None:
    with gateway_of_three(tmp_path) as running:
        load = Load(running.http)
        with load.running():
            for node in running.nodes:
                running.wait_until_whole()
                load.wait()
                getattr(node, how)()
                load.wait()
                if how == "pause":
                    node.resume()
                else:
                    node.start()
    load.check()


@pytest.mark.slow
@pytest.mark.cluster_slow
def test_the_gateway_of_several_nodes_in_one_command_goes_on_when_nodes_die(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "postroad", "serve", "--nodes", "3", "--replicas", "3"]
    command += ["--data", str(tmp_path / "data"), "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    command += ["--ready-file", str(ready)]
    with (tmp_path / "log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as parent:
        try:
            until(ready.exists, "the nodes are ready", PATIENCE_S)
            load = Load(f"http://{json.loads(ready.read_bytes())['http']}")
            with load.running():
                for number in (1, 2, 3):
                    load.wait()
                    lock = tmp_path / f"data/node-{number}/lock"
                    before = int(lock.read_text())
                    os.kill(before, signal.SIGKILL)
                    until(partial(_is_started_again, lock, before), "it is started again", PATIENCE_S)
        finally:
            parent.terminate()
            parent.wait(PATIENCE_S)
    load.check()


def _is_started_again(lock: Path, before: int) -> bool:
    return int(lock.read_text() or before) != before


@pytest.mark.slow
@pytest.mark.cluster_slow
def test_dead_letters_are_moved_back_and_queues_purged_while_nodes_die(tmp_path: Path) -> None:
    with gateway_of_three(tmp_path) as running:
        sqs = connect(running.http)
        dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
        arn = attributes_of(sqs, dead)["QueueArn"]
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "1"})
        given = {"RedrivePolicy": policy, "VisibilityTimeout": "1"}
        work = sqs.create_queue(QueueName="work", Attributes=given)["QueueUrl"]
        bodies = {f"m{number}" for number in range(30)}
        for first in range(0, 30, 10):
            entries = [{"Id": str(n), "MessageBody": f"m{first + n}"} for n in range(10)]
            assert len(sqs.send_message_batch(QueueUrl=work, Entries=entries)["Successful"]) == 10
        running.wait_until_whole()
        with one_node_dead(running, "work"):
            until(lambda: have_died(sqs, work, dead) >= 30, "all died", PATIENCE_S)
        with one_node_dead(running, "dead"):
            sqs.start_message_move_task(SourceArn=arn)
        until(lambda: moved(sqs, arn)["Status"] == "COMPLETED", "the move has ended", PATIENCE_S)
        assert moved(sqs, arn)["ApproximateNumberOfMessagesMoved"] >= 30
        seen: set[str] = set()
        while seen != bodies:
            came = until(lambda: receive(sqs, work), "all are back", PATIENCE_S)
            seen.update(came)
        with one_node_dead(running, "work"):
            sqs.purge_queue(QueueUrl=dead)
            assert receive(sqs, dead) == []


def receive(sqs: Any, queue: str) -> list[str]:
    """The bodies of messages that are not deleted."""
    answer = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1)
    return [message["Body"] for message in answer.get("Messages", [])]


def have_died(sqs: Any, queue: str, dead: str) -> int:
    """How many messages of the queue are among the dead letters, after some more were received."""
    receive(sqs, queue)
    return int(attributes_of(sqs, dead)["ApproximateNumberOfMessages"])


def moved(sqs: Any, arn: str) -> dict[str, Any]:
    task: dict[str, Any] = sqs.list_message_move_tasks(SourceArn=arn)["Results"][0]
    return task


@contextmanager
def one_node_dead(running: RunningCluster, topic: str, partition: int = 0) -> Iterator[None]:
    """The leader of the partition is killed, and comes back after the block."""
    node = running.leader(topic, partition)
    node.kill()
    yield
    node.start()
    running.wait_until_whole()


@pytest.mark.slow
@pytest.mark.cluster_slow
def test_a_duplicate_is_known_after_a_change_of_the_leader_at_any_gateway(tmp_path: Path) -> None:
    with gateway_of_three(tmp_path) as running, another_gateway(running, tmp_path) as second:
        sqs, elsewhere = connect(running.http), connect(second)
        queue = sqs.create_queue(QueueName="once.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
        same = {"MessageBody": "one", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
        first = sqs.send_message(QueueUrl=queue, **same)
        running.wait_until_whole()
        with one_node_dead(running, "once.fifo"):
            again = sqs.send_message(QueueUrl=queue, **same)
            assert (again["MessageId"], again["SequenceNumber"]) == (
                first["MessageId"],
                first["SequenceNumber"],
            )
            there = elsewhere.get_queue_url(QueueName="once.fifo")["QueueUrl"]
            elsewhere.send_message(QueueUrl=there, **same)
            [message] = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=10)["Messages"]
        with one_node_dead(running, "once.fifo"):
            elsewhere.delete_message(QueueUrl=there, ReceiptHandle=message["ReceiptHandle"])
            assert receive(sqs, queue) == [], "neither the first nor a duplicate"


@contextmanager
def another_gateway(running: RunningCluster, home: Path) -> Iterator[str]:
    ready = home / "second.json"
    command = [sys.executable, "-m", "postroad", "gateway", "--bootstrap", running.bootstrap]
    command += ["--http", "127.0.0.1:0", "--ready-file", str(ready)]
    with (
        (home / "second.log").open("ab") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            until(ready.exists, "the second gateway is ready", PATIENCE_S)
            yield f"http://{json.loads(ready.read_bytes())['http']}"
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@pytest.mark.slow
@pytest.mark.cluster_slow
def test_rest_streams_and_web_hooks_go_on_while_nodes_die(tmp_path: Path) -> None:
    with gateway_of_three(tmp_path) as running:
        asyncio.run(_rest_streams_and_web_hooks(running))


async def _rest_streams_and_web_hooks(running: RunningCluster) -> None:
    """One topic and three subscriptions: pulled, streamed and pushed to an endpoint."""
    async with aiohttp.ClientSession(running.http) as http, endpoint(fine) as hooked:
        await post(http, "/v1/topics", {"name": "jobs", "partitions": 3})
        for name in ("pulled", "streamed", "pushed"):
            await post(http, "/v1/subscriptions", {"name": name, "topics": ["jobs"]})
        hook = {"url": hooked.url}
        async with http.put("/v1/subscriptions/pushed/webhook", json=hook) as answer:
            assert answer.status in (200, 201), await answer.text()
        await asyncio.to_thread(running.wait_until_whole)
        done = asyncio.Event()
        pulled: list[str] = []
        streamed: list[str] = []
        tasks = [
            asyncio.create_task(_pull(http, pulled, done)),
            asyncio.create_task(_stream(running.http, streamed, done)),
        ]
        sent: set[str] = set()
        for number in range(3):
            node = running.nodes[number]
            for _ in range(40):
                value = str(len(sent))
                await post(http, "/v1/topics/jobs/messages", {"value": value, "key": value})
                sent.add(value)
                if len(sent) % 40 == 20:
                    await asyncio.to_thread(node.kill)
            await asyncio.to_thread(node.start)
            await asyncio.to_thread(running.wait_until_whole)

        def all_came() -> bool:
            return all(
                sent <= set(found) for found in (pulled, streamed, [v.decode() for v in hooked.values])
            )

        deadline = time.monotonic() + PATIENCE_S
        while not all_came() and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        done.set()
        await asyncio.gather(*tasks)
        assert all_came(), [sorted(sent - set(found))[:5] for found in (pulled, streamed)]


async def post(http: aiohttp.ClientSession, path: str, body: Any) -> Any:
    """Tried again as long as the answer says that it may be."""
    for _ in range(20):
        async with http.post(path, json=body, timeout=aiohttp.ClientTimeout(40)) as answer:
            if answer.status < RETRIABLE:
                assert answer.status < 300, f"{path}: {answer.status} {await answer.text()}"
                return await answer.json()
        await asyncio.sleep(0.2)
    raise AssertionError(f"{path} is never answered well")


async def _pull(http: aiohttp.ClientSession, pulled: list[str], done: asyncio.Event) -> None:
    while not done.is_set():
        found = (await post(http, "/v1/subscriptions/pulled/receive", {"max": 50, "wait_ms": 500}))[
            "messages"
        ]
        pulled += (message["value"] for message in found)
        if found:
            receipts = {"receipts": [message["receipt"] for message in found]}
            await post(http, "/v1/subscriptions/pulled/acknowledge", receipts)


async def _stream(url: str, streamed: list[str], done: asyncio.Event) -> None:
    """A stream that ends is opened again."""
    address = url.replace("http", "ws") + "/v1/subscriptions/streamed/stream?credit=1000"
    while not done.is_set():
        async with connect_websocket(address) as socket:
            while not done.is_set():
                try:
                    async with asyncio.timeout(0.5):
                        frame = json.loads(await socket.recv())
                except TimeoutError:
                    continue
                if frame["type"] == "message":
                    streamed.append(frame["value"])
                    await socket.send(json.dumps({"type": "accept", "ids": [frame["id"]]}))
                    await socket.send(json.dumps({"type": "credit", "messages": 1}))


@pytest.mark.slow
@pytest.mark.cluster_slow
def test_celerys_tasks_run_while_nodes_die(tmp_path: Path) -> None:
    with gateway_of_three(tmp_path) as running:
        tasks = Tasks(running.http, "tasks", tmp_path)
        with tasks.worker():
            tasks.send("simple", "first")
            tasks.wait_for("simple", 1)
            running.wait_until_whole()
            for node in running.nodes:
                node.kill()
                send_all(tasks, [f"{node.id}-{number}" for number in range(10)])
                node.start()
                running.wait_until_whole()
            until(lambda: len({run.argument for run in tasks.runs("simple")}) == 31, "all ran", PATIENCE_S)
            tasks.wait_until_empty()


def send_all(tasks: Tasks, arguments: list[str]) -> None:
    """In a thread of its own, since Celery waits without an end for a broker that is silent."""

    def send() -> None:
        for argument in arguments:
            tasks.send("simple", argument)

    sending = threading.Thread(target=send, daemon=True)
    sending.start()
    sending.join(PATIENCE_S)
    assert not sending.is_alive(), "tasks can't be sent"
