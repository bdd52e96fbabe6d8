"""What a worker notes: when its first and its last job began, and how long jobs were on their way.

Times are CLOCK_MONOTONIC's, which all processes of a machine share.
"""

import json
import os
import threading
import time
from pathlib import Path

COUNT = int(os.environ.get("BENCH_COUNT", "0"))
PACE_S = 0.004

_lock = threading.Lock()
_begun: list[float] = []
_waited: list[float] = []


def job(sent_at: float) -> None:
    """A job has begun. One that was sent for its latency says when."""
    now = time.monotonic()
    with _lock:
        if not _begun:
            _begun.extend((now, now, 0))
        _begun[1] = now
        _begun[2] += 1
        if sent_at:
            _waited.append(now - sent_at)
        if _begun[2] == COUNT:
            _write()


def _write() -> None:
    notes = Path(os.environ["BENCH_NOTES"])
    told = {"first": _begun[0], "last": _begun[1], "jobs": _begun[2], "waited": sorted(_waited)}
    new = notes.with_suffix(".new")
    new.write_text(json.dumps(told))
    new.replace(notes)
