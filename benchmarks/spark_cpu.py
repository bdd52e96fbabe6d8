"""CPU time of Spark: the JVM, all that it has started (Python workers), and this process, its driver."""

from __future__ import annotations

import threading
import time
from typing import Final, Self

from benchmarks.process import cpu_seconds_of, process_tree

LOOK_S: Final = 0.5


class CpuMeter:
    """Python workers leave without a trace: whoever started them does not ask what they used. So they are
    looked at again and again, and only what one used after the last look is missed."""

    def __init__(self, jvm: int) -> None:
        self._jvm = jvm
        self._used: dict[int, float] = {}
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._looking = threading.Thread(target=self._look_again, daemon=True)

    def __enter__(self) -> Self:
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._looking.join()

    def seconds(self) -> float:
        """So far, of those that live and of those that have ended."""
        with self._lock:
            for pid in process_tree(self._jvm):
                self._used[pid] = max(cpu_seconds_of(pid), self._used.get(pid, 0.0))
            # This process without its children: the broker is one.
            return sum(self._used.values()) + time.process_time()

    def _look_again(self) -> None:
        while not self._done.wait(LOOK_S):
            self.seconds()
