"""From a frame to the handler of its API, and from the handler's result to an answer.

An API is a module in `broker/api/` with KEY, VERSIONS, FLEXIBLE_FROM, RIGHTS and `handle(node, call)`. One
that
needs a right of the cluster for the whole request may have `refuse(node, call)`, which answers in its stead.
What `handle` may return:

    bytes or parts    the body of the answer, now
    an Answer         parked by `call.park()`; somebody completes it later
    a coroutine       run as a task of the node; its result is the body (control path only)
    None              no answer (acks=0)

Bytes that can't be read, and APIs or versions that are not there, close the connection, as in Kafka, once
the requests before are answered. A handler that fails for a reason nobody foresaw closes it at once: the
client retries, and the log of the node has the traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from postroad.broker.access import OPEN, Access, Rights
from postroad.broker.connection import Answer, Body, Connection
from postroad.broker.metrics.requests import ApiStats
from postroad.broker.produce_run import stage_run
from postroad.errors import ClusterAuthorizationFailed, ProtocolError
from postroad.security.resources import CLUSTER_NAME, ResourceType
from postroad.system.clock import stopwatch_ns
from postroad.wire import framing

if TYPE_CHECKING:
    from postroad.broker.node import Node

PRODUCE: Final = 0
API_VERSIONS: Final = 18
COPY_LETTERS: Final = 10_005
# All but messages becomes objects, up to some 50 bytes of memory for each byte of a hostile body. Honest
# ones stay far below this: a fetch of 10,000 partitions takes half a megabyte.
CONTROL_BYTES_MAX: Final = 4 * 1024 * 1024

log = logging.getLogger(__name__)


class Call:
    """One request on its way to an answer."""

    __slots__ = ("api", "body", "connection", "correlation", "flexible", "frame", "stats", "version")

    def __init__(
        self,
        connection: Connection,
        frame: memoryview,
        body_at: int,
        version: int,
        correlation: int,
        flexible: bool,
        stats: ApiStats,
        api: Api,
    ) -> None:
        self.stats = stats
        self.api = api
        self.connection = connection
        self.version = version
        self.correlation = correlation
        self.flexible = flexible
        self.frame = frame  # views of the receive buffer: valid in this turn only
        self.body = frame[body_at:]

    @property
    def client_id(self) -> str | None:
        """What the client calls itself; valid in this turn only, as the body is."""
        return framing.client_id(self.frame)

    @property
    def access(self) -> Access:
        """What the request may touch; it may be kept, and follows the rules."""
        guard = self.connection.guard
        return OPEN if guard is None else guard.access(self.api.RIGHTS)

    def park(self) -> Answer:
        """A place in the order of answers, to be completed later."""
        answer = Answer(self.connection, self.correlation, self.flexible)
        self.connection.park(answer)
        return answer


Result = Body | Answer | Coroutine[object, object, bytes] | None


class Api(Protocol):
    """What a module in `broker/api/` declares."""

    KEY: int
    VERSIONS: tuple[int, int]
    FLEXIBLE_FROM: int
    RIGHTS: Rights

    @staticmethod
    def handle(node: Node, call: Call) -> Result: ...


Handle = Callable[["Node", Call], Result]


class Route(NamedTuple):
    lowest: int
    highest: int
    flexible_from: int
    response_flexible_from: int  # ApiVersions answers with the old header for ever (KIP-511)
    handle: Handle
    name: str
    advertised: bool  # an API of our own may be handled without being listed
    guarded: (
        bool  # it may take a right of the cluster, whatever the request names; of `Later` it is not known
    )
    stats: ApiStats
    api: Api


def _guarded(call: Call, handle: Handle, name: str) -> Handle:
    """The handler; or, where the principal may not send such a request at all, what refuses it."""
    wanted = call.api.RIGHTS.cluster
    if wanted is None or call.access.refusal(ResourceType.CLUSTER, CLUSTER_NAME, wanted) is None:
        return handle
    refuse: Handle | None = getattr(call.api, "refuse", None)
    if refuse is None:
        raise ProtocolError(f"{name}: {ClusterAuthorizationFailed.summary}")
    return refuse


class Dispatcher:
    def __init__(self, node: Node, apis: list[Api]) -> None:
        self._node = node
        self._routes: dict[int, Route] = {}
        for api in apis:
            assert api.KEY not in self._routes, f"two handlers for API {api.KEY}"
            self._routes[api.KEY] = Route(
                *api.VERSIONS,
                api.FLEXIBLE_FROM,
                1 << 15 if api.KEY == API_VERSIONS else api.FLEXIBLE_FROM,
                api.handle,
                name := cast(str, getattr(api, "__name__", "")).rpartition(".")[2],
                getattr(api, "ADVERTISED", True),
                not isinstance(api, ModuleType) or api.RIGHTS.cluster is not None,
                ApiStats(name),
                api,
            )
        self._produced = self._routes[PRODUCE].stats

    @property
    def stats(self) -> list[ApiStats]:
        return [route.stats for _, route in sorted(self._routes.items())]

    def versions(self) -> list[tuple[int, int, int]]:
        """(key, lowest, highest) of what ApiVersions answers: everything that is handled but our own."""
        routes = sorted(self._routes.items())
        return [(key, route.lowest, route.highest) for key, route in routes if route.advertised]

    def handle(self, connection: Connection, frames: list[memoryview], position: int) -> int:
        """Handle the frame at that position and what can be done with it; returns the next position."""
        if connection.last_produce is not None and connection.allowed_produce == self._node.security.revision:
            end = stage_run(self._node, connection, frames, position, self._produced)
            if end > position:
                return end
        self._handle_one(connection, frames[position])
        return position + 1

    def _handle_one(self, connection: Connection, frame: memoryview) -> None:
        if len(frame) < framing.REQUEST_HEADER.size:
            raise ProtocolError("the frame is too short for a request header")
        key, version, correlation, client_bytes = framing.REQUEST_HEADER.unpack_from(frame)
        route = self._routes.get(key)
        if route is None:
            raise ProtocolError(f"API {key} is not one that this node handles")
        lowest, highest, flexible_from, response_flexible_from, handle, name, _, guarded, stats, api = route
        login = connection.login
        if login is not None and not login.is_open:
            login.admit(key)
        known = lowest <= version <= highest
        if not known and key != API_VERSIONS:
            raise ProtocolError(f"{name}: version {version} is not within {lowest}–{highest}")
        if len(frame) > CONTROL_BYTES_MAX and key not in (PRODUCE, COPY_LETTERS):
            raise ProtocolError(f"{name}: {len(frame)} bytes; at most {CONTROL_BYTES_MAX} are read")
        body_at = framing.body_at(frame, client_bytes, known and version >= flexible_from)
        call = Call(
            connection, frame, body_at, version, correlation, version >= response_flexible_from, stats, api
        )
        if connection.quotas is not None or (guarded and connection.guard is not None):
            handle = self._checked(call, handle, name)
        stats.requests += 1
        began = stopwatch_ns()
        try:
            result = handle(self._node, call)
        except ProtocolError:
            raise
        except Exception:
            log.exception("%s from %s failed", name, connection.peer)
            connection.close("its request failed")
            return
        if isinstance(result, Answer):
            result.began, result.took = began, stats.took
        elif isinstance(result, (bytes, list)):
            connection.answer_now(result, correlation, call.flexible)
            stats.took.note(stopwatch_ns() - began)
        elif result is not None:
            answer = call.park()
            answer.began, answer.took = began, stats.took
            self._node.tasks.start(self._finish(answer, route, result), name=name)

    def _checked(self, call: Call, handle: Handle, name: str) -> Handle:
        """The handler, for a principal who has to be allowed the request, or whose requests count."""
        if call.connection.guard is not None:
            handle = _guarded(call, handle, name)
        if call.connection.quotas is not None:
            handle = self._node.quotas.handler(call, handle)
        return handle

    async def _finish(self, answer: Answer, route: Route, body: Coroutine[object, object, bytes]) -> None:
        try:
            answer.complete(await body)
        except Exception as failed:
            if not isinstance(failed, ProtocolError):
                log.exception("%s failed", route.name)
            answer.hang_up(f"its {route.name} request failed: {failed}")
