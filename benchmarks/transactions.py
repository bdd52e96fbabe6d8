"""Transactions of one producer: of 100 KB, beside the same messages without transactions, and of one message.

A transaction is begun when the one before is committed, as workers do that consume, transform and produce.
"""

from __future__ import annotations

from functools import partial

from benchmarks.servers import Kafka, Mode, Postroad
from benchmarks.session import Measurement, Session
from benchmarks.workload import Part, Row, Workload

_KILOBYTE, _SMALL = 1024, 100
_BURST = 100  # messages of 1 KB in a transaction of 100 KB
_MESSAGES, _SINGLES = 200_000, 20_000


def _large(session: Session) -> Measurement:
    """MB/s in transactions, and their part of what is reached without, measured right before and after."""
    topic = session.topic("transactions")
    arguments = (session.limits.messages(_MESSAGES), _KILOBYTE, session.limits.seconds / 2, _BURST)
    before, _ = session.run("bursts", topic, *arguments)
    figures, cpu = session.run("transact", topic, *arguments)
    after, _ = session.run("bursts", topic, *arguments)
    rate = _rate(figures)
    plain = (_rate(before) + _rate(after)) / 2
    return Measurement((rate * _KILOBYTE / 1e6, rate / plain), figures["messages"], cpu)


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


WORKLOADS: tuple[Workload, ...] = (
    _workload(
        "transactions-100k",
        (
            Row("transactions of 100 KB", "MB/s", True, 1.5),
            Row("transactions of 100 KB, part of the same without transactions", "×", True, None, 0.9),
        ),
        _large,
    ),
    _single_workload("transactions-single", 3.0, Mode.PAGE_CACHE),
    _single_workload("transactions-single-synced", None, Mode.SYNCED),
)
