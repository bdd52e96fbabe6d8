"""A2 of a cluster: some time after the last fault every partition has a leader and all replicas in sync,
without anybody's help."""

from __future__ import annotations

from collections.abc import Iterator

from postroad.cluster.image import NO_LEADER, Image
from simulator.violation import Violation


def check(image: Image) -> Iterator[Violation]:
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if state.leader == NO_LEADER:
                yield Violation("A2", f"{topic.name}-{index} has no leader: {state}")
            elif len(state.isr) < len(state.replicas):
                yield Violation(
                    "A2", f"{topic.name}-{index}: only {state.isr} of {state.replicas} are in sync"
                )
