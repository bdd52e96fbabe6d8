"""What subscriptions there are and how they are configured, as the gateway last heard.

The routing layer's memory: an answer is good for `FRESH_S`, and forgotten at once when this gateway itself
changes something. Other gateways' changes are seen when it has grown old.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from postroad.client import subscriptions
from postroad.client.client import Client
from postroad.wire.subscription_names import LOCK_CONFIG, TOPICS_CONFIG

FRESH_S: Final = 2.0
ENTRIES_MAX: Final = 10_000


@dataclass(frozen=True)
class SubscriptionInfo:
    """`config` has every config's value, `overrides` those that were set."""

    name: str
    topics: tuple[str, ...]
    config: Mapping[str, str]
    overrides: Mapping[str, str] = field(default_factory=dict)

    @property
    def lock_ms(self) -> int:
        return int(self.config[LOCK_CONFIG])


_NEVER: Final[tuple[float, SubscriptionInfo | None]] = (-math.inf, None)


class Directory:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, tuple[float, SubscriptionInfo]] = {}
        self._asking: dict[str, asyncio.Future[SubscriptionInfo]] = {}

    def known(self, name: str) -> SubscriptionInfo | None:
        """What need not be asked for."""
        heard_at, info = self._known.get(name, _NEVER)
        return info if asyncio.get_running_loop().time() - heard_at < FRESH_S else None

    async def subscription(self, name: str) -> SubscriptionInfo:
        """Raises GroupIdNotFound. Callers at the same time share one question."""
        info = self.known(name)
        if info is not None:
            return info
        asking = self._asking.get(name)
        if asking is None:
            asking = self._asking[name] = asyncio.ensure_future(self._ask(name))
            asking.add_done_callback(lambda done: self._asked(name, done))
        return await asyncio.shield(asking)

    async def create(self, name: str, topic_names: list[str], config: Mapping[str, str]) -> SubscriptionInfo:
        """It holds messages when this returns. One that exists is altered."""
        await self.alter(name, {TOPICS_CONFIG: ",".join(topic_names), **config})
        return await self.subscription(name)

    async def alter(self, name: str, config: Mapping[str, str | None]) -> None:
        """None: back to the default."""
        changes = {key: value for key, value in config.items() if value is not None}
        resets = [key for key, value in config.items() if value is None]
        await subscriptions.alter_config(self._client, name, changes, resets)
        self.forget(name)

    async def delete(self, name: str) -> None:
        await subscriptions.delete(self._client, name)
        self.forget(name)

    async def names(self) -> list[str]:
        return sorted(group.group for group in await subscriptions.list_all(self._client))

    def forget(self, name: str) -> None:
        """The next one asks; what was asked before now is not told to anybody who comes later."""
        self._known.pop(name, None)
        self._asking.pop(name, None)

    def _asked(self, name: str, asking: asyncio.Future[SubscriptionInfo]) -> None:
        if self._asking.get(name) is not asking:
            return
        del self._asking[name]
        if asking.cancelled() or asking.exception() is not None:
            return
        if len(self._known) >= ENTRIES_MAX:
            self._known.clear()
        self._known[name] = asyncio.get_running_loop().time(), asking.result()

    async def _ask(self, name: str) -> SubscriptionInfo:
        entries = await subscriptions.config(self._client, name)
        config = {entry.name: entry.value or "" for entry in entries}
        overrides = {entry.name: entry.value or "" for entry in entries if entry.is_override}
        held = tuple(topic for topic in config[TOPICS_CONFIG].split(",") if topic)
        if not held:
            positions = await subscriptions.positions(self._client, name)  # raises if there is none
            held = tuple(sorted({topic_partition.topic for topic_partition in positions}))
        return SubscriptionInfo(name, held, config, overrides)
