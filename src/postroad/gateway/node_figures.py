"""What nodes say of their processes: version, memory, processor time, disk; asked now and then.

A node writes its whole page of metrics for it, so an answer counts for some seconds.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from postroad.client import nodes
from postroad.client.client import Client
from postroad.errors import PostroadError

GOOD_FOR_S: Final = 10.0
PATIENCE_S: Final = 3.0
_LINE: Final = re.compile(r"^postroad_node_(\w+)(?:\{([^}]*)\})? (\S+)$", re.MULTILINE)
_VERSION: Final = re.compile(r'version="([^"]*)"')


class NodeFigures(NamedTuple):
    """`cpu`: the part of one core that the process took between the last two times that it was asked."""

    version: str
    uptime_s: float
    memory_bytes: int
    cpu_seconds: float
    connections: int
    disk_free_bytes: int
    disk_bytes: int
    cpu: float | None = None


class FiguresOfNodes:
    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[int, tuple[float, NodeFigures]] = {}
        self._asking = asyncio.Lock()

    async def of(self, ids: Iterable[int]) -> dict[int, NodeFigures]:
        """Nodes that don't answer in time are left out."""
        async with self._asking:  # several who ask at once ask a node once
            found = await asyncio.gather(*(self._ask(node) for node in ids))
        return {node: figures for node, figures in found if figures is not None}

    async def _ask(self, node: int) -> tuple[int, NodeFigures | None]:
        now, before = self._clock(), self._known.get(node)
        if before is not None and now - before[0] < GOOD_FOR_S:
            return node, before[1]
        try:
            figures = read(await nodes.metrics(self._client, node, PATIENCE_S))
        except PostroadError:
            self._known.pop(node, None)
            return node, None
        if before is not None and figures.cpu_seconds >= before[1].cpu_seconds:
            spent = figures.cpu_seconds - before[1].cpu_seconds
            figures = figures._replace(cpu=spent / max(now - before[0], 0.001))
        self._known[node] = now, figures
        return node, figures


def read(text: str) -> NodeFigures:
    """From a page of metrics; what is missing there is 0."""
    values: dict[str, float] = {}
    version = ""
    for name, labels, value in _LINE.findall(text):
        values[name] = float(value)
        if name == "info" and (said := _VERSION.search(labels)):
            version = said[1]
    return NodeFigures(
        version,
        values.get("uptime_seconds", 0.0),
        int(values.get("memory_bytes", 0)),
        values.get("cpu_seconds_total", 0.0),
        int(values.get("connections", 0)),
        int(values.get("disk_free_bytes", 0)),
        int(values.get("disk_bytes", 0)),
    )
