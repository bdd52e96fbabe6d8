"""`History`: what was sampled, and the task that samples.

H1 A sample is one question to each node, for its page of metrics. If making and reading the pages takes long,
   as with very many partitions, samples are taken less often: `SHARE` of a processor is spent with them, or
   one sample each `PAUSE_MAX_S`.
H2 Rates are of what was counted between two samples; where a counter fell (a node has restarted, a topic was
   made anew) there is no rate.
H3 The newest figures are kept for up to `NAMES_MAX` names; series for as many as the ring has room for, what
   people look for first before the rest.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from aiohttp import web

from postroad.client import nodes
from postroad.errors import PostroadError
from postroad.gateway.history.reading import Reading, Values, read
from postroad.gateway.history.ring import FINE_STEP_S, Ring, SeriesKey

if TYPE_CHECKING:
    from postroad.client.client import Client
    from postroad.gateway.gateway import Gateway

SHARE: Final = 0.01
PAUSE_MAX_S: Final = 60.0
NODE_S: Final = 5.0
NAMES_MAX: Final = 20_000
CLUSTER: Final = "all"  # the name of what is summed up over everything

# Counters become rates, under these names.
RATES: Final = {
    "topic": {"end_offset": "in"},
    "subscription": {
        "delivered": "delivered_rate", "accepted": "accepted_rate", "dead": "dead_rate",
        "expired": "expired_rate",
    },
    "group": {},
    "node": {"cpu_seconds_total": "cpu"},
}  # fmt: skip
# Series in this order, until the ring is full.
SERIES: Final = (
    ("node", ("cpu", "memory_bytes", "disk_free_bytes", "connections")),
    ("subscription", ("lag", "oldest_seconds", "in_flight", "accepted_rate", "delivered_rate", "dead")),
    ("group", ("lag", "lag_seconds")),
    ("topic", ("in", "messages", "size_bytes")),
)

log = logging.getLogger(__name__)


class History:
    """`latest` has the newest figures by kind and name; `sampled_at_ms` is 0 until there are any."""

    def __init__(self, client: Client) -> None:
        self.ring = Ring()
        self.latest: dict[str, dict[str, Values]] = {kind: {} for kind in (*RATES, "cluster")}
        self.readers: dict[str, set[tuple[str, str]]] = {}  # by topic, as in `Reading`
        self.sampled_at_ms = 0
        self._client = client
        self._before: Reading | None = None
        self._before_at = 0.0
        self._sampled: asyncio.Future[None] | None = None

    async def sampled(self) -> None:
        """Until there is a new sample."""
        if self._sampled is None or self._sampled.done():
            self._sampled = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._sampled)

    async def run(self) -> None:
        while True:
            began, used = time.monotonic(), time.thread_time()
            reading_s = 0.0
            try:
                pages = await self._pages()
                if pages:
                    reading, reading_s = await asyncio.to_thread(_timed_read, pages)
                    self.take(reading, time.time(), time.monotonic())
            except PostroadError as error:
                log.debug("no sample: %s", error)
            used = time.thread_time() - used + reading_s
            took = time.monotonic() - began
            await asyncio.sleep(max(FINE_STEP_S, min(used / SHARE, PAUSE_MAX_S)) - took)

    def take(self, reading: Reading, now_s: float, monotonic_s: float) -> None:
        """One more sample."""
        passed_s = monotonic_s - self._before_at
        before = self._before
        for kind, named, earlier in (
            ("topic", reading.topics, before.topics if before else {}),
            ("subscription", reading.subscriptions, before.subscriptions if before else {}),
            ("group", reading.groups, before.groups if before else {}),
            ("node", reading.nodes, before.nodes if before else {}),
        ):
            found: dict[str, Values] = {}
            for name, values in list(named.items())[:NAMES_MAX]:
                found[name] = _with_rates(values, earlier.get(name, {}), RATES[kind], passed_s)
            self.latest[kind] = found
        self.readers = reading.readers
        self.latest["cluster"] = {CLUSTER: self._sums()}
        self._before, self._before_at = reading, monotonic_s
        self.sampled_at_ms = int(now_s * 1000)
        self.ring.add(now_s, dict(self._wanted()))
        if self._sampled is not None and not self._sampled.done():
            self._sampled.set_result(None)

    def _sums(self) -> Values:
        topics, subscriptions = self.latest["topic"], self.latest["subscription"]
        own = [values for name, values in topics.items() if not name.startswith("__")]
        found = {
            "in": _sum(own, "in"),
            "messages": _sum(own, "messages"),
            "size_bytes": _sum(topics.values(), "size_bytes"),
            "delivered_rate": _sum(subscriptions.values(), "delivered_rate"),
            "accepted_rate": _sum(subscriptions.values(), "accepted_rate"),
            "lag": _sum(subscriptions.values(), "lag"),
        }
        return {measure: value for measure, value in found.items() if value is not None}

    def _wanted(self) -> Iterator[tuple[SeriesKey, float]]:
        for measure, value in self.latest["cluster"][CLUSTER].items():
            yield SeriesKey("cluster", CLUSTER, measure), value
        for kind, measures in SERIES:
            for measure in measures:
                for name, values in self.latest[kind].items():
                    if measure in values and not (kind == "topic" and name.startswith("__")):
                        yield SeriesKey(kind, name, measure), values[measure]

    async def _pages(self) -> dict[int, str]:
        async def page(node: int) -> str | None:
            try:
                return await nodes.metrics(self._client, node, NODE_S)
            except (PostroadError, TimeoutError):
                return None

        async with asyncio.timeout(2 * NODE_S):
            known = await self._client.nodes()
            found = await asyncio.gather(*map(page, known))
        return {node: text for node, text in zip(known, found, strict=True) if text is not None}


def _timed_read(pages: dict[int, str]) -> tuple[Reading, float]:
    """For a thread: pages of ten thousand topics take half a second, in which requests are answered."""
    began = time.thread_time()
    return read(pages), time.thread_time() - began


def _with_rates(values: Values, before: Values, rates: dict[str, str], passed_s: float) -> Values:
    found = dict(values)
    if "end_offset" in values:
        found["messages"] = values["end_offset"] - values.get("start_offset", 0.0)
    for counter, measure in rates.items():
        now, then = values.get(counter), before.get(counter)
        if now is not None and then is not None and now >= then and passed_s > 0:
            found[measure] = (now - then) / passed_s
    return found


def _sum(each: Iterable[Values], measure: str) -> float | None:
    known = [values[measure] for values in each if measure in values]
    return sum(known) if known else None


def context(gateway: Gateway) -> Callable[[web.Application], AsyncIterator[None]]:
    """Sample for as long as the application runs, if there is a console to look at it."""

    async def sample(app: web.Application) -> AsyncIterator[None]:
        if not gateway.http.console:
            yield
            return
        task = asyncio.create_task(gateway.history.run(), name="samples")
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    return sample
