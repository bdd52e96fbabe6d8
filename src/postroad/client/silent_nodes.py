"""Nodes that answer nothing any more, noticed long before a request's time is over.

A machine that loses its power or its network says no goodbye: whoever waits for its answer would wait for all
of its time-out, while another node leads by now. So once a second the client looks whether the request that
has waited longest on a connection is the same as before. If it is, another node is asked who belongs to the
cluster. A node that does not any more is given up: its connections end, and what waited there is tried again
elsewhere. One that does may take its time: a member that joins a group waits for others, a disk may be slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from postroad.client.connection import Connection
from postroad.client.metadata import Address
from postroad.errors import PostroadError

LOOK_S: Final = 1.0  # a request that waited for longer makes us look around


class OpenConnection(NamedTuple):
    node: int
    connection: Connection


class Connected(Protocol):
    """What is asked of the client."""

    def connections_to_nodes(self) -> Iterable[OpenConnection]:
        """The open connections to nodes whose ids are known."""

    async def members_elsewhere(self, silent: Iterable[int]) -> Mapping[int, Address]:
        """The nodes of the cluster, as one that is not among the silent ones sees it."""

    def give_up(self, node: int) -> None:
        """End the connections to the node."""


class SilentNodes:
    def __init__(self, client: Connected) -> None:
        self._client = client
        self._oldest: dict[Connection, int] = {}  # the request that had waited longest when we looked last
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Look once a second from now on, until there is no connection left."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def _look(self) -> None:
        self._timer = None
        before, self._oldest = self._oldest, {}
        silent: set[int] = set()
        for node, connection in self._client.connections_to_nodes():
            self.watch()
            waiting = connection.oldest_request
            if waiting is None:
                continue
            self._oldest[connection] = waiting
            if before.get(connection) == waiting:
                silent.add(node)
        if silent and self._asking is None:
            self._asking = asyncio.create_task(self._ask(sorted(silent)), name="silent nodes")

    async def _ask(self, silent: list[int]) -> None:
        try:
            members = await self._client.members_elsewhere(silent)
        except PostroadError:
            return  # nobody else answers: whoever waits goes on waiting
        finally:
            self._asking = None
        for node in silent:
            if node not in members:
                self._client.give_up(node)
