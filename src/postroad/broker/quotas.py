"""Quotas: who takes more than he may is answered at once, and then not heard for as long as it was too much.

A connection with a quota has its `Limits` in `Connection.quotas`; one without has None there, and that look
is all that quotas cost others. What has a quota goes the long way always (`produce_run` and `tail_fetch` know
nothing of quotas), so all of it is counted here:

    produced bytes     of a Produce request, when it is handled
    fetched bytes      of the answer of a Fetch or ShareFetch, when it is made
    time               that this node has spent in handlers, for request_percentage (100: a whole core)

`throttle_time_ms` is in the answers of Produce, Fetch, ShareFetch, and of what is answered from a handler
itself. The connection is muted for the same time (KIP-219): clients that don't wait are waited for.

Each node counts what it is asked for. Nodes and gateways of the cluster, and replicas, have no quota.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from functools import partial
from math import ceil
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol, cast

from postroad.broker.connection import Answer, Body, Connection
from postroad.cluster import keys
from postroad.cluster.quotas import FETCH_RATE, PRODUCE_RATE, REQUEST_PERCENTAGE, limit_of
from postroad.log.partition_log import Slice
from postroad.system.clock import stopwatch_ns

if TYPE_CHECKING:
    from postroad.broker.dispatch import Call, Handle, Result
    from postroad.broker.node import Node
    from postroad.cluster.image import Changes

BURST_S: Final = 1.0  # what was not taken in this time may be taken at once
SHORTEST_S: Final = 0.001  # what the protocol can say
LONGEST_S: Final = 5 * 60.0  # an idle connection lives longer
PERCENT: Final = 100
BUCKETS_MAX: Final = 10_000  # anybody can make up client ids
PRODUCE: Final = 0
# From which version on the body of an answer begins with throttle_time_ms, by API. In the others it is
# elsewhere, or there is none.
THROTTLE_FIRST: Final[Mapping[int, int]] = {
    1: 4, 2: 2, 3: 3, 8: 3, 9: 3, 10: 1, 11: 2, 12: 1, 13: 1, 14: 1, 15: 1, 16: 1, 19: 2, 20: 1, 21: 0, 22: 0,
    23: 2, 24: 0, 25: 0, 26: 0, 28: 0, 29: 1, 30: 1, 31: 1, 32: 1, 33: 0, 35: 1, 37: 0, 42: 0, 43: 0, 44: 0,
    45: 0, 46: 0, 48: 0, 49: 0, 50: 0, 51: 0, 60: 0, 61: 0, 65: 0, 66: 0, 68: 0, 69: 0, 75: 0, 76: 1, 77: 1,
    78: 1, 79: 1, 90: 0, 91: 0, 92: 0,
}  # fmt: skip
_INT: Final = Struct(">i")


class Bucket:
    """A rate, kept over time: what is taken beyond it is a debt, which time pays."""

    __slots__ = ("paid_at", "rate")

    def __init__(self, rate: float) -> None:
        self.rate = rate  # a second
        self.paid_at = 0.0  # when all that was taken will be within the rate

    def take(self, amount: float, now_s: float) -> float:
        """For how many seconds nothing more should be taken."""
        self.paid_at = max(self.paid_at, now_s - BURST_S) + amount / self.rate
        return min(max(self.paid_at - now_s, 0.0), LONGEST_S)


class Throttles:
    """How often somebody had to wait, and for how long all in all."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0

    def mute(self, connection: Connection, wait_s: float) -> None:
        self.count += 1
        self.seconds += wait_s
        connection.mute(wait_s)


class Limits:
    """What holds for one client of one user."""

    __slots__ = ("_throttles", "fetch", "produce", "requests")

    def __init__(
        self,
        throttles: Throttles,
        produce: Bucket | None = None,
        fetch: Bucket | None = None,
        requests: Bucket | None = None,
    ) -> None:
        self._throttles = throttles
        self.produce = produce
        self.fetch = fetch
        self.requests = requests

    def fetch_bytes_max(self, wanted: int) -> int:
        """How much one answer may bring, so that nobody is muted for long."""
        return wanted if self.fetch is None else min(wanted, max(1, int(self.fetch.rate * BURST_S)))

    def fetched(self, connection: Connection, body: Body, now_s: float) -> Body:
        """The answer of a fetch, which begins with its throttle time."""
        if self.fetch is None:
            return body
        wait_s = self.fetch.take(_size(body), now_s)
        if wait_s < SHORTEST_S:
            return body
        self._throttles.mute(connection, wait_s)
        return _stamped(body, _ms(wait_s))

    def handle(self, handle: Handle, node: Node, call: Call) -> Result:
        """The request is handled, and counts."""
        began = stopwatch_ns()
        result = handle(node, call)
        connection = call.connection
        if connection.quotas is None:  # a replica's
            return result
        now_s, wait_s = node.loop.time(), 0.0
        if self.requests is not None:
            wait_s = self.requests.take((stopwatch_ns() - began) / 1e9, now_s)
        if self.produce is not None and call.api.KEY == PRODUCE:
            wait_s = max(wait_s, self.produce.take(len(call.frame), now_s))
        if wait_s < SHORTEST_S:
            return result
        self._throttles.mute(connection, wait_s)
        return _with_throttle_time(result, call, _ms(wait_s))


UNDECIDED: Final = Limits(Throttles())  # there are quotas, and the connection has not been asked for yet


class Quotas:
    def __init__(self, node: Node) -> None:
        self.throttles = Throttles()
        self._node = node
        self._limits: dict[tuple[str, str], Limits | None] = {}  # by user and client id
        self._buckets: dict[tuple[str, tuple[str | None, str | None]], Bucket] = {}

    def changed(self, changes: Changes) -> None:
        """Called as soon as the image has changed."""
        if any(key.startswith(keys.QUOTAS) for key in changes.security):
            self._limits.clear()
            for connection in self._node.listener.connections:
                self.admit(connection)

    def admit(self, connection: Connection) -> None:
        """The connection is new, or is somebody else's now, or quotas have changed."""
        connection.quotas = UNDECIDED if self._node.image.quotas else None
        if connection.quotas is not None:
            connection.last_produce = connection.last_fetch = None
            connection.allowed_fetch = -1  # one that waits is answered the long way

    def handler(self, call: Call, handle: Handle) -> Handle:
        """What handles the request, of a connection that has quotas or may have some."""
        connection = call.connection
        if connection.login is not None and not connection.login.done:
            return handle
        limits = self._limits_of(connection, call.client_id or "")
        connection.quotas = limits
        return handle if limits is None else partial(limits.handle, handle)

    def _limits_of(self, connection: Connection, client: str) -> Limits | None:
        if connection.principal.is_machine:
            return None
        who = connection.principal.name, client
        if who not in self._limits:
            if len(self._limits) >= BUCKETS_MAX:
                self._limits.clear()
            buckets = [self._bucket(name, *who) for name in (PRODUCE_RATE, FETCH_RATE, REQUEST_PERCENTAGE)]
            self._limits[who] = Limits(self.throttles, *buckets) if any(buckets) else None
        return self._limits[who]

    def _bucket(self, name: str, user: str, client: str) -> Bucket | None:
        limit = limit_of(self._node.image.quotas, name, user, client)
        if limit is None:
            return None
        rate = limit.rate / PERCENT if name == REQUEST_PERCENTAGE else limit.rate
        found = self._buckets.get((name, limit.shared_by))
        if found is None:
            self._forget_paid()
            found = self._buckets[name, limit.shared_by] = Bucket(rate)
        found.rate = rate
        return found

    def _forget_paid(self) -> None:
        """Make room: first those without a debt, then those that were made first."""
        if len(self._buckets) < BUCKETS_MAX:
            return
        now_s = self._node.loop.time()
        for key in [key for key, bucket in self._buckets.items() if bucket.paid_at <= now_s]:
            del self._buckets[key]
        while len(self._buckets) >= BUCKETS_MAX:
            del self._buckets[next(iter(self._buckets))]
        self._limits.clear()


class _HasThrottleTime(Protocol):
    throttle_ms: int


def _with_throttle_time(result: Result, call: Call, throttle_ms: int) -> Result:
    """The same result, saying how long the client has to wait, where it can."""
    if call.api.KEY == PRODUCE and isinstance(result, Answer):
        cast(_HasThrottleTime, result).throttle_ms = throttle_ms
    elif call.version < THROTTLE_FIRST.get(call.api.KEY, 1 << 15) or isinstance(result, Answer):
        return result
    elif isinstance(result, (bytes, list)):
        return _stamped(result, throttle_ms)
    elif result is not None:
        return _stamped_later(result, throttle_ms)
    return result


async def _stamped_later(result: Coroutine[object, object, bytes], throttle_ms: int) -> bytes:
    return _INT.pack(throttle_ms) + (await result)[_INT.size :]


def _stamped(body: Body, throttle_ms: int) -> Body:
    """A body that begins with its throttle time, with another one; the longer of both."""
    if isinstance(body, bytes):
        before: int = _INT.unpack_from(body)[0]
        return _INT.pack(max(before, throttle_ms)) + body[_INT.size :]
    first = cast("bytes", body[0])
    return [cast("bytes", _stamped(first, throttle_ms)), *body[1:]]


def _size(body: Body) -> int:
    if isinstance(body, bytes):
        return len(body)
    return sum(part.length if isinstance(part, Slice) else len(part) for part in body)


def _ms(seconds: float) -> int:
    return ceil(seconds * 1000)
