"""The first rows of the failure matrix with TLS and SCRAM everywhere, etcd included; and certificates,
passwords and keys that are changed under the same load.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from . import figures
from .load import PARTITIONS, TOPIC
from .loaded_cluster import led_by
from .secured_cluster import secured_cluster

pytestmark = [pytest.mark.slow, pytest.mark.cluster_slow]

LEADERS, FOLLOWERS, CONTROLLERS = 6, 2, 2


def test_nodes_are_killed_where_everything_is_secured(tmp_path: Path) -> None:
    leaders: list[float] = []
    followers: list[float] = []
    controllers: list[float] = []
    with secured_cluster(tmp_path) as (running, load):
        for number in range(LEADERS):
            running.wait_until_whole()
            victim = running.leader(TOPIC, number % PARTITIONS)
            led, at = led_by(running, victim), time.monotonic()
            victim.kill()
            load.wait_for_progress()
            leaders.append(load.gap(led, at))
            victim.start()
        for number in range(FOLLOWERS):
            running.wait_until_whole()
            leader = running.leader(TOPIC, number % PARTITIONS)
            led = led_by(running, leader)
            victim = next(node for node in running.nodes if node is not leader)
            at = time.monotonic()
            victim.kill()
            load.wait_for_progress()
            followers.append(load.gap(led, at))
            victim.start()
        while len(controllers) < CONTROLLERS:
            running.wait_until_whole()
            victim = running.controller()
            led, at = led_by(running, victim), time.monotonic()
            victim.kill()
            load.wait_for_progress()
            if led:
                controllers.append(load.gap(led, at))
            victim.start()
    figures.note_gaps("TLS and SCRAM: kill -9 of the leader", leaders)
    figures.note_gaps("TLS and SCRAM: kill -9 of a follower: stall", followers)
    figures.note_gaps("TLS and SCRAM: kill -9 of controller and leader together", controllers)


def test_certificates_and_passwords_are_changed_under_load(tmp_path: Path) -> None:
    """And each node is killed afterwards: whoever comes again has to come with what is new."""
    with secured_cluster(tmp_path) as (running, load):
        running.wait_until_whole()
        at = time.monotonic()
        running.change_certificates()
        load.wait_for_progress()
        certificates = load.gap(range(PARTITIONS), at)
        at = time.monotonic()
        running.change_password(load)
        load.wait_for_progress()
        passwords = load.gap(range(PARTITIONS), at)
        running.change_access_key(load)
        load.wait_for_progress()
        for node in running.nodes:
            running.wait_until_whole()
            node.kill()
            load.wait_for_progress()
            node.start()
    figures.note("TLS and SCRAM: another CA's certificates", gap=certificates)
    figures.note("TLS and SCRAM: another password", gap=passwords)
