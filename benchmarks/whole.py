"""`python -m benchmarks.whole COMMAND…` prints its seconds, and the CPU seconds of it and of what it left.

A JVM outlives the program that started it by a moment: it becomes a child of this process, which waits for
it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import time
from contextlib import suppress
from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36


def main() -> int:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    begun = time.perf_counter()
    done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - begun
    with suppress(ChildProcessError):
        while True:
            os.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(seconds, used.ru_utime + used.ru_stime)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
