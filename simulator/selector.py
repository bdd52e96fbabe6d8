"""A selector for simulated endpoints: which of them are ready, in an order that chance chooses.

An endpoint (a stream, a listening address) tells the selector when something of it has changed (`changed`);
only those that did are looked at. As with epoll's level trigger, one that stays ready is reported again.
"""

from __future__ import annotations

import selectors
from collections.abc import Mapping
from random import Random
from typing import Any, Protocol


class Endpoint(Protocol):
    def ready(self) -> int:
        """Which of EVENT_READ and EVENT_WRITE could be done without waiting."""


class Selector(selectors.BaseSelector):
    def __init__(self, random: Random) -> None:
        self.hot: dict[int, None] = {}  # those that may be ready, in the order of their changes
        self._random = random
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._endpoints: dict[int, Endpoint] = {}

    # --- what endpoints call

    def attach(self, number: int, endpoint: Endpoint) -> None:
        self._endpoints[number] = endpoint

    def detach(self, number: int) -> None:
        self._endpoints.pop(number, None)
        self.hot.pop(number, None)

    def changed(self, number: int) -> bool:
        """The endpoint may be ready for more than before; whether somebody waits for that."""
        key, endpoint = self._keys.get(number), self._endpoints.get(number)
        if key is None or endpoint is None or not endpoint.ready() & key.events:
            return False
        self.hot[number] = None
        return True

    # --- what asyncio calls

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if fileobj not in self._endpoints:
            raise ValueError(f"{fileobj!r} is no endpoint of this process")
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, fileobj, events, data)
        self.hot[fileobj] = None
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._keys[fileobj] = selectors.SelectorKey(fileobj, fileobj, events, data)
        self.hot[fileobj] = None
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        self.hot.pop(fileobj, None)
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Those that are ready now; time passes elsewhere."""
        ready = []
        for number in list(self.hot):
            key, endpoint = self._keys.get(number), self._endpoints.get(number)
            events = 0 if key is None or endpoint is None else endpoint.ready() & key.events
            if key is not None and events:
                ready.append((key, events))
            else:
                del self.hot[number]
        if len(ready) > 1:
            self._random.shuffle(ready)
        return ready

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[fileobj]

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys
