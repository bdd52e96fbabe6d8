"""What a Python worker keeps from one task to the next: the connections, and its memory in order.

Spark gives each task a reader that was unpickled for it, and lets the same few processes run task after
task. Two things cost more there than to read a small range does:

- to connect, agree on versions and ask who leads. So a task leaves its cluster to the next one; what is out
  of date by then is found out and mended as it always is, by the cluster itself.
- the garbage collection that Spark's workers make after each task, which looks at every object of every
  module (some 40 ms). Modules are no garbage: after the first task they are taken out of its sight.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from postroad.spark.cluster import Cluster

KEPT_MAX: Final = 4  # a process seldom reads from more than one cluster; the oldest is closed

_idle: dict[object, Cluster] = {}
_is_settled = False


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


def settle() -> None:
    """To be called at the end of a task: what the process has loaded by now stays for good."""
    global _is_settled
    if not _is_settled:
        gc.collect()
        gc.freeze()
        _is_settled = True


def _put_back(cluster: Cluster) -> None:
    other = _idle.pop(cluster.identity, None)  # of a task that began and ended within this one
    if other is not None:
        other.close()
    _idle[cluster.identity] = cluster
    while len(_idle) > KEPT_MAX:
        _idle.pop(next(iter(_idle))).close()
