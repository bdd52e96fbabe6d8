"""What a Python worker keeps from one task to the next: the connections, and its memory in order.

Spark gives each task a reader that was unpickled for it, and lets the same few processes run task after
task. Three things cost more there than to read a small range does:

- to connect, agree on versions and ask who leads. So a task leaves its cluster to the next one; what is out
  of date by then is found out and mended as it always is, by the cluster itself.
- the garbage collection that Spark's workers make after each task, which looks at every object of every
  module (some 40 ms). Modules are no garbage: after the first task they are taken out of its sight.
- to wait for the second half of the task. The JVM sends it when the first one is acknowledged (Nagle), and
  the worker's kernel, which expects an answer to carry that along, waits 40 ms. So it is told not to, at
  the one moment between the two that is ours: when the first half is unpickled.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from postroad.spark.cluster import Cluster

KEPT_MAX: Final = 4  # a process seldom reads from more than one cluster; the oldest is closed

_OPEN_FILES: Final = "/proc/self/fd"

_idle: dict[object, Cluster] = {}
_is_frozen = False


@contextmanager
def connected(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, or one like it that is connected already: for this block alone.

    After an error it is closed: nobody knows what state it is in.
    """
    mine = _idle.pop(cluster.identity, cluster)
    try:
        yield mine
    except BaseException:
        mine.close()
        raise
    _put_back(mine)


def freeze() -> None:
    """Call this at the end of a task: what the process has loaded by now stays for good."""
    global _is_frozen
    if not _is_frozen:
        gc.collect()
        gc.freeze()
        _is_frozen = True


class Dispatched:
    """Base of what is sent to tasks, readers and writers: a worker that gets one asks for the rest."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _acknowledge()


def _acknowledge() -> None:
    """What this process has received is acknowledged at once: on all of its sockets, since nobody says which
    one leads to the JVM, and on the others it does no harm. Linux alone has a name for it."""
    if sys.platform != "linux" or socket.getdefaulttimeout() is not None:
        return  # a timeout that somebody set for new sockets would become that of these
    for number in os.listdir(_OPEN_FILES):
        with suppress(OSError):  # it was closed meanwhile, as the list itself was
            if os.readlink(f"{_OPEN_FILES}/{number}").startswith("socket:"):
                with socket.socket(fileno=os.dup(int(number))) as each:
                    if each.family in (socket.AF_INET, socket.AF_INET6):
                        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def _put_back(cluster: Cluster) -> None:
    other = _idle.pop(cluster.identity, None)  # of a task that began and ended within this one
    if other is not None:
        other.close()
    _idle[cluster.identity] = cluster
    while len(_idle) > KEPT_MAX:
        _idle.pop(next(iter(_idle))).close()
