"""`Client`: publish, receive and read by calls. `App` is one, too."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

from postroad.workers.backend import Backend, Source
from postroad.workers.middleware import Middleware
from postroad.workers.publishing import Headers, Outgoing, outgoing
from postroad.workers.spans import Span, milliseconds
from postroad.workers.worker import Order, Worker

if TYPE_CHECKING:
    from postroad.client.client import Client as KafkaClient
    from postroad.client.login import Credentials
    from postroad.workers.receiving import Receiver
    from postroad.workers.streams import Stream

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
BOOTSTRAP_VARIABLE: Final = "POSTROAD_BOOTSTRAP"
PROFILE_VARIABLE: Final = "POSTROAD_PROFILE"
TIMEOUT: Final = "30s"

T = TypeVar("T")


class Client:
    """A connection to a cluster, for any number of tasks of one event loop.

        async with postroad.Client() as client:
            await client.publish("jobs", Job("cat.jpg"))

    `bootstrap` is host:port, several with commas, `tls://…` with TLS (`?ca=FILE` where the system's CAs
    don't do). Where it is not given POSTROAD_BOOTSTRAP counts, then the profile, then 127.0.0.1:9092.
    `profile` is a file that says where the cluster is and who logs in (POSTROAD_PROFILE); `user` and
    `password` come before it. Every call ends within `timeout`, with a `postroad.PostroadError` that says
    what could not be done.
    """

    def __init__(
        self,
        bootstrap: str | None = None,
        *,
        user: str | None = None,
        password: str | None = None,
        profile: str | os.PathLike[str] | None = None,
        client_id: str = "postroad-app",
        timeout: Span = TIMEOUT,
        middleware: Iterable[Middleware] = (),
    ) -> None:
        if (user is None) != (password is None):
            raise ValueError("give both user and password, or neither")
        self._bootstrap = bootstrap
        self._given_credentials: Credentials | None = None
        if user is not None and password is not None:
            from postroad.client.login import Credentials

            self._given_credentials = Credentials(user, password)
        self._profile = profile
        self._client_id = client_id
        self._timeout_s = milliseconds(timeout, "timeout", shortest_ms=1) / 1000
        self.opened: list[Stream[Any] | Receiver[Any]] = []  # they are closed with the client
        self._middleware = list(middleware)
        self._backend: Backend | None = None
        self._opening: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        """Connects, so that a node that isn't there is known at once and not at the first call."""
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect. PostroadError says why that can't be done."""
        await self._opened()

    async def close(self) -> None:
        """What was published is delivered, or has failed. It can be opened again."""
        opened, self.opened = self.opened, []
        for each in opened:
            await each.close()
        backend, self._backend = self._backend, None
        if backend is not None:
            await backend.close()

    def add_middleware(self, middleware: Middleware) -> None:
        """It is innermost of all that were added so far."""
        self._middleware.append(middleware)

    @property
    def bootstrap(self) -> str:
        """Where the cluster is, as far as it is known without asking: what was given, or what holds
        instead."""
        return self._settings()[0]

    async def publish(
        self,
        topic: str,
        value: Any,
        *,
        key: str | bytes | None = None,
        delay: Span | None = None,
        at: datetime | None = None,
        expires: Span | None = None,
        id: str | None = None,
        headers: Headers | None = None,
    ) -> None:
        """The message is stored, safely, afterwards. PostroadError: it is not known to be.

        `value` is bytes, str, or anything that JSON can say: dicts, dataclasses, msgspec Structs, pydantic
        models. Messages with one `key` keep their order. Subscriptions deliver it after `delay`, or `at` a
        time, and not after `expires`: then it is a dead letter. A subscription with
        `postroad.deduplicate.ms` delivers one of several with the same `id` and key.
        """
        await self._publish(
            [outgoing(topic, value, key=key, delay=delay, at=at, expires=expires, id=id, headers=headers)]
        )

    async def publish_many(
        self, topic: str, values: Iterable[Any], *, headers: Headers | None = None
    ) -> None:
        """The same for many at once, which is far quicker than one after the other."""
        await self._publish([outgoing(topic, value, headers=headers) for value in values])

    def subscribe(
        self,
        *topics: str,
        group: str,
        of: type[T] = Any,  # type: ignore[assignment]
        start: str = "earliest",
    ) -> Stream[T]:
        """Records of topics as a member of a consumer group, each partition in order.

            async for record in app.subscribe("orders", group="billing", of=Order):
                print(record.value.total)

        A record counts as handled when the next one is asked for: one that was not handled, because the
        process died or the body raised, comes again. `start` is where a group begins that has committed
        nothing.
        """
        from postroad.workers.streams import Stream

        return Stream(self, topics, group, of, start)

    def receive(
        self,
        subscription: str,
        *,
        topic: str | Sequence[str] | None = None,
        of: type[T] = Any,  # type: ignore[assignment]
        held: int = 10,
        lock: Span | None = None,
        attempts: int | Literal["none"] | None = None,
        backoff: Span | None = None,
        order: Order | None = None,
        start: Literal["earliest", "latest"] = "earliest",
    ) -> Receiver[T]:
        """Messages of a subscription one by one, for code that asks for them: `App.worker` without a
        decorator.

            async with client.receive("resize", topic="jobs", of=Job) as messages:
                async for message in messages:
                    async with message:  # accepted at its end; what is raised counts as in a worker
                        await resize(message.value)

        Up to `held` are held at once, and their locks renewed, until `accept`, `retry` or `reject` is called.
        """
        from postroad.workers.receiving import Receiver
        from postroad.workers.worker import declare

        worker = declare(
            self.receive,
            subscription,
            topic=topic,
            lock=lock,
            attempts=attempts,
            backoff=backoff,
            backoff_max=None,
            concurrency=held,
            order=order,
            timeout=None,
            start=start,
            dead_letters=None,
            transaction=False,
            config=None,
        )
        return Receiver(self, worker, of)

    def copy(self) -> Client:
        """A client with the same settings, which is not open."""
        made = Client(
            self._bootstrap,
            profile=self._profile,
            client_id=self._client_id,
            timeout=self._timeout_s,
            middleware=self._middleware,
        )
        made._given_credentials = self._given_credentials
        return made

    def connect_to(self, bootstrap: str, credentials: Credentials | None) -> None:
        """Here, and as this user, in place of what was said before. Call it before the client is opened."""
        self._bootstrap, self._given_credentials = bootstrap, credentials

    def use(self, backend: Backend | None) -> None:
        """Publish to this and take from this, in a test; None: as before."""
        self._backend = backend

    # --- what App and others use ---------------------------------------------------------------

    async def kafka(self) -> KafkaClient:
        """The Kafka client below; RuntimeError in a test without a cluster."""
        from postroad.workers.kafka import KafkaBackend

        backend = await self._opened()
        if not isinstance(backend, KafkaBackend):
            raise RuntimeError("this needs a cluster: in a test, use the fixture `postroad`")
        return backend.client

    async def join(self, worker: Worker) -> Source:
        """A member of the worker's subscription."""
        return await (await self._opened()).join(worker)

    async def _opened(self) -> Backend:
        backend = self._backend
        if backend is not None:
            return backend
        if self._opening is None or self._loop is not asyncio.get_running_loop():
            self._opening, self._loop = asyncio.Lock(), asyncio.get_running_loop()
        async with self._opening:
            if self._backend is None:
                made = self._make_backend()
                await made.open()
                self._backend = made
            return self._backend

    def _make_backend(self) -> Backend:
        from postroad.workers.kafka import KafkaBackend

        return KafkaBackend(self._connect)

    def _connect(self) -> KafkaClient:
        from postroad.client.client import Client as KafkaClient

        address, credentials = self._settings()
        return KafkaClient(
            address, client_id=self._client_id, timeout_s=self._timeout_s, credentials=credentials
        )

    def _settings(self) -> tuple[str, Credentials | None]:
        """The address, and who logs in."""
        from postroad.client.profile import Profile, read_profile

        file = self._profile or os.environ.get(PROFILE_VARIABLE)
        profile = read_profile(Path(file)) if file else Profile()
        given = self._bootstrap or os.environ.get(BOOTSTRAP_VARIABLE) or ""
        address = profile.bootstrap_for(given) or DEFAULT_BOOTSTRAP
        credentials = self._given_credentials
        if credentials is None and "profile=" not in address:
            credentials = profile.credentials
        return address, credentials

    async def _publish(self, messages: Sequence[Outgoing]) -> None:
        backend = self._backend or await self._opened()
        around = [each.publish for each in self._middleware if type(each).publish is not Middleware.publish]
        if not around:
            await backend.publish(messages)
            return
        passed: list[Outgoing] = []

        async def through(depth: int, message: Outgoing) -> None:
            if depth == len(around):
                passed.append(message)
                await backend.publish([message])
            else:
                await around[depth](message, lambda changed: through(depth + 1, changed))

        await asyncio.gather(*(through(0, message) for message in messages))
