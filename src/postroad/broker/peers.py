"""`Peers`: what this node asks the other nodes of its cluster, over one connection to each.

Connections are made when they are needed, to where the coordination store says that the node is, and dropped
when they fail. Nothing is repeated here: whoever asks looks up again whom to ask. A node that answers a peer
asks no other node for it, so no two of them ever wait for each other.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from postroad.errors import CoordinatorNotAvailable, PostroadError, by_code
from postroad.wire import peer as codec

if TYPE_CHECKING:
    from postroad.broker.node import Node
    from postroad.client.connection import Connection

CONNECT_S: Final = 1.0  # nodes of a cluster are near each other
FOLLOW_S: Final = 1.0  # clients who ask a node that is behind any longer ask again
ANSWER_S: Final = 5.0  # clients wait for 30 s, and some of them for several questions after each other


class Peers:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._connections: dict[int, Connection] = {}
        self._opening: dict[int, asyncio.Lock] = {}

    async def ask(self, node_id: int, question: codec.AnyQuestion) -> codec.PeerAnswer:
        """The node's answer. Raises CoordinatorNotAvailable if there is none, and the error that it holds."""
        answer: codec.PeerAnswer = await self.call(node_id, codec, question)
        if answer.error_code:
            raise by_code(answer.error_code, answer.error_message)
        return answer

    async def call(self, node_id: int, api: Any, body: Any) -> Any:
        """The answer to a request of one of our own APIs. Raises CoordinatorNotAvailable if there is none."""
        try:
            connection = await self._connection(node_id)
            return await connection.call(api, body, ANSWER_S, api.MAX_VERSION)
        except (PostroadError, OSError) as error:
            raise CoordinatorNotAvailable(f"Node {node_id} does not answer: {error}") from None

    async def let_follow(self, nodes: Iterable[int], revision: int) -> None:
        """Wait until these nodes have followed the coordination store so far, for a moment at most.

        It spares clients a retry, no more: a node that does not answer is passed over.
        """
        others = set(nodes) & self._node.image.nodes.keys() - {self._node.settings.node.id}
        asked = [self.ask(node_id, codec.FollowStore(revision)) for node_id in sorted(others)]
        if asked:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FOLLOW_S):
                    await asyncio.gather(*asked, return_exceptions=True)

    async def _connection(self, node_id: int) -> Connection:
        from postroad.client.connection import open_connection  # a lone node asks nobody

        entry = self._node.image.nodes.get(node_id)
        if entry is None:
            raise CoordinatorNotAvailable(f"Node {node_id} is not registered.")
        async with self._opening.setdefault(node_id, asyncio.Lock()):
            found = self._connections.get(node_id)
            address = f"{entry.host}:{entry.port}"
            if found is not None and found.is_open and found.address == address:
                return found
            if found is not None:
                found.close()
            name = f"node-{self._node.settings.node.id}"
            opened = await open_connection(
                self._node.connect_to(entry),
                entry.host,
                entry.port,
                name,
                CONNECT_S,
                self._node.security.log_in_as_node(),
            )
            self._connections[node_id] = opened
            return opened

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
