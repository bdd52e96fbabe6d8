"""The queue workloads: publish, take and acknowledge at the same time, through one queue.

One publisher and one or eight consumers, with the same window of unconfirmed messages and the same prefetch
on every broker (see c/queue.h). Acknowledgements go in batches (RabbitMQ: multiple=true, share groups: a
range) or each message has one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks import clients
from benchmarks.servers import Mode
from benchmarks.session import Measurement, Session
from benchmarks.workload import Part, Row, Workload

_SMALL, _KILOBYTE = 100, 1024
_NAMES = {_SMALL: "100 B", _KILOBYTE: "1 KB"}
_KEYS = {_SMALL: "100", _KILOBYTE: "1k"}

FLOW_SECONDS_MAX, FLOW_SECONDS_MIN = 1.5, 0.5
FLOW_MESSAGES_MAX = 2_000_000
LATENCY_RATE, LATENCY_MESSAGES, LATENCY_SECONDS_MAX = 1_000, 3_000, 15.0

BACKLOG_MESSAGES = 5_000_000
DELAYED_MESSAGES, DELAY_MS = 100_000, 3_600_000
FILL_SECONDS_MAX = 80.0
FILL_WINDOW = {"window": 20_000}  # a backlog's making is not measured; its batches are those of the others

IN_FLIGHT_MESSAGES, IN_FLIGHT_MB_MAX = 100_000, 30.0
WAITING_MESSAGES, WAITING_MB_MAX = 10_000_000, 10.0


# --- throughput and latency ------------------------------------------------------------------------


def _flow(session: Session, queue: str, **options: object) -> Measurement:
    seconds = max(FLOW_SECONDS_MAX * session.limits.scale, FLOW_SECONDS_MIN)
    figures, cpu = session.run_queue("flow", queue, seconds=seconds, **options)
    return Measurement((figures["messages"] / figures["seconds"],), figures["messages"], cpu)


def _throughput(session: Session, *, size: int, consumers: int, acks: str, batch: int = 0) -> Measurement:
    queue = session.queue(f"flow-{size}-{consumers}-{acks}-{batch}")
    options = {"batch": batch} if batch else {}
    count = session.limits.messages(FLOW_MESSAGES_MAX)
    return _flow(session, queue, count=count, size=size, consumers=consumers, acks=acks, **options)


def over_partitions(session: Session, partitions: int) -> Measurement:
    """Messages of 100 bytes through all partitions of a topic, to 8 consumers, with an ack for each."""
    queue = session.queue(f"flow-partitions-{partitions}", partitions=partitions)
    count = session.limits.messages(FLOW_MESSAGES_MAX)
    return _flow(session, queue, count=count, size=_SMALL, consumers=8, acks="single")


def _latency(session: Session) -> Measurement:
    queue = session.queue("flow-latency")
    options = {"rate": LATENCY_RATE, "size": _SMALL, "acks": "single", "seconds": LATENCY_SECONDS_MAX}
    count = session.limits.messages(LATENCY_MESSAGES)
    figures, cpu = session.run_queue("latency", queue, count=count, **options)
    return Measurement((figures["p50_us"] / 1000, figures["p99_us"] / 1000), figures["messages"], cpu)


# --- with many messages waiting --------------------------------------------------------------------


def _against_empty(session: Session, name: str, count: int, **fill: object) -> Measurement:
    """Throughput of a queue that already holds `count` messages, and its ratio to that of an empty one."""
    options = {"size": _SMALL, "consumers": 8, "count": FLOW_MESSAGES_MAX}
    empty = _flow(session, session.queue(f"{name}-none"), **options)
    queue = session.queue(name)
    seconds = FILL_SECONDS_MAX
    session.run_queue("fill", queue, count=count, size=_SMALL, seconds=seconds, **FILL_WINDOW, **fill)
    full = _flow(session, queue, first=count, **options)
    return Measurement(
        (full.values[0], full.values[0] / empty.values[0]),
        full.messages,
        full.cpu_seconds,
    )


def _backlog(session: Session) -> Measurement:
    return _against_empty(session, "backlog", BACKLOG_MESSAGES)


def _delayed(session: Session) -> Measurement:
    return _against_empty(session, "delayed", DELAYED_MESSAGES, delay_ms=DELAY_MS)


# --- memory ----------------------------------------------------------------------------------------


def _memory(session: Session) -> Measurement:
    """What the node's resident memory grows by, each time from a node that was just started and warmed up."""
    in_flight, waiting = IN_FLIGHT_MESSAGES, WAITING_MESSAGES
    whole, _ = held_mb(session, in_flight, every=1)
    ragged, released = held_mb(session, in_flight, every=2)
    return Measurement((whole, ragged, released, _waiting_mb(session, waiting)), waiting, 0.0)


def held_mb(session: Session, count: int, every: int) -> tuple[float, float]:
    """While a member holds `count` messages, one in `every`, and after it left without a word for them."""
    with _fresh(session) as (fresh, queue):
        _fill(fresh, queue, count * every)
        before = fresh.server.running.resident_mb()
        with _holding(fresh, queue, count=count, every=every):
            held = fresh.server.running.resident_mb() - before
        return held, fresh.server.running.resident_mb() - before


def _waiting_mb(session: Session, count: int) -> float:
    with _fresh(session) as (fresh, queue):
        before = fresh.server.running.resident_mb()
        _fill(fresh, queue, count)
        with _holding(fresh, queue, count=1):
            return fresh.server.running.resident_mb() - before


@contextmanager
def _fresh(session: Session) -> Iterator[tuple[Session, str]]:
    """A session with a server of its own, whose code and buffers have been used once, and a queue in it."""
    kind, directory = type(session.server), session.server.directory
    server = kind(session.server.mode, directory.with_name(f"{directory.name}-memory"))
    try:
        server.start()
        fresh = Session(server, session.tag, session.limits)
        for command, options in (("flow", {"consumers": 8}), ("fill", FILL_WINDOW)):
            fresh.run_queue(command, fresh.queue(f"warm-{command}"), count=100_000, seconds=2, **options)
        yield fresh, fresh.queue("memory")
    finally:
        server.stop()


def _fill(session: Session, queue: str, count: int) -> None:
    session.run_queue("fill", queue, count=count, size=_SMALL, seconds=FILL_SECONDS_MAX, **FILL_WINDOW)


@contextmanager
def _holding(session: Session, queue: str, **options: object) -> Iterator[None]:
    arguments = session.queue_arguments("hold", queue, seconds=FILL_SECONDS_MAX, **options)
    with clients.running(session.queue_program(), arguments):
        yield


# --- the table -------------------------------------------------------------------------------------

_queue = partial(Workload, part=Part.QUEUES, clients=("queue_client",))


def _throughput_workload(size: int, consumers: int, acks: str) -> Workload:
    key = f"queue-{_KEYS[size]}-{consumers}-{acks}"
    who = "1 consumer" if consumers == 1 else f"{consumers} consumers"
    how = "acks in batches" if acks == "batch" else "an ack for each"
    modes = (Mode.PAGE_CACHE, Mode.SYNCED) if (consumers, acks) == (8, "single") else (Mode.PAGE_CACHE,)
    measure = partial(_throughput, size=size, consumers=consumers, acks=acks)
    return _queue(key, (Row(f"{_NAMES[size]}, {who}, {how}", "msg/s", True, 1.0),), measure, modes)


WORKLOADS: tuple[Workload, ...] = (
    *(
        _throughput_workload(size, consumers, acks)
        for size in (_SMALL, _KILOBYTE)
        for consumers in (1, 8)
        for acks in ("batch", "single")
    ),
    *(
        _queue(
            f"queue-partitions-{partitions}",
            (Row(f"100 B, 8 consumers, an ack for each, {partitions} partitions", "msg/s", True),),
            partial(over_partitions, partitions=partitions),
            only=("postroad", "kafka"),
        )
        for partitions in (8, 32)
    ),
    _queue(
        "queue-requests",
        (Row("100 B, 8 consumers, an ack for each, one message a request", "msg/s", True, 1.0),),
        partial(_throughput, size=_SMALL, consumers=8, acks="single", batch=1),
    ),
    _queue(
        "queue-latency",
        (
            Row("end to end at 1,000 msg/s with an ack for each, p50", "ms", False),
            Row("end to end at 1,000 msg/s with an ack for each, p99", "ms", False, 1.0),
        ),
        _latency,
    ),
    _queue(
        "queue-backlog",
        (
            Row("100 B, 8 consumers, 5 million messages waiting", "msg/s", True),
            Row("5 million waiting : empty", "ratio", True, own_goal=0.8),
        ),
        _backlog,
        (Mode.PAGE_CACHE,),
        only=("postroad", "kafka", "nats"),  # RabbitMQ would take five minutes to be filled
        long=True,
    ),
    _queue(
        "queue-delayed",
        (
            Row("100 B, 8 consumers, 100,000 messages delayed", "msg/s", True),
            Row("100,000 delayed : none", "ratio", True, own_goal=0.8),
        ),
        _delayed,
        (Mode.PAGE_CACHE,),
        only=("postroad",),
        long=True,
    ),
    _queue(
        "queue-memory",
        (
            Row("memory for 100,000 messages in flight", "MB", False, own_goal=IN_FLIGHT_MB_MAX),
            Row("the same, every second message", "MB", False, own_goal=IN_FLIGHT_MB_MAX),
            Row("the same, after their member left", "MB", False),
            Row("memory for 10 million messages waiting", "MB", False, own_goal=WAITING_MB_MAX),
        ),
        _memory,
        (Mode.PAGE_CACHE,),
        only=("postroad",),
        long=True,
    ),
)
