"""Applications that move from one cluster to another and back, while mirrors and nodes are killed: each
message is counted at every reader."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaException, Producer

from postroad.client import Client, ShareConsumer, subscriptions, topics
from postroad.testing import Node, RunningCluster
from postroad.wire.subscription_names import TOPICS_CONFIG
from tests.clients.wait import until
from tests.spark import plain

PARTITIONS = 3
TOPIC = "orders"
GROUP = "billing"
SUBSCRIPTION = "mails"
PATIENCE_S = 120.0
EVERY = "500ms"
TAIL = 60  # messages that the group has not read when it moves


class Side(Protocol):
    """A cluster of which a node may be killed."""

    @property
    def bootstrap(self) -> str: ...

    def kill_and_start(self, pause_s: float) -> None: ...


class OneNode:
    def __init__(self, node: Node) -> None:
        self._node = node
        self.bootstrap = node.bootstrap

    def kill_and_start(self, pause_s: float) -> None:
        self._node.kill()
        time.sleep(pause_s)
        self._node.start()


class ThreeNodes:
    """Leaders die, of one partition after the other."""

    def __init__(self, running: RunningCluster) -> None:
        self._running = running
        self.bootstrap = running.bootstrap
        self._kills = 0

    def kill_and_start(self, pause_s: float) -> None:
        self._running.wait_until_whole()
        victim = self._running.leader(TOPIC, self._kills % PARTITIONS)
        self._kills += 1
        victim.kill()
        time.sleep(pause_s)
        victim.start()


class MirrorProcess:
    """`postroad mirror` for everything of one side, until it is ended."""

    def __init__(self, source: Side, target: Side, log: Path) -> None:
        self._source, self._target, self._log = source, target, log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> list[str]:
        addresses = ["-b", self._source.bootstrap, "--to", self._target.bootstrap]
        what = ["--pattern", ".*", "--group-pattern", ".*", "--subscription-pattern", ".*"]
        return [sys.executable, "-m", "postroad", "mirror", *addresses, *what]

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*self.command, "--every", EVERY], stdout=log, stderr=log)

    def end(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def finish(self) -> dict[str, Any]:
        """Another run beside it, that ends when all is mirrored; what it says."""
        done = subprocess.run(
            [*self.command, "--once", "--json"], capture_output=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return dict(json.loads(done.stdout))


class Application:
    """A producer, a group and a subscription, at one side at a time."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []  # acknowledged
        self.ends: dict[
            int, int
        ] = {}  # behind what was acknowledged at the side where it works, by partition
        self.seen: set[bytes] = set()  # by the group
        self.committed: set[bytes] = set()  # by the group, and it knows that
        self.accepted: set[bytes] = set()  # by the subscription, and it knows that
        self.failures: list[str] = []
        self._number = 0

    @contextmanager
    def at(self, side: Side) -> Iterator[None]:
        """It works there. When the block ends readers stop first, so that they have some lag."""
        self.ends = {}
        writing, reading = threading.Event(), threading.Event()
        readers = [self._thread(self._read, side, reading), self._thread(self._receive, side, reading)]
        writer = self._thread(self._write, side, writing)
        try:
            yield
        finally:
            reading.set()
            for thread in readers:
                thread.join(PATIENCE_S)
            before = len(self.sent)
            until(lambda: len(self.sent) >= before + TAIL, "more is written", PATIENCE_S)
            writing.set()
            writer.join(PATIENCE_S)
        assert not self.failures, self.failures
        assert not any(thread.is_alive() for thread in (*readers, writer)), "it does not end"

    def _thread(self, work: Callable[[Side, threading.Event], None], *given: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*given)
            except Exception as error:
                self.failures.append(f"{work.__name__}: {error!r}")

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def _write(self, side: Side, done: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": side.bootstrap, "enable.idempotence": True, "linger.ms": 5})

        def delivered(error: object, message: Any) -> None:
            if error is None:
                self.sent.append(message.value())
                self.ends[message.partition()] = message.offset() + 1
            else:
                self.failures.append(f"write: {error}")

        while not done.is_set():
            value = b"%d" % self._number
            producer.produce(
                TOPIC, value, key=value, partition=self._number % PARTITIONS, on_delivery=delivered
            )
            self._number += 1
            producer.poll(0)
            time.sleep(0.003)
        assert producer.flush(PATIENCE_S) == 0

    def _read(self, side: Side, done: threading.Event) -> None:
        """What was surely committed must not come again. A commit that fails, with its node, is left: what it
        was for may come again."""
        consumer = Consumer(
            {
                "bootstrap.servers": side.bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 45_000,
            }
        )
        consumer.subscribe([TOPIC])
        while not done.is_set():
            messages = [each for each in consumer.consume(50, timeout=0.1) if each.error() is None]
            came = {message.value() for message in messages}
            if again := came & self.committed:
                self.failures.append(f"the group got {sorted(again)[:5]} again")
            self.seen |= came
            with suppress(KafkaException):
                if messages:
                    consumer.commit(asynchronous=False)
                    self.committed |= came
        consumer.close()

    def _receive(self, side: Side, done: threading.Event) -> None:
        """What was surely accepted must not come again."""

        async def work() -> None:
            async with (
                Client(side.bootstrap) as client,
                ShareConsumer(client, SUBSCRIPTION, [TOPIC]) as consumer,
            ):
                while not done.is_set():
                    messages = await consumer.poll(max_wait_ms=100)
                    again = [each.value for each in messages if each.value in self.accepted]
                    if again:
                        self.failures.append(f"the subscription got {again[:5]} again")
                    refused = {refusal.message.value for refusal in await consumer.settle(messages)}
                    self.accepted |= {each.value or b"" for each in messages} - refused

        asyncio.run(work())

    def wait_until_all_is_read(self, side: Side) -> None:
        """All that is written by now. Then nothing behind a reader's position is done.

        Where the subscription is it says itself: whoever accepts a message while a node dies may never hear
        that it was accepted, and it does not come again."""
        written, ends = list(self.sent), dict(self.ends)
        deadline = time.monotonic() + PATIENCE_S
        while not self.failures:
            unread = [value for value in written if value not in self.seen]
            starts = asyncio.run(_starts(side))
            if not unread and all(starts.get(partition, 0) >= end for partition, end in ends.items()):
                return
            assert time.monotonic() < deadline, (
                f"the group misses {unread[:9]}; the subscription is at {starts}, and should be at {ends}; "
                f"not known to be accepted: {[value for value in written if value not in self.accepted][:9]}"
            )
            time.sleep(0.1)


def values(side: Side) -> Counter[bytes]:
    """All that the topic has."""
    return Counter(row.value or b"" for row in plain.read_all(side.bootstrap, TOPIC))


async def _starts(side: Side) -> dict[int, int]:
    """Below which offsets the subscription is done, by partition."""
    async with Client(side.bootstrap) as client:
        found = await client.retry(lambda: subscriptions.positions(client, SUBSCRIPTION))
        return {at.partition: each.start for at, each in found.items()}


async def _prepare(west: Side) -> None:
    async with Client(west.bootstrap) as client:
        await topics.create(client, TOPIC, partitions=PARTITIONS)
        held = {TOPICS_CONFIG: TOPIC, "share.record.lock.duration.ms": "5000"}
        await subscriptions.alter_config(client, SUBSCRIPTION, held)


def move_back_and_forth(west: Side, east: Side, home: Path, *, stays: int, rounds: int, seed: int) -> None:
    """The application works in the west, then in the east, and so on; at each side in so many rounds a mirror
    or a node is killed. In the end each message is at both sides once, and every reader has got it once."""
    chance = random.Random(seed)
    asyncio.run(_prepare(west))
    there, back = (
        MirrorProcess(west, east, home / "there.log"),
        MirrorProcess(east, west, home / "back.log"),
    )
    application = Application()
    with ExitStack() as stack:
        for mirror in (there, back):
            mirror.start()
            stack.callback(mirror.end)
        for stay in range(stays):
            here, mirror = (west, there) if stay % 2 == 0 else (east, back)
            with application.at(here):
                for _ in range(rounds):
                    for fault in chance.sample(("source", "target", "mirror", "other mirror"), 4):
                        time.sleep(chance.random())
                        _break(
                            fault,
                            here,
                            west if here is east else east,
                            mirror,
                            back if mirror is there else there,
                        )
                application.wait_until_all_is_read(here)
            told = mirror.finish()
            assert told["groups"][GROUP]["again"] == 0, told
            assert told["subscriptions"][SUBSCRIPTION]["again"] == 0, told
        last = east if stays % 2 else west
        with application.at(last):
            application.wait_until_all_is_read(last)
        for mirror in (there, back):
            mirror.finish()
    sent = Counter(application.sent)
    assert values(west) == sent
    assert values(east) == sent
    assert application.committed <= application.seen <= sent.keys()
    assert len(sent) > stays * TAIL


def _break(what: str, source: Side, target: Side, mirror: MirrorProcess, other: MirrorProcess) -> None:
    if what in ("source", "target"):
        (source if what == "source" else target).kill_and_start(pause_s=0.3)
        return
    victim = mirror if what == "mirror" else other
    victim.kill()
    victim.start()
