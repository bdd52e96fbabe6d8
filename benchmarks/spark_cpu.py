"""CPU time of Spark: the JVM, all that it has started (Python workers), and this process, its driver."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.process import process_tree

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(jvm: int) -> float:
    """So far. Workers that have ended count: whoever waited for them has their time."""
    used = sum(_ticks(pid) for pid in process_tree(jvm)) / _TICKS_PER_SECOND
    times = os.times()
    return used + times.user + times.system  # without this process's children: the broker is one


def _ticks(pid: int) -> int:
    """User and system time of the process and of the children that it has waited for."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0  # it ended meanwhile, and its parent has its time
    return sum(map(int, after_name[11:15]))
