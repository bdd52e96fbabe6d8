"""The failure matrix: nodes are killed, paused and restarted under the load of all clients."""

from __future__ import annotations

import random
import time
from pathlib import Path
from statistics import quantiles

import pytest

from tests.clients.wait import until

from . import figures
from .load import PARTITIONS, TOPIC
from .loaded_cluster import IMPATIENT, leaders, led_by, loaded_cluster, wait_for_another_leader

pytestmark = [pytest.mark.slow, pytest.mark.cluster_slow]

KILLS, FOLLOWERS, CONTROLLERS = 20, 3, 3
PAUSE_S = 10.0
ROUNDS = 3  # of rolling restarts
EVEN_S = 60.0  # leaders are even again half a minute after a restart


def test_leaders_are_killed_twenty_times(tmp_path: Path) -> None:
    random_ = random.Random(3)
    gaps: list[float] = []
    with loaded_cluster(tmp_path) as (running, load):
        for number in range(KILLS):
            running.wait_until_whole()
            time.sleep(0.5 + random_.random() / 2)
            victim = running.leader(TOPIC, number % PARTITIONS)
            led, at = led_by(running, victim), time.monotonic()
            victim.kill()
            load.wait_for_progress()
            gaps.append(load.gap(led, at))
            victim.start()
    figures.note_gaps("kill -9 of the leader", gaps)


def test_followers_are_killed(tmp_path: Path) -> None:
    stalls, wholes = [], []
    with loaded_cluster(tmp_path) as (running, load):
        for number in range(FOLLOWERS):
            running.wait_until_whole()
            leader = running.leader(TOPIC, number % PARTITIONS)
            led = led_by(running, leader)
            victim = next(node for node in running.nodes if node is not leader)
            at = time.monotonic()
            victim.kill()
            load.wait_for_progress()
            stalls.append(load.gap(led, at))
            victim.start()
            at = time.monotonic()
            running.wait_until_whole()
            wholes.append(time.monotonic() - at)
    figures.note_gaps("kill -9 of a follower: stall", stalls)
    figures.note_gaps("kill -9 of a follower: all in sync after its return", wholes)


def test_the_controller_is_killed_where_it_leads(tmp_path: Path) -> None:
    gaps: list[float] = []
    with loaded_cluster(tmp_path) as (running, load):
        while len(gaps) < CONTROLLERS:
            running.wait_until_whole()
            victim = running.controller()
            led, at = led_by(running, victim), time.monotonic()
            victim.kill()
            load.wait_for_progress()
            if led:
                gaps.append(load.gap(led, at))
            victim.start()
    figures.note_gaps("kill -9 of controller and leader together", gaps)


def test_a_leader_stands_still_for_ten_seconds(tmp_path: Path) -> None:
    """When it goes on it answers what it was asked before: nobody may take that for an acknowledgement."""
    with loaded_cluster(tmp_path, producer=IMPATIENT) as (running, load):
        running.wait_until_whole()
        leader = running.leader(TOPIC)
        led, at = led_by(running, leader), time.monotonic()
        leader.pause()
        elected = wait_for_another_leader(running, leader, led)
        load.wait_for_progress()
        gap = load.gap(led, at)
        time.sleep(max(0.0, at + PAUSE_S - time.monotonic()))
        leader.resume()
        running.wait_until_whole()
    figures.note("SIGSTOP of the leader for 10 s", elected=elected, gap=gap)


def test_nodes_are_restarted_one_after_the_other_three_times(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path) as (running, load):
        at = time.monotonic()
        for _ in range(ROUNDS):
            for node in running.nodes:
                running.wait_until_whole()
                node.restart()
        gap = load.gap(range(PARTITIONS), at)
        slow = quantiles(load.producer.waits, n=100)[98]
        restarted = time.monotonic()
        until(lambda: len(leaders(running)) == len(running.nodes), "each node leads a partition", EVEN_S)
        even = time.monotonic() - restarted
    figures.note("rolling restart × 3", gap=gap, p99=slow, leaders_even_after=even)
