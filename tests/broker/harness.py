"""A real node inside the test's process: its loop runs in a thread, clients are blocking sockets.

`running_node` starts one on a free port. Tests talk to it as any client does; where a promise can only
be seen from inside, `on_loop` runs a function on the node's own loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest
import uvloop

from postroad.broker import internal_topic
from postroad.broker.connection import Connection
from postroad.broker.node import Node
from postroad.broker.partition import Partition
from postroad.broker.runtime import Runtime, SystemRuntime
from postroad.config import load
from postroad.system.clock import Clock
from postroad.wire.messages import create_topics, delete_topics
from tests.clients.share_session import Session
from tests.clients.wait import until
from tests.faults.raw import RawConnection, batch_of, fetch_at, send_batch

WAIT_S = 30.0
T = TypeVar("T")


class Running:
    """A node that has started, and the thread that its loop lives in."""

    load_wait_s = WAIT_S / 2
    runtime: Callable[[Clock | None], Runtime] = SystemRuntime  # what the next start runs on

    def __init__(self, directory: Path, clock: Clock | None = None, **settings: Any) -> None:
        given = {name.replace("_", ".", 1): str(value) for name, value in settings.items()}
        given |= {"kafka.port": "0", "data.dir": str(directory)}
        self._loaded = load(environment={}, flags=given)
        self._clock = clock
        self.began_ms = int(time.time() * 1000)  # for timestamps, however long what comes between them takes
        self.node: Node
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Raises what the node raises."""
        started: list[BaseException | None] = []
        ready = threading.Event()

        def main() -> None:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                self._loop = runner.get_loop()
                try:
                    runner.run(self._start())
                    started.append(None)
                except BaseException as error:
                    started.append(error)
                ready.set()
                if started == [None]:
                    self._loop.run_forever()

        self._thread = threading.Thread(target=main, daemon=True)
        self._thread.start()
        assert ready.wait(WAIT_S), "the node does not start"
        if started[0] is not None:
            self._thread.join(WAIT_S)
            self._thread = None
            raise started[0]

    async def _start(self) -> None:
        self.node = Node(self._loaded, self.runtime(self._clock))
        # Clients come again while groups are being loaded; tests don't, so the start waits for that.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(internal_topic, "LOAD_WAIT_S", self.load_wait_s)
            await self.node.start()

    def stop(self) -> None:
        """As on SIGTERM."""
        if self._thread is not None:
            try:
                self.run(self.node.stop())
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(WAIT_S)
                self._thread = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)

    def on_loop(self, call: Callable[[], T]) -> T:
        async def made() -> T:
            return call()

        return self.run(made())

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.node.port}"

    def connect(self, receive_buffer: int | None = None) -> RawConnection:
        return RawConnection(self.bootstrap, receive_buffer)

    def inside(self, client: RawConnection) -> Connection:
        """The node's end of a connection, as soon as the node has accepted it."""
        peer = f":{client.socket.getsockname()[1]}"

        def accepted() -> list[Connection]:
            return [one for one in list(self.node.listener.connections) if one.peer.endswith(peer)]

        return until(accepted, "it is accepted")[0]

    def call(self, api: ModuleType, version: int, body: Any) -> Any:
        """One request on a connection of its own."""
        with self.connect() as connection:
            return connection.call(api, version, body)

    # --- what most tests begin with

    def create(self, name: str, partitions: int = 1, **config: str | float) -> bytes:
        """A topic (`_` in a config's name stands for a dot); returns its id."""
        topic = create_topics.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                create_topics.CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
                for key, value in config.items()
            ],
        )
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        result = self.call(create_topics, 7, request).topics[0]
        assert result.error_code == 0, result.error_message
        return bytes(result.topic_id)

    def delete(self, name: str) -> int:
        request = delete_topics.DeleteTopicsRequest(
            topics=[delete_topics.DeleteTopicState(name=name)], timeout_ms=10_000
        )
        return int(self.call(delete_topics, 6, request).responses[0].error_code)

    def publish(self, topic: str, *values: bytes, partition: int = 0) -> int:
        """Each value in a batch of its own; the offset of the last."""
        with self.connect() as connection:
            for value in values:
                answer = send_batch(connection, topic, batch_of(value), partition=partition)
                assert answer.error_code == 0, answer.error_message
        return int(answer.base_offset)

    def fetch(self, topic: str, offset: int, partition: int = 0) -> Any:
        with self.connect() as connection:
            return fetch_at(connection, topic, offset, partition)

    @contextmanager
    def session(self, group: str, topic: str) -> Iterator[Session]:
        """A member of a share group that has joined. It does not say goodbye: its connection just ends."""
        with self.connect() as connection:
            opened = Session(connection, group, topic, None)
            opened.join()
            yield opened

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.node.partitions.lead(topic, index)


@contextmanager
def running_node(directory: Path, clock: Clock | None = None, **settings: Any) -> Iterator[Running]:
    running = Running(directory, clock, **settings)
    running.start()
    try:
        yield running
    finally:
        running.stop()
