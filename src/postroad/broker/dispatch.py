"""From a frame to the handler of its API, and from the handler's result to an answer.

An API is a module in `broker/api/` with KEY, VERSIONS, FLEXIBLE_FROM and `handle(node, call)`.
What `handle` may return:

    bytes or parts    the body of the answer, now
    an Answer         parked by `call.park()`; somebody completes it later
    a coroutine       run as a task of the node; its result is the body (control path only)
    None              no answer (acks=0)

Bytes that can't be read close the connection, as in Kafka. A handler that fails for a reason
nobody foresaw does so too: the client retries, and the log of the node has the traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from postroad.broker.connection import Answer, Body, Connection
from postroad.errors import ProtocolError
from postroad.wire import framing

if TYPE_CHECKING:
    from postroad.broker.node import Node

PRODUCE: Final = 0
API_VERSIONS: Final = 18
# All but Produce becomes objects, up to some 50 bytes of memory for each byte of a hostile body. Honest
# ones stay far below this: a fetch of 10,000 partitions takes half a megabyte.
CONTROL_BYTES_MAX: Final = 4 * 1024 * 1024
_KEY_AND_VERSION: Final = Struct(">hhi")

log = logging.getLogger(__name__)


class Call:
    """One request on its way to an answer."""

    __slots__ = ("_body_at", "_frame", "client_id", "connection", "correlation", "flexible", "version")

    def __init__(
        self, connection: Connection, frame: memoryview, header: framing.RequestHeader, flexible: bool
    ) -> None:
        self.connection = connection
        self.version = header.version
        self.correlation = header.correlation
        self.client_id = header.client_id
        self.flexible = flexible
        self._frame = frame
        self._body_at = header.body_at

    @property
    def body(self) -> memoryview:
        """A view of the receive buffer: valid in this turn only."""
        return self._frame[self._body_at :]

    def park(self) -> Answer:
        return self.connection.park(self.correlation, self.flexible)


Result = Body | Answer | Coroutine[object, object, bytes] | None


class Api(Protocol):
    """What a module in `broker/api/` declares."""

    KEY: int
    VERSIONS: tuple[int, int]
    FLEXIBLE_FROM: int

    @staticmethod
    def handle(node: Node, call: Call) -> Result: ...


class Route(NamedTuple):
    lowest: int
    highest: int
    flexible_from: int
    response_flexible_from: int  # ApiVersions answers with the old header for ever (KIP-511)
    handle: Callable[[Node, Call], Result]
    name: str


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
                cast(str, getattr(api, "__name__", "")).rpartition(".")[2],
            )

    def versions(self) -> list[tuple[int, int, int]]:
        """(key, lowest, highest) of everything that is handled: what ApiVersions answers."""
        return [(key, route.lowest, route.highest) for key, route in sorted(self._routes.items())]

    def handle(self, connection: Connection, frame: memoryview) -> None:
        if len(frame) < 8:
            raise ProtocolError("the frame is too short for a request header")
        key, version, _ = _KEY_AND_VERSION.unpack_from(frame)
        route = self._routes.get(key)
        if route is None:
            raise ProtocolError(f"API {key} is not one that this node handles")
        if not route.lowest <= version <= route.highest and key != API_VERSIONS:
            raise ProtocolError(
                f"{route.name}: version {version} is not within {route.lowest}–{route.highest}"
            )
        if len(frame) > CONTROL_BYTES_MAX and key != PRODUCE:
            raise ProtocolError(f"{route.name}: {len(frame)} bytes; at most {CONTROL_BYTES_MAX} are read")
        header = framing.read_header(frame, route.flexible_from if version <= route.highest else None)
        call = Call(connection, frame, header, version >= route.response_flexible_from)
        try:
            result = route.handle(self._node, call)
        except ProtocolError:
            raise
        except Exception:
            log.exception("%s from %s failed", route.name, connection.peer)
            connection.close("its request failed")
            return
        self._answer(call, route, result)

    def _answer(self, call: Call, route: Route, result: Result) -> None:
        if result is None or isinstance(result, Answer):
            return
        if isinstance(result, (bytes, list)):
            call.connection.answer_now(result, call.correlation, call.flexible)
            return
        answer = call.park()
        self._node.tasks.start(self._finish(answer, route, result), name=route.name)

    async def _finish(self, answer: Answer, route: Route, body: Coroutine[object, object, bytes]) -> None:
        try:
            answer.complete(await body)
        except Exception as failed:
            if not isinstance(failed, ProtocolError):
                log.exception("%s failed", route.name)
            answer.hang_up(f"its {route.name} request failed: {failed}")
