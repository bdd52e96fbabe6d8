"""A node for all tests of this directory, and gateways in front of it, each in a thread of its own.

    @pytest.fixture(scope="module")
    def gateway(start_gateway: StartGateway) -> RunningGateway:
        return start_gateway([sqs.routes])

Tests may so use clients that block (boto3), and still reach into the gateway's own loop with `run`.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pytest
from aiohttp import web

from postroad.client.login import Credentials
from postroad.config.sections import Console, Http
from postroad.gateway.app import Context, create_app
from postroad.gateway.connections import Door
from postroad.gateway.gateway import Gateway, GatewaySettings
from postroad.gateway.serve import GRACE_S, bind
from postroad.gateway.short_way import ShortWayHandler
from postroad.security.master_key import GATEWAY_USER, machine_password
from postroad.testing import Node, node
from tests import shared_node

START_TIMEOUT_S = 60.0  # far above what anything here takes; it only bounds a failure

Routes = Callable[[Gateway], list[web.RouteDef]]
T = TypeVar("T")


@dataclass(frozen=True)
class RunningGateway:
    url: str
    bootstrap: str
    gateway: Gateway
    door: Door
    loop: asyncio.AbstractEventLoop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """In the gateway's loop; what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(START_TIMEOUT_S)


class StartGateway(Protocol):
    def __call__(
        self,
        dialects: list[Routes],
        *,
        contexts: Sequence[Context] = (),
        short_way: bool = True,
        **http: Any,
    ) -> RunningGateway: ...


@contextmanager
def gateway_in_thread(
    bootstrap: str,
    dialects: Sequence[Routes],
    *,
    contexts: Sequence[Context] = (),
    short_way: bool = True,
    master_key: bytes = b"",
    console_settings: Console | None = None,
    **http: Any,
) -> Iterator[RunningGateway]:
    """`http`: settings of the section of that name. Without the short way aiohttp reads all requests. With
    the nodes' master key requests are users'."""
    started: Future[RunningGateway] = Future()
    stop = threading.Event()
    login = Credentials(GATEWAY_USER, machine_password(master_key, GATEWAY_USER)) if master_key else None
    settings = GatewaySettings(
        bootstrap, Http(**http), login, are_users=bool(master_key), console=console_settings or Console()
    )
    arguments = (settings, dialects, contexts, short_way, started, stop)
    thread = threading.Thread(target=_run, args=arguments)
    thread.start()
    try:
        yield started.result(START_TIMEOUT_S)
    finally:
        stop.set()
        thread.join(START_TIMEOUT_S)


def _run(
    settings: GatewaySettings,
    dialects: list[Routes],
    contexts: Sequence[Context],
    short_way: bool,
    started: Future[RunningGateway],
    stop: threading.Event,
) -> None:
    async def serve() -> None:
        async with Gateway(settings) as gateway:
            app = create_app(gateway, dialects, contexts)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE_S)
            await runner.setup()
            handler = ShortWayHandler(gateway)
            door = Door(runner, gateway.http, gateway.metrics, handler if short_way else None, gateway.memory)
            sock = bind("127.0.0.1", 0)
            await door.open(sock)
            url = f"http://127.0.0.1:{sock.getsockname()[1]}"
            loop = asyncio.get_running_loop()
            started.set_result(RunningGateway(url, settings.bootstrap, gateway, door, loop))
            await loop.run_in_executor(None, stop.wait)
            door.close()
            await gateway.end_waits()
            await handler.finish(GRACE_S)
            await runner.cleanup()

    try:
        asyncio.run(serve())
    except Exception as error:
        if started.done():
            raise
        started.set_exception(error)


@pytest.fixture(scope="session")
def broker() -> Iterator[Node]:
    """One node for all tests; they keep to topics of their own."""
    with node({**shared_node.SETTINGS, "http.enabled": False}) as running:
        yield running


@pytest.fixture(scope="module")
def start_gateway(broker: Node) -> Iterator[StartGateway]:
    """Any number of them; they end with the module."""
    with ExitStack() as stack:

        def start(
            dialects: list[Routes], *, contexts: Sequence[Context] = (), short_way: bool = True, **http: Any
        ) -> RunningGateway:
            running = gateway_in_thread(
                broker.bootstrap, dialects, contexts=contexts, short_way=short_way, **http
            )
            return stack.enter_context(running)

        yield start


@pytest.fixture
def name() -> str:
    """For a topic, a queue or a group that nothing else uses."""
    return f"n-{uuid.uuid4().hex[:10]}"
