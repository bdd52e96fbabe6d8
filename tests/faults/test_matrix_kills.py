"""The failure matrix: nodes are killed, paused and restarted under the load of all clients."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from . import figures
from .load import PARTITIONS, TOPIC
from .loaded_cluster import led_by, loaded_cluster

pytestmark = [pytest.mark.slow, pytest.mark.cluster_slow]

KILLS = 20


def test_leaders_are_killed_twenty_times(tmp_path: Path) -> None:
    random_ = random.Random(3)
    gaps = []
    with loaded_cluster(tmp_path) as (running, load):
        for number in range(KILLS):
            running.wait_until_whole()
            time.sleep(0.5 + random_.random() / 2)
            victim = running.leader(TOPIC, number % PARTITIONS)
            led = led_by(running, victim)
            at = time.monotonic()
            victim.kill()
            load.wait_for_progress()
            gaps.append(max(load.producer.gap(partition, at) for partition in led))
            victim.start()
    figures.note_gaps("kill -9 of the leader", gaps)
