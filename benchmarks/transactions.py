"""Transactions: of 100 KB, beside the same messages without transactions, and of one message.

A transaction is begun when the one before is committed, as workers do that consume, transform and produce. A
producer alone waits most of the time (librdkafka a millisecond before it even asks); many at once, each with
a partition of its own, show what transactions cost where somebody always has work.
"""

from __future__ import annotations

from functools import partial

from benchmarks.servers import Kafka, Mode, Postroad
from benchmarks.session import Measurement, Session
from benchmarks.workload import Part, Row, Workload

_KILOBYTE, _SMALL = 1024, 100
_BURST = 100  # messages of 1 KB in a transaction of 100 KB
_MESSAGES, _SINGLES = 200_000, 20_000
_PRODUCERS = 16


def _large(session: Session, producers: int = 1) -> Measurement:
    """MB/s in transactions, and their part of what is reached without, measured right before and after."""
    topic = session.topic(f"transactions-{producers}", producers)
    count, seconds = session.limits.messages(_MESSAGES), session.limits.seconds / 2
    arguments = (count, _KILOBYTE, seconds, _BURST, producers)
    before, cpu_before = session.run("bursts", topic, *arguments)
    figures, cpu = session.run("transact", topic, *arguments)
    after, cpu_after = session.run("bursts", topic, *arguments)
    rate = _rate(figures)
    plain = (_rate(before) + _rate(after)) / 2
    cpu_plain = (cpu_before + cpu_after) / (before["messages"] + after["messages"])
    part = cpu_plain / (cpu / figures["messages"])
    return Measurement((rate * _KILOBYTE / 1e6, rate / plain, part), figures["messages"], cpu)


def _single(session: Session) -> Measurement:
    topic = session.topic("transaction")
    arguments = (session.limits.messages(_SINGLES), _SMALL, session.limits.seconds, 1)
    figures, cpu = session.run("transact", topic, *arguments)
    return Measurement((_rate(figures),), figures["messages"], cpu)


def _rate(figures: dict[str, float]) -> float:
    return figures["messages"] / figures["seconds"]


_workload = partial(Workload, part=Part.TRANSACTIONS, only=(Postroad.name, Kafka.name))


def _single_workload(key: str, goal: float | None, mode: Mode) -> Workload:
    row = Row("transactions of one message", "transactions/s", True, goal)
    return _workload(key, (row,), _single, (mode,))


def _large_workload(key: str, title: str, producers: int, goal: float | None) -> Workload:
    rows = (
        Row(title, "MB/s", True, goal),
        Row(f"{title}, part of the same without transactions", "×", True, None, 0.9),
        Row(f"{title}, part of its server CPU that goes into the same without", "×", True),
    )
    return _workload(key, rows, partial(_large, producers=producers))


WORKLOADS: tuple[Workload, ...] = (
    _large_workload("transactions-100k", "transactions of 100 KB", 1, 1.5),
    _large_workload(
        "transactions-many-100k", f"{_PRODUCERS} producers, transactions of 100 KB", _PRODUCERS, None
    ),
    _single_workload("transactions-single", 3.0, Mode.PAGE_CACHE),
    _single_workload("transactions-single-synced", None, Mode.SYNCED),
)
