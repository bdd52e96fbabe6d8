"""The failure matrix: links between machines are cut without a word, under the load of all clients."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from . import figures
from .load import TOPIC
from .loaded_cluster import in_sync, led_by, wait_for_another_leader
from .network_namespaces import IN
from .networked_cluster import MEMBERS, networked_cluster

pytestmark = [pytest.mark.slow, pytest.mark.cluster_slow]

CUT_S = 12.0  # longer than a lease, and than the time after which a follower counts as lagging
GAP_S = 15.0  # what a loaded machine may make of the three seconds that are promised


def test_a_leader_is_cut_from_all(tmp_path: Path) -> None:
    with networked_cluster(tmp_path) as (running, load):
        running.wait_until_whole()
        leader = running.leader(TOPIC)
        led, at = led_by(running, leader), time.monotonic()
        running.net.cut(running.machine(leader))
        elected = wait_for_another_leader(running, leader, led)
        load.wait_for_progress()
        gap = load.gap(led, at)
        time.sleep(max(0.0, at + CUT_S - time.monotonic()))
        running.net.heal(running.machine(leader))
        running.wait_until_whole()
    figures.note("leader cut from all", elected=elected, gap=gap)
    assert gap < GAP_S


def test_a_leader_is_cut_from_etcd_only(tmp_path: Path) -> None:
    with networked_cluster(tmp_path) as (running, load):
        running.wait_until_whole()
        leader = running.leader(TOPIC)
        led, at = led_by(running, leader), time.monotonic()
        running.net.cut(running.machine(leader), MEMBERS)
        elected = wait_for_another_leader(running, leader, led)
        load.wait_for_progress()
        gap = load.gap(led, at)
        time.sleep(max(0.0, at + CUT_S - time.monotonic()))
        running.net.heal(running.machine(leader))
        running.wait_until_whole()
    figures.note("leader cut from etcd only", elected=elected, gap=gap)
    assert gap < GAP_S


def test_a_leader_is_cut_from_its_followers_only(tmp_path: Path) -> None:
    """Nobody but the leader can write its ISR: acks=all stops until it has resigned."""
    with networked_cluster(tmp_path) as (running, load):
        running.wait_until_whole()
        leader = running.leader(TOPIC)
        led, at = led_by(running, leader), time.monotonic()
        running.net.cut(running.machine(leader), running.others(leader))
        elected = wait_for_another_leader(running, leader, led)
        load.wait_for_progress()
        gap = load.gap(led, at)
        time.sleep(max(0.0, at + CUT_S - time.monotonic()))
        running.net.heal(running.machine(leader))
        running.wait_until_whole()
    figures.note("leader cut from its followers only", elected=elected, gap=gap)


def test_a_follower_that_hears_nothing_leaves_the_isr_and_returns(tmp_path: Path) -> None:
    with networked_cluster(tmp_path) as (running, load):
        running.wait_until_whole()
        leader = running.leader(TOPIC)
        follower = next(node for node in running.nodes if node is not leader)
        led, at = led_by(running, leader), time.monotonic()
        running.net.cut(running.machine(follower), [running.machine(leader)], [IN])
        running.wait_until(
            lambda seen: all(follower.id not in in_sync(seen, partition) for partition in led),
            "the follower has left the in-sync replicas",
        )
        left = time.monotonic() - at
        load.wait_for_progress()
        gap = load.gap(led, at)
        running.net.heal(running.machine(follower))
        at = time.monotonic()
        running.wait_until_whole()
        returned = time.monotonic() - at
    figures.note("follower cut one way", left_after=left, gap=gap, whole_after=returned)
