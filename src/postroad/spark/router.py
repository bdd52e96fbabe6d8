"""Which node to ask, over which connection, and when to ask again; blocking.

What is cached (who leads, who coordinates) may be out of date at any time: the node that is asked
says so with an error that is a TryAgain. Then all of it is forgotten, and after a moment the question
is asked anew, of whoever is right by then, until `retry_s` are over.

A router belongs to one thread at a time. A forked child finds itself without connections, for those
of its parent are the parent's.
"""

from __future__ import annotations

import os
import random
import ssl
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from math import inf
from typing import Any, Final, NamedTuple, TypeVar

from postroad.client import bootstrap as bootstraps
from postroad.client import metadata
from postroad.client.backoff import CEILING_S, FIRST_S, JITTER
from postroad.client.connection import CONNECT_TIMEOUT_S
from postroad.client.metadata import Address
from postroad.errors import (
    ApiError,
    BrokerNotAvailable,
    CorruptMessage,
    LeaderNotAvailable,
    NetworkException,
    RequestTimedOut,
    TryAgain,
    UnknownTopicOrPartition,
    by_code,
)
from postroad.spark.access import OPEN, Access
from postroad.spark.connection import Connection
from postroad.wire.messages import find_coordinator
from postroad.wire.messages import metadata as metadata_api

TopicPartition = tuple[str, int]
"""A topic's name and a partition's number."""

FIRST_CONTACT_S: Final = 5.0  # a node that was never reached is more likely a wrong address than a restart
UNKNOWN_TOPIC_S: Final = 1.0  # a topic may be too young to be known everywhere, or it's a typing error
ANY: Final = -1
GROUP: Final = 0
TRANSACTION: Final = 1
_COORDINATORS_FROM: Final = 4  # from this version on an answer may name several
_AWAY: Final = (BrokerNotAvailable, NetworkException, RequestTimedOut)

T = TypeVar("T")


class Coordinated(NamedTuple):
    """What a node coordinates: a group, or a transactional id."""

    name: str
    key_type: int = GROUP


class Router:
    def __init__(
        self,
        bootstrap: str,
        client_id: str,
        request_timeout_s: float,
        retry_s: float,
        access: Access = OPEN,
    ) -> None:
        self.request_timeout_s = request_timeout_s
        self.was_reached = False
        self._bootstrap = bootstraps.addresses_of(bootstrap)
        self._access = access
        self._context: ssl.SSLContext | None = None
        self._client_id = client_id
        self._retry_s = retry_s
        self._nodes: dict[int, Address] = {}
        self._topics: dict[str, metadata.Topic] = {}
        self._coordinators: dict[Coordinated, int] = {}
        self._connections: dict[int, Connection] = {}
        self._process = os.getpid()

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # --- asking --------------------------------------------------------------------------------

    def retry(self, what: str, attempt: Callable[[], T], patience_s: float | None = None) -> T:
        """`attempt` until it raises nothing that a later try may mend, or the time (`patience_s`) is up.

        Then one error that begins with `what` and names the node. A damaged log stays damaged: it is
        not tried again.
        """
        started = time.monotonic()
        pause_s = FIRST_S
        while True:
            try:
                return attempt()
            except CorruptMessage:
                raise
            except (TryAgain, BrokerNotAvailable) as error:
                last: ApiError = error
            self.forget()
            waited_s = time.monotonic() - started
            pause_s = min(CEILING_S, pause_s * 2)
            if waited_s + pause_s >= min(self._patience_s(last), inf if patience_s is None else patience_s):
                raise _gave_up(what, waited_s, last)
            time.sleep(pause_s * (1 + random.uniform(-JITTER, JITTER)))

    def call(self, api: Any, body: Any, node: int = ANY, version: int | None = None) -> Any:
        """One request, one try, at that node or any."""
        return self.connection(node).call(api, body, self.request_timeout_s, version)

    def call_all(
        self, api: Any, bodies: Mapping[int, Any], extra_s: float = 0, version: int | None = None
    ) -> list[Any]:
        """A request to each of several nodes, all under way at the same time, and their answers."""
        connections = {node: self.connection(node) for node in bodies}
        timeout_s = self.request_timeout_s + extra_s
        try:
            for node, body in bodies.items():
                connections[node].send(api, body, timeout_s, version)
            return [connections[node].receive(timeout_s) for node in bodies]
        finally:  # where one failed the others' answers are wanted by nobody
            for connection in connections.values():
                if connection.is_waiting:
                    connection.close()

    def forget(self) -> None:
        """What was cached may be out of date."""
        self._topics.clear()
        self._coordinators.clear()

    def _patience_s(self, error: ApiError) -> float:
        if isinstance(error, UnknownTopicOrPartition):
            return min(self._retry_s, UNKNOWN_TOPIC_S)
        return self._retry_s if self.was_reached else min(self._retry_s, FIRST_CONTACT_S)

    # --- knowing -------------------------------------------------------------------------------

    def cluster(self, topics: Iterable[str] | None) -> metadata.Cluster:
        """Metadata as it is now, in one try; None means all topics."""
        wanted = None
        if topics is not None:
            wanted = [metadata_api.MetadataRequestTopic(name=name) for name in topics]
        request = metadata_api.MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        found = metadata.read(self.call(metadata_api, request))
        self._nodes = dict(found.nodes)
        self._topics.update(found.topics)
        for name, code in found.failed.items():
            if topics is not None:
                raise no_topic(name) if code == UnknownTopicOrPartition.code else about(name, by_code(code))
        return found

    def topic_ids(self, names: Collection[str]) -> dict[str, bytes]:
        """As they are cached; may raise a TryAgain."""
        self._learn(names)
        return {name: self._topics[name].id for name in names}

    def _learn(self, topics: Iterable[str]) -> None:
        unknown = sorted({topic for topic in topics if topic not in self._topics})
        if unknown:
            self.cluster(unknown)

    def by_leader(self, topic_partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Partitions gathered by the node that leads them; may raise a TryAgain."""
        topic_partitions = list(topic_partitions)
        self._learn(topic for topic, _ in topic_partitions)
        gathered: dict[int, list[TopicPartition]] = {}
        for topic, partition in topic_partitions:
            if topic not in self._topics:
                raise no_topic(topic)
            gathered.setdefault(self._topics[topic].leader(partition), []).append((topic, partition))
        return gathered

    def coordinator(self, name: str, key_type: int = GROUP) -> int:
        """The node that coordinates the group, or the transactional id; may raise a TryAgain."""
        wanted = Coordinated(name, key_type)
        if wanted not in self._coordinators:
            self._coordinators[wanted] = self._find_coordinator(wanted)
        return self._coordinators[wanted]

    def _find_coordinator(self, wanted: Coordinated) -> int:
        request = find_coordinator.FindCoordinatorRequest(
            key=wanted.name, key_type=wanted.key_type, coordinator_keys=[wanted.name]
        )
        connection = self.connection()
        answer = connection.call(find_coordinator, request, self.request_timeout_s)
        if connection.version(find_coordinator) >= _COORDINATORS_FROM:
            answer = answer.coordinators[0]
        if answer.error_code:
            raise by_code(answer.error_code, answer.error_message)
        self._nodes[answer.node_id] = Address(answer.host, answer.port)
        return int(answer.node_id)

    # --- connections ---------------------------------------------------------------------------

    def connection(self, node: int = ANY) -> Connection:
        """An open one, opened if need be; any that is open will do for a question to any node."""
        if self._process != os.getpid():
            self.close()  # the child's copies of the descriptors; the parent's stay open
            self._process = os.getpid()
        if node == ANY:
            for connection in self._connections.values():
                if connection.is_open and not connection.is_waiting:
                    return connection
        found = self._connections.get(node)
        if found is not None and found.is_waiting:  # Ctrl-C came between a request and its answer
            found.close()
        if found is None or not found.is_open:
            found = self._connections[node] = self._connect(node)
        return found

    def _tls(self) -> ssl.SSLContext | None:
        """None: without TLS."""
        if self._context is None and self._access.is_tls:
            self._context = self._access.context()
        return self._context

    def _connect(self, node: int) -> Connection:
        if node != ANY and node not in self._nodes:
            self.cluster([])
        if node != ANY and node not in self._nodes:
            raise LeaderNotAvailable(f"Node {node} is not in the cluster now.")
        addresses = [self._nodes[node]] if node != ANY else [*self._bootstrap, *self._nodes.values()]
        timeout_s = min(CONNECT_TIMEOUT_S, self.request_timeout_s)
        failure: ApiError = BrokerNotAvailable()
        for address in dict.fromkeys(addresses):
            try:
                connection = Connection(
                    address, self._client_id, timeout_s, self._tls(), self._access.credentials
                )
            except _AWAY as error:
                failure = error
            else:
                self.was_reached = True
                return connection
        raise failure


def no_topic(name: str) -> UnknownTopicOrPartition:
    return UnknownTopicOrPartition(f"There is no topic {name}: create it first, or check its name.")


def about(what: str, error: ApiError) -> ApiError:
    """The same error, saying what it is about."""
    return type(error)(f"{what}: {error}")


def _gave_up(what: str, waited_s: float, last: ApiError) -> ApiError:
    if isinstance(last, _AWAY):
        return BrokerNotAvailable(f"{what}: gave up after {waited_s:.1f} s: {str(last).rstrip('.')}.")
    return about(what, last)
