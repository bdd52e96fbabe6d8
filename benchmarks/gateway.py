"""The gateway's workloads: SQS over HTTP with few and many connections, and push over a WebSocket.

SQS is spoken by one C client to all servers alike (c/sqs.c), one request at a time on each connection. Push
has nothing to be compared with: its goals are for Postroad's own figures.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from benchmarks.servers import Mode
from benchmarks.session import Measurement, Session
from benchmarks.workload import Part, Row, Workload

_SMALL, _KILOBYTE = 100, 1024
_NAMES = {_SMALL: "100 B", _KILOBYTE: "1 KB"}
CONNECTIONS = (1, 16, 64)
SINGLE, BATCH = 1, 10

SECONDS_MAX, SECONDS_MIN = 1.5, 0.5
SQS_MESSAGES_MAX = 300_000
PUSH_MESSAGES_MAX = 1_000_000
PUSH_FRAME_MESSAGES = 100
LATENCY_RATE, LATENCY_MESSAGES, LATENCY_SECONDS_MAX = 1_000, 3_000, 15.0

RATIO_GOAL = 3.0
SINGLE_SENDS_GOAL = 10_000.0
PUSH_GOAL = 50_000.0
PUSH_P50_MS_GOAL = 5.0

_SQS, _STREAM = "sqs_client", "stream_client"
_BOTH = (Mode.PAGE_CACHE, Mode.SYNCED)


def _seconds(session: Session) -> float:
    return max(SECONDS_MAX * session.limits.scale, SECONDS_MIN)


# --- SQS -------------------------------------------------------------------------------------------


class _Load(NamedTuple):
    command: str
    connections: int
    batch: int
    size: int = _SMALL

    @property
    def key(self) -> str:
        how = "single" if self.batch == SINGLE else "batch"
        return f"sqs-{self.command}-{self.connections}-{how}{'' if self.size == _SMALL else '-1k'}"

    @property
    def title(self) -> str:
        who = "1 connection" if self.connections == 1 else f"{self.connections} connections"
        how = "one by one" if self.batch == SINGLE else f"batches of {self.batch}"
        return f"SQS: {_COMMANDS[self.command]}, {_NAMES[self.size]}, {who}, {how}"

    def run(self, session: Session) -> Measurement:
        """Messages a second, and the p99 of all requests."""
        queue = session.queue(self.key, _SQS)
        options = {**self._asdict(), "count": SQS_MESSAGES_MAX, "seconds": _seconds(session)}
        del options["command"]
        figures, cpu = session.run_queue(self.command, queue, _SQS, **options)
        rate = figures["messages"] / figures["seconds"]
        return Measurement((rate, figures["p99_us"] / 1000), figures["messages"], cpu)


_COMMANDS = {"send": "send", "flow": "send, receive and delete"}
_SINGLE_SENDS = _Load("send", CONNECTIONS[-1], SINGLE)


def _sqs_workload(load: _Load) -> Workload:
    own_goal = SINGLE_SENDS_GOAL if load == _SINGLE_SENDS else None
    rows = (
        Row(load.title, "msg/s", True, RATIO_GOAL, own_goal=own_goal),
        Row("the same, p99 of a request", "ms", False),
    )
    modes = _BOTH if load.connections > 1 and load.size == _SMALL else (Mode.PAGE_CACHE,)
    return Workload(load.key, rows, load.run, modes, part=Part.GATEWAY, clients=(_SQS,))


# --- push ------------------------------------------------------------------------------------------


def _push(session: Session, *, frame: int) -> Measurement:
    queue = session.queue(f"push-{frame}", _STREAM)
    options = {"count": PUSH_MESSAGES_MAX, "size": _SMALL, "frame": frame}
    figures, cpu = session.run_queue("flow", queue, _STREAM, seconds=_seconds(session), **options)
    return Measurement((figures["messages"] / figures["seconds"],), figures["messages"], cpu)


def _push_latency(session: Session) -> Measurement:
    queue = session.queue("push-latency", _STREAM)
    options = {"rate": LATENCY_RATE, "size": _SMALL, "acks": "single", "seconds": LATENCY_SECONDS_MAX}
    count = session.limits.messages(LATENCY_MESSAGES)
    figures, cpu = session.run_queue("latency", queue, _STREAM, count=count, **options)
    return Measurement((figures["p50_us"] / 1000, figures["p99_us"] / 1000), figures["messages"], cpu)


_push_workload = partial(Workload, part=Part.GATEWAY, clients=(_STREAM,))

WORKLOADS: tuple[Workload, ...] = (
    *(
        _sqs_workload(_Load(command, connections, batch))
        for command in _COMMANDS
        for batch in (SINGLE, BATCH)
        for connections in CONNECTIONS
    ),
    *(_sqs_workload(_Load(command, 16, SINGLE, _KILOBYTE)) for command in _COMMANDS),
    _push_workload(
        "push",
        (
            Row(
                f"push to one WebSocket, 100 B, up to {PUSH_FRAME_MESSAGES} messages a frame",
                "msg/s",
                True,
                own_goal=PUSH_GOAL,
            ),
        ),
        partial(_push, frame=PUSH_FRAME_MESSAGES),
    ),
    _push_workload(
        "push-single",
        (Row("push to one WebSocket, 100 B, a frame for each message", "msg/s", True),),
        partial(_push, frame=1),
        (Mode.PAGE_CACHE,),
    ),
    _push_workload(
        "push-latency",
        (
            Row("push at 1,000 msg/s with an ack for each, p50", "ms", False, own_goal=PUSH_P50_MS_GOAL),
            Row("push at 1,000 msg/s with an ack for each, p99", "ms", False),
        ),
        _push_latency,
    ),
)
