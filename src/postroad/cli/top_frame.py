"""What `postroad top` shows: tables made from two looks at the cluster, whose difference gives the rates."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from postroad.client import nodes
from postroad.client.metadata import Cluster
from postroad.errors import PostroadError
from postroad.gateway.history.reading import Reading, Values, read

if TYPE_CHECKING:
    from postroad.client import Client

PATIENCE_S: Final = 3.0  # a node that does not answer by then is shown without figures
NONE: Final = "-"
UNITS: Final = ("", "k", "M", "G", "T")
SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")
NODE_COLUMNS: Final = ("node", "address", "cpu", "memory", "disk free", "connections", "leads", "replicas")
TOPIC_COLUMNS: Final = ("topic", "partitions", "messages", "size", "in/s")
SUBSCRIPTION_COLUMNS: Final = (
    "subscription", "lag", "ready", "in flight", "delayed", "oldest", "out/s", "done/s", "dead",
)  # fmt: skip
GROUP_COLUMNS: Final = ("group", "lag", "oldest unread")
EMPTY: Final = Reading({}, {}, {}, {}, {})


class Look(NamedTuple):
    """The cluster at one moment, on the loop's clock."""

    at_s: float
    cluster: Cluster
    reading: Reading
    answered: frozenset[int]


class FrameTable(NamedTuple):
    """The busiest rows come first."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, ...]]


class Frame(NamedTuple):
    headline: str
    tables: list[FrameTable]


async def look(client: Client) -> Look:
    """Raises PostroadError if no node answers."""
    at_s = asyncio.get_running_loop().time()
    cluster = await client.cluster()

    async def ask(node: int) -> tuple[int, str]:
        try:
            return node, await nodes.metrics(client, node, PATIENCE_S)
        except PostroadError:
            return node, ""

    pages = {node: page for node, page in await asyncio.gather(*map(ask, cluster.nodes)) if page}
    return Look(at_s, cluster, read(pages), frozenset(pages))


def frame(before: Look, now: Look) -> Frame:
    passed_s = now.at_s - before.at_s
    rates = _Rates(before.reading, now.reading, passed_s)
    tables = [_nodes(now, rates), _topics(now, rates), _subscriptions(now, rates), _groups(now)]
    return Frame(_headline(now), [table for table in tables if table.rows])


class _Rates:
    """How much was added a second; nothing where there is no look before."""

    def __init__(self, before: Reading, now: Reading, passed_s: float) -> None:
        self._before = before
        self._now = now
        self._passed_s = passed_s

    def of(self, kind: str, name: str, measure: str) -> float | None:
        before: Mapping[str, Values] = getattr(self._before, kind)
        now: Mapping[str, Values] = getattr(self._now, kind)
        was, is_ = before.get(name, {}).get(measure), now.get(name, {}).get(measure)
        if was is None or is_ is None or self._passed_s <= 0:
            return None
        return max(0.0, is_ - was) / self._passed_s  # a node that has started anew counts from 0


def _headline(now: Look) -> str:
    partitions = [part for topic in now.cluster.topics.values() for part in topic.partitions]
    leaderless = sum(part.leader not in now.cluster.nodes for part in partitions)
    lagging = sum(len(part.isr) < len(part.replicas) for part in partitions)
    wrong = [f"{leaderless} without a leader"] if leaderless else []
    wrong += [f"{lagging} under-replicated"] if lagging else []
    silent = len(now.cluster.nodes) - len(now.answered)
    nodes_said = f"{len(now.cluster.nodes)} nodes" + (f" ({silent} silent)" if silent else "")
    state = ", ".join(wrong) or "all in sync"
    return (
        f"cluster {now.cluster.id}  {nodes_said}, {len(now.cluster.topics)} topics, "
        f"{len(partitions)} partitions: {state}"
    )


def _nodes(now: Look, rates: _Rates) -> FrameTable:
    partitions = [part for topic in now.cluster.topics.values() for part in topic.partitions]
    leads = Counter(part.leader for part in partitions)
    holds = Counter(node for part in partitions for node in part.replicas)
    rows = []
    for node, address in sorted(now.cluster.nodes.items()):
        values = now.reading.nodes.get(str(node), {})
        cpu = rates.of("nodes", str(node), "cpu_seconds_total")
        free, whole = values.get("disk_free_bytes"), values.get("disk_bytes")
        rows.append(
            (
                f"{node}{'*' if node == now.cluster.controller else ''}",
                str(address),
                NONE if cpu is None else f"{cpu * 100:.0f}%",
                size(values.get("memory_bytes")),
                NONE if free is None or not whole else f"{free / whole:.0%}",
                count(values.get("connections")),
                count(leads[node]),
                count(holds[node]),
            )
        )
    return FrameTable(NODE_COLUMNS, rows)


def _topics(now: Look, rates: _Rates) -> FrameTable:
    internal = {name for name, topic in now.cluster.topics.items() if topic.is_internal}
    found = {name: values for name, values in now.reading.topics.items() if name not in internal}
    coming = {name: rates.of("topics", name, "end_offset") for name in found}
    order = sorted(found, key=lambda name: (-(coming[name] or 0), -_messages(found[name]), name))
    rows = [
        (
            printable(name),
            count(found[name].get("partitions")),
            count(_messages(found[name])),
            size(found[name].get("size_bytes")),
            rate(coming[name]),
        )
        for name in order
    ]
    return FrameTable(TOPIC_COLUMNS, rows)


def _messages(values: Values) -> float:
    return max(0.0, values.get("end_offset", 0.0) - values.get("start_offset", 0.0))


def _subscriptions(now: Look, rates: _Rates) -> FrameTable:
    found = now.reading.subscriptions
    order = sorted(found, key=lambda name: (-found[name].get("lag", 0), name))
    rows = [
        (
            printable(name),
            *(count(found[name].get(measure)) for measure in ("lag", "ready", "in_flight", "delayed")),
            span(found[name].get("oldest_seconds")),
            rate(rates.of("subscriptions", name, "delivered")),
            rate(rates.of("subscriptions", name, "accepted")),
            count(found[name].get("dead")),
        )
        for name in order
    ]
    return FrameTable(SUBSCRIPTION_COLUMNS, rows)


def _groups(now: Look) -> FrameTable:
    found = now.reading.groups
    order = sorted(found, key=lambda name: (-found[name].get("lag", 0), name))
    rows = [
        (printable(name), count(found[name].get("lag")), span(found[name].get("lag_seconds")))
        for name in order
    ]
    return FrameTable(GROUP_COLUMNS, rows)


# --- as text


def printable(text: str) -> str:
    """On one line, and without what could steer a terminal."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def count(number: float | None) -> str:
    """`12345`, then `123.5k`: as many digits as fit in seven places."""
    if number is None:
        return NONE
    unit = 0
    while abs(number) >= 100_000 and unit < len(UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.0f}" if not unit else f"{number:.1f}{UNITS[unit]}"


def rate(number: float | None) -> str:
    return f"{number:.1f}" if number is not None and 0 < number < 10 else count(number)


def size(number: float | None) -> str:
    if number is None:
        return NONE
    unit = 0
    while number >= 1024 and unit < len(SIZES) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.0f} {SIZES[unit]}" if not unit or number >= 100 else f"{number:.1f} {SIZES[unit]}"


def span(seconds: float | None) -> str:
    if seconds is None:
        return NONE
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:.0f}s"
