"""The log workloads: producing, consuming and latency through one topic with one partition.

A workload is one run of a C client against one server, bounded by a number of messages and by seconds,
whichever comes first, so that a slow broker does not stretch the round.
"""

from __future__ import annotations

from benchmarks.servers import Mode
from benchmarks.session import Measurement, Session
from benchmarks.workload import Row, Workload

CPU_MESSAGES = 400_000  # the row "server CPU" is for as many messages
CONSUME_SECONDS_MAX = 15.0
LATENCY_SECONDS_MAX = 15.0


# --- producing and consuming in bulk ---------------------------------------------------------------

_KILOBYTE, _SMALL = 1024, 100
_COUNTS = {_KILOBYTE: CPU_MESSAGES, _SMALL: 2_000_000}


def produce_kilobytes(session: Session) -> Measurement:
    _, filled = session.fill(_KILOBYTE, _COUNTS[_KILOBYTE])
    megabytes = filled.values[0] * _KILOBYTE / 1e6
    return Measurement(
        (megabytes, filled.cpu_seconds / filled.messages * CPU_MESSAGES), filled.messages, filled.cpu_seconds
    )


def _produce_small(session: Session) -> Measurement:
    return session.fill(_SMALL, _COUNTS[_SMALL])[1]


def _consume(session: Session, size: int) -> Measurement:
    topic, filled = session.fill(size, _COUNTS[size])
    figures, cpu = session.run("consume", topic, int(filled.messages), size, CONSUME_SECONDS_MAX)
    return Measurement((figures["messages"] / figures["seconds"],), figures["messages"], cpu)


def consume_kilobytes(session: Session) -> Measurement:
    read = _consume(session, _KILOBYTE)
    return Measurement((read.values[0] * _KILOBYTE / 1e6,), read.messages, read.cpu_seconds)


def _consume_small(session: Session) -> Measurement:
    return _consume(session, _SMALL)


# --- one message a request -------------------------------------------------------------------------


def requests(
    session: Session, in_flight: int, count: int, *, raw: bool = False, partitions: int = 1
) -> Measurement:
    topic = session.topic(f"requests-{in_flight}-{partitions}", partitions)
    seconds = min(2.0, session.limits.seconds)
    figures, cpu = session.run(
        "produce", topic, session.limits.messages(count), _SMALL, seconds, in_flight, partitions, raw=raw
    )
    return Measurement((figures["messages"] / figures["seconds"],), figures["messages"], cpu)


def single(session: Session) -> Measurement:
    return requests(session, 5, 100_000)


def _raw(session: Session) -> Measurement:
    return requests(session, 100, 200_000, raw=True)


# --- latency ---------------------------------------------------------------------------------------


def latency(session: Session, rate: int, *, raw: bool = False) -> Measurement:
    topic = session.topic(f"latency-{rate}-{'raw' if raw else 'client'}")
    count = session.limits.messages(2 * rate)
    figures, cpu = session.run("latency", topic, count, _SMALL, LATENCY_SECONDS_MAX, rate, raw=raw)
    return Measurement((figures["p50_us"] / 1000, figures["p99_us"] / 1000), figures["messages"], cpu)


def latency_rows(title: str, *goals: float | None) -> tuple[Row, ...]:
    return tuple(
        Row(f"{title}, {name}", "ms", False, goal) for name, goal in zip(("p50", "p99"), goals, strict=True)
    )


_RAW = ("client", "raw_client")  # topics are made by the one, the other sends

WORKLOADS: tuple[Workload, ...] = (
    Workload(
        "produce-1k",
        (
            Row("produce 1 KB", "MB/s", True, 1.5),
            Row(f"server CPU for {CPU_MESSAGES:,} messages of 1 KB produced", "s", False, 1 / 3),
        ),
        produce_kilobytes,
    ),
    Workload("consume-1k", (Row("consume 1 KB", "MB/s", True, 1.0),), consume_kilobytes, (Mode.PAGE_CACHE,)),
    Workload("produce-100", (Row("produce 100 B", "msg/s", True),), _produce_small),
    Workload("consume-100", (Row("consume 100 B", "msg/s", True, 1.0),), _consume_small, (Mode.PAGE_CACHE,)),
    Workload("single", (Row("one message a request, 5 in flight", "requests/s", True, 3.0),), single),
    Workload("raw", (Row("raw produce requests, 100 in flight", "requests/s", True),), _raw, clients=_RAW),
    Workload(
        "latency-1k",
        latency_rows("end to end at 1,000 msg/s", 0.5, 1.0),
        lambda session: latency(session, 1_000),
    ),
    Workload(
        "latency-10k",
        latency_rows("end to end at 10,000 msg/s", None, None),
        lambda session: latency(session, 10_000),
        (Mode.PAGE_CACHE,),
    ),
    Workload(
        "raw-latency",
        latency_rows("minimal client, end to end at 1,000 msg/s", None, None),
        lambda session: latency(session, 1_000, raw=True),
        clients=_RAW,
    ),
)
