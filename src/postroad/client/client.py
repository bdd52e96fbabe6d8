"""The routing layer: which node to ask, over which connection, and when to ask again.

One connection for each node and lane. A node answers a connection's requests one after the other,
so what may wait long (a fetch, joining a group) has a lane of its own and holds up nothing else.

What is cached (who leads, who coordinates) may be out of date at any time: the node that is asked
says so with an error that is a TryAgain, `retry` forgets what it knew, waits a moment and asks anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Self, TypeVar

from postroad.client import metadata
from postroad.client.backoff import CEILING_S, MOVED_S, Backoff
from postroad.client.bootstrap import connector
from postroad.client.bootstrap import read as read_bootstrap
from postroad.client.connection import CONNECT_TIMEOUT_S, Connection, open_connection
from postroad.client.login import Credentials, login
from postroad.client.metadata import Address, Cluster, Topic
from postroad.client.runtime import OPERATING_SYSTEM, Runtime
from postroad.client.silent_nodes import OpenConnection, SilentNodes
from postroad.errors import (
    BrokerNotAvailable,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    LeaderNotAvailable,
    NetworkException,
    NotCoordinator,
    NotLeaderOrFollower,
    RequestTimedOut,
    TopicAuthorizationFailed,
    TryAgain,
    UnknownTopicOrPartition,
    by_code,
)
from postroad.wire.messages import find_coordinator
from postroad.wire.messages import metadata as metadata_api

CALLS: Final = "calls"
WATCH: Final = "watch"
TIMEOUT_S: Final = 30.0
LOOK_UP_S: Final = 5.0  # a node that does not answer what it has in memory is left for another
ELSEWHERE_S: Final = 2.0  # the same, and to connect, where there is another one to ask
UNKNOWN_TOPIC_S: Final = (
    0.5  # a topic may be too young to be known everywhere; more likely it's a typing error
)
METADATA_AGE_S: Final = 300.0  # so that partitions that were added are seen some day
_ANY: Final = -1
_GROUP_KEY, _TRANSACTION_KEY = 0, 1
_COORDINATORS_FROM: Final = 4  # from here on an answer may name several

MOVED: Final = (
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    LeaderNotAvailable,
    NetworkException,
    NotCoordinator,
    NotLeaderOrFollower,
)

T = TypeVar("T")


def pause_after(error: TryAgain) -> float:
    """The longest pause before the next try: short where only another node has to be asked."""
    return MOVED_S if isinstance(error, MOVED) else CEILING_S


class Client:
    """A connection to a cluster: `async with Client("127.0.0.1:9092") as client: …`

    Safe for any number of tasks of one event loop. Every call ends within `timeout_s`.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "postroad",
        timeout_s: float = TIMEOUT_S,
        runtime: Runtime = OPERATING_SYSTEM,
        credentials: Credentials | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        self.runtime = runtime
        self._client_id = client_id
        found = read_bootstrap(bootstrap)
        self._bootstrap = found.addresses
        self._open_stream = connector(found, runtime)
        credentials = credentials or found.credentials
        self._log_in = None if credentials is None else login(credentials, runtime)
        self._nodes: dict[int, Address] = {}
        self._topics: dict[str, Topic] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._connections: dict[tuple[int, str], Connection] = {}
        self._opening: dict[tuple[int, str], asyncio.Lock] = {}
        self._was_connected = False
        self._unanswered: dict[Address, None] = {}  # nodes that could not be reached lately: they come last
        self._silent_nodes = SilentNodes(self)
        self._lanes = 0
        self._stale_at = 0.0

    async def __aenter__(self) -> Self:
        """Connects, so that a node that isn't there is known at once and not at the first call."""
        await self.connection()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._silent_nodes.close()
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # --- asking --------------------------------------------------------------------------------

    async def call(
        self,
        api: Any,
        body: Any,
        *,
        node: int = _ANY,
        lane: str = CALLS,
        timeout_s: float | None = None,
        version: int | None = None,
    ) -> Any:
        """One request, one try, at that node or any. What the answer says is the caller's affair.

        `version` is for an API that nodes answer without offering it.
        """
        connection = await self.connection(node, lane)
        return await connection.call(api, body, self.timeout_s if timeout_s is None else timeout_s, version)

    async def _call_any(self, api: Any, body: Any, timeout_s: float) -> Any:
        """One request to any node; one that is silent is asked last from now on."""
        try:
            return await self.call(api, body, timeout_s=timeout_s)
        except RequestTimedOut:
            silent = self._connections.get((_ANY, CALLS))
            if silent is not None:
                self._unanswered[_address(silent)] = None
            raise

    async def retry(
        self,
        attempt: Callable[[], Awaitable[T]],
        timeout_s: float | None = None,
        unknown_topic_s: float = UNKNOWN_TOPIC_S,
    ) -> T:
        """`attempt` until it raises no TryAgain, or the time is up: then the last error there was."""
        backoff = Backoff(self.timeout_s if timeout_s is None else timeout_s, self.runtime)
        patience = Backoff(min(backoff.left_s, unknown_topic_s), self.runtime)
        last: TryAgain = RequestTimedOut(f"Not done within {backoff.left_s:.3g} s.")
        while True:
            try:
                async with asyncio.timeout(backoff.left_s):
                    return await attempt()
            except TimeoutError:
                raise last from None
            except TryAgain as error:
                last = error
            self.forget()
            waiting = patience if isinstance(last, UnknownTopicOrPartition) else backoff
            if not await waiting.wait(pause_after(last)):
                raise last

    async def ask(self, api: Any, body: Any, *, node: int = _ANY) -> Any:
        """One answer, over as many connections as it takes; for what may safely be asked twice."""
        return await self.retry(lambda: self.call(api, body, node=node))

    async def topic_now(self, name: str) -> Topic | None:
        """The topic as the nodes know it now, whatever is cached; None if there is none."""
        return (await self.retry(lambda: self.cluster([name]))).topics.get(name)

    def forget(self, topic: str | None = None) -> None:
        """What was cached, of this topic or at all, may be out of date."""
        if topic is not None:
            self._topics.pop(topic, None)
            return
        self._topics.clear()
        self._coordinators.clear()
        self._stale_at = asyncio.get_running_loop().time() + METADATA_AGE_S

    # --- knowing -------------------------------------------------------------------------------

    async def cluster(self, topics: Iterable[str] | None = None, *, create: bool = False) -> Cluster:
        """Metadata as it is now, in one try; `topics` None means all. Topics that are found are cached."""
        wanted = None
        if topics is not None:
            wanted = [metadata_api.MetadataRequestTopic(name=name) for name in topics]
        request = metadata_api.MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        timeout_s = self.timeout_s if create else self._at_most(LOOK_UP_S)
        cluster = metadata.read(await self._call_any(metadata_api, request, timeout_s))
        self._nodes = dict(cluster.nodes)
        self._topics.update(cluster.topics)
        return cluster

    async def topic(self, name: str, *, create: bool = False) -> Topic:
        """From the cache, or asked for. UnknownTopicOrPartition if there is none (none was made)."""
        known = self.known_topic(name)
        if known is not None:
            return known
        if not create:
            return await self._find_topic(name)
        return await self.retry(lambda: self._find_topic(name, create=True), unknown_topic_s=self.timeout_s)

    def known_topic(self, name: str) -> Topic | None:
        """From the cache, if it is there."""
        if asyncio.get_running_loop().time() >= self._stale_at:
            self.forget()
        return self._topics.get(name)

    async def leader(self, topic: str, partition: int) -> int:
        return (await self.topic(topic)).leader(partition)

    async def coordinator(self, group: str) -> int:
        """The node that coordinates the group; may raise a TryAgain."""
        return await self._coordinator(_GROUP_KEY, group)

    async def transaction_coordinator(self, transactional_id: str) -> int:
        """The node that coordinates the transactional id; may raise a TryAgain."""
        return await self._coordinator(_TRANSACTION_KEY, transactional_id)

    async def _coordinator(self, kind: int, name: str) -> int:
        if (kind, name) not in self._coordinators:
            self._coordinators[kind, name] = await self._find_coordinator(kind, name)
        return self._coordinators[kind, name]

    async def controller(self) -> int:
        return (await self.cluster([])).controller

    async def nodes(self) -> list[int]:
        return sorted((await self.cluster([])).nodes)

    async def _find_topic(self, name: str, create: bool = False) -> Topic:
        cluster = await self.cluster([name], create=create)
        if name in cluster.topics:
            return cluster.topics[name]
        error = by_code(cluster.failed.get(name, UnknownTopicOrPartition.code))
        if isinstance(error, UnknownTopicOrPartition):
            raise UnknownTopicOrPartition(f"There is no topic {name}.")
        if isinstance(error, TopicAuthorizationFailed):
            raise TopicAuthorizationFailed(f"Not authorized for this topic: {name}.")
        raise error

    async def _find_coordinator(self, kind: int, name: str) -> int:
        request = find_coordinator.FindCoordinatorRequest(key=name, key_type=kind, coordinator_keys=[name])
        answer = await self._call_any(find_coordinator, request, self._at_most(LOOK_UP_S))
        connection = await self.connection()
        if connection.version(find_coordinator) >= _COORDINATORS_FROM:
            answer = answer.coordinators[0]
        if answer.error_code:
            raise by_code(answer.error_code, answer.error_message)
        self._nodes[answer.node_id] = Address(answer.host, answer.port)
        return int(answer.node_id)

    # --- connections ---------------------------------------------------------------------------

    async def connection(self, node: int = _ANY, lane: str = CALLS) -> Connection:
        """An open one, opened if need be. Until the first succeeds, BrokerNotAvailable comes at once;
        after that a node that is away is a NetworkException, which is retried."""
        key = (node, lane)
        known = self._connections.get(key)
        if known is not None and known.is_open:
            return known
        async with self._opening.setdefault(key, asyncio.Lock()):
            connection = self._connections.get(key)
            if connection is None or not connection.is_open:
                connection = await self._connect(node)
                self._connections[key] = connection
            return connection

    def _any_addresses(self) -> list[Address]:
        """Where any node may be: a machine that is silent costs its time-out once, and not with each try."""
        return sorted(self._known_addresses(), key=lambda address: address in self._unanswered)

    def _known_addresses(self) -> dict[Address, None]:
        return dict.fromkeys([*self._bootstrap, *self._nodes.values()])

    def _at_most(self, alone_s: float) -> float:
        """How long to wait for a node: less where there is another one to ask."""
        return min(self.timeout_s, alone_s if len(self._known_addresses()) == 1 else ELSEWHERE_S)

    def new_lane(self, purpose: str) -> str:
        """A lane of the caller's own; to be closed by `close_lane`."""
        self._lanes += 1
        return f"{purpose} {self._lanes}"

    def close_lane(self, lane: str) -> None:
        for key in [key for key in self._connections if key[1] == lane]:
            self._connections.pop(key).close()

    async def _connect(self, node: int) -> Connection:
        if node != _ANY and node not in self._nodes:
            await self.cluster([])
        if node != _ANY and node not in self._nodes:
            raise LeaderNotAvailable(f"Node {node} is not in the cluster now.")
        return await self._connect_to([self._nodes[node]] if node != _ANY else self._any_addresses())

    async def _connect_to(self, addresses: Iterable[Address]) -> Connection:
        """A connection to the first of these that takes one."""
        failure = BrokerNotAvailable()
        # The first one is not tried again: it has the time that it needs.
        timeout_s = self._at_most(CONNECT_TIMEOUT_S) if self._was_connected else CONNECT_TIMEOUT_S
        for address in addresses:
            try:
                connection = await open_connection(
                    self._open_stream, *address, self._client_id, timeout_s, self._log_in
                )
            except (BrokerNotAvailable, NetworkException, RequestTimedOut) as error:
                failure = BrokerNotAvailable(str(error))
                self._unanswered[address] = None
            else:
                self._was_connected = True
                self._unanswered.pop(address, None)
                self._silent_nodes.watch()
                return connection
        if self._was_connected:
            raise NetworkException(str(failure))
        raise failure

    # --- nodes that are silent -----------------------------------------------------------------

    def connections_to_nodes(self) -> list[OpenConnection]:
        """The open connections to nodes whose ids are known."""
        ids = {address: node for node, address in self._nodes.items()}
        found = ((ids.get(_address(each), node), each) for (node, _), each in self._connections.items())
        return [OpenConnection(node, each) for node, each in found if node != _ANY and each.is_open]

    async def members_elsewhere(self, silent: Iterable[int]) -> Mapping[int, Address]:
        """The nodes of the cluster, as one that is not silent sees it. Raises PostroadError."""
        avoided = {self._nodes[node]: None for node in silent if node in self._nodes}
        others = [address for address in self._any_addresses() if address not in avoided]
        if not others:
            raise BrokerNotAvailable("There is no other node.")
        key = (_ANY, WATCH)
        known = self._connections.get(key)
        if known is None or not known.is_open or _address(known) in avoided:
            if known is not None:
                known.close()
            self._connections[key] = await self._connect_to(others)
        request = metadata_api.MetadataRequest(topics=[], allow_auto_topic_creation=False)
        answer = await self._connections[key].call(metadata_api, request, ELSEWHERE_S)
        return metadata.read(answer).nodes

    def give_up(self, node: int) -> None:
        """End the connections to the node: what waits there is tried again, elsewhere."""
        for open_to, connection in self.connections_to_nodes():
            if open_to == node:
                self._unanswered[_address(connection)] = None
                connection.give_up()
        self._nodes.pop(node, None)
        self.forget()


def _address(connection: Connection) -> Address:
    host, _, port = connection.address.rpartition(":")
    return Address(host, int(port))
