"""Finds the subscriptions with web hooks and keeps a deliverer for each, on every gateway."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec
from aiohttp import web

from postroad.client import subscriptions
from postroad.errors import PostroadError
from postroad.gateway.gateway import Gateway
from postroad.gateway.webhooks import hook as hooks
from postroad.gateway.webhooks.deliverer import Deliverer, Health
from postroad.gateway.webhooks.deliveries import Deliveries
from postroad.gateway.webhooks.hook import CONFIG, Webhook, WrongHook
from postroad.gateway.webhooks.sender import Sender

LOOK_S: Final = 3.0  # how soon what was changed at another gateway is seen

log = logging.getLogger(__name__)


class Supervisor:
    """Web hooks are served from `start` to `stop`."""

    def __init__(self, gateway: Gateway, look_s: float = LOOK_S) -> None:
        self._gateway = gateway
        self._look_s = look_s
        self._sender = Sender(private=gateway.http.webhooks_private)
        self._deliverers: dict[str, Deliverer] = {}
        self._hooks: dict[str, Webhook] = {}
        self._deliveries: dict[str, Deliveries] = {}  # of all that have a web hook, also one that is off
        self._unreadable: dict[str, str] = {}  # so that each is told once
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._sender.__aenter__()
        self._task = asyncio.create_task(self._run(), name="web hooks")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.gather(*(deliverer.stop() for deliverer in self._deliverers.values()))
        self._deliverers.clear()
        await self._sender.__aexit__(None, None, None)

    def look_now(self) -> None:
        """Something was changed."""
        self._wanted.set()

    def health(self, subscription: str) -> Health | None:
        deliverer = self._deliverers.get(subscription)
        return deliverer.health if deliverer is not None else None

    @property
    def subscriptions(self) -> frozenset[str]:
        """Those that have a web hook, also one that is off."""
        return frozenset(self._deliveries)

    def deliveries(self, subscription: str) -> Deliveries:
        return self._deliveries.get(subscription) or Deliveries()

    async def _run(self) -> None:
        while True:
            self._wanted.clear()
            try:
                await self._look()
            except PostroadError as error:
                log.info("web hooks could not be looked for: %s", error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_s):
                    await self._wanted.wait()

    async def _look(self) -> None:
        names = await self._gateway.directory.names()
        texts = await subscriptions.config_of_all(self._gateway.client, names, CONFIG)
        live = {name: hook for name, text in texts.items() if (hook := self._read(name, text)) is not None}
        over = [self._deliverers.pop(name) for name in list(self._deliverers) if name not in live]
        self._hooks = live
        self._deliveries = {name: self._deliveries.get(name) or Deliveries() for name in texts}
        for name, hook in live.items():
            if name in self._deliverers:
                self._deliverers[name].change(hook)
            else:
                self._deliverers[name] = self._begin(name, hook)
        await asyncio.gather(*(deliverer.stop() for deliverer in over))

    def _begin(self, name: str, hook: Webhook) -> Deliverer:
        async def disable(note: str) -> None:
            log.warning("the web hook of %s is turned off: %s", name, note)
            off = msgspec.structs.replace(self._hooks[name], enabled=False, note=note)
            await self._gateway.directory.alter(name, {CONFIG: hooks.write(off)})
            self.look_now()

        return Deliverer(self._gateway, name, hook, self._sender, disable, self._deliveries[name])

    def _read(self, name: str, text: str) -> Webhook | None:
        """None unless messages are to be sent."""
        try:
            hook = hooks.read(text)
            if hook is None or not hook.is_live:
                return None
            hooks.check(hook, private=self._gateway.http.webhooks_private)
        except WrongHook as error:
            if self._unreadable.get(name) != text:
                self._unreadable[name] = text
                log.warning("the web hook of %s is left alone: %s", name, error)
            return None
        return hook


SUPERVISOR: Final = web.AppKey("webhooks", Supervisor)


def context(gateway: Gateway) -> Callable[[web.Application], AsyncIterator[None]]:
    """For the application's `cleanup_ctx`: web hooks are served while it runs."""

    async def serve(app: web.Application) -> AsyncIterator[None]:
        supervisor = app[SUPERVISOR] = Supervisor(gateway)
        await supervisor.start()
        yield
        await supervisor.stop()

    return serve
