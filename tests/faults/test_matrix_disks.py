"""The failure matrix: disks fail, fill up and lose what was not synced, under the load of all clients."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.client.metadata import Cluster
from postroad.testing import ClusterNode

from . import figures
from .files import cut_at, fill, partition_directories, segments
from .load import PARTITIONS, TOPIC
from .loaded_cluster import in_sync, led_by, loaded_cluster, wait_for_another_leader
from .machine import Machine, forge_boot, installed

pytestmark = [pytest.mark.slow, pytest.mark.cluster_slow]

NODES = 3
OS = {"postroad.flush": "os"}
SMALL_MB = 48
CUT_BYTES = 700  # some batches, and a part of one


def home_of(directory: Path, number: int) -> Path:
    home = directory / f"node-{number}"
    home.mkdir(parents=True, exist_ok=True)
    return home


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    """One for each node, in their order."""
    made: list[Machine] = []
    try:
        made.extend(installed(home_of(tmp_path, number)) for number in range(1, NODES + 1))
        yield made
    finally:
        for machine in made:
            subprocess.run(["umount", "--lazy", str(machine.data)], capture_output=True, check=False)


def return_power(machine: Machine, node: ClusterNode) -> None:
    assert machine.mount()
    forge_boot(machine.data)
    node.launch()


def test_the_power_of_a_leader_is_cut_where_nothing_is_synced(
    tmp_path: Path, machines: list[Machine]
) -> None:
    with loaded_cluster(tmp_path, topic_config=OS) as (running, load):
        running.wait_until_whole()
        victim = running.leader(TOPIC)
        led, at = led_by(running, victim), time.monotonic()
        machines[victim.id - 1].cut_power(victim)
        load.wait_for_progress()
        gap = load.gap(led, at)
        return_power(machines[victim.id - 1], victim)
        victim.wait_until_ready()
        at = time.monotonic()
        running.wait_until_whole()
        whole = time.monotonic() - at
    figures.note("power cut of the leader, flush os", gap=gap, in_sync_after=whole)


def test_the_power_of_all_is_cut_with_flush_sync(tmp_path: Path, machines: list[Machine]) -> None:
    with loaded_cluster(tmp_path) as (running, load):
        running.wait_until_whole()
        at = time.monotonic()
        for machine, node in zip(machines, running.nodes, strict=True):
            machine.cut_power(node)
        for machine, node in zip(machines, running.nodes, strict=True):
            return_power(machine, node)
        for node in running.nodes:
            node.wait_until_ready()
        load.wait_for_progress()
        gap = load.gap(range(PARTITIONS), at)
    figures.note("power cut of all, flush sync", gap=gap)


def test_a_node_returns_within_its_lease_with_a_cut_tail(tmp_path: Path) -> None:
    """The node lost its last bytes, as after a power cut, and nobody has noticed that it was away."""
    with loaded_cluster(tmp_path, topic_config=OS) as (running, load):
        running.wait_until_whole()
        victim = running.leader(TOPIC)
        led, directories = led_by(running, victim), partition_directories(victim, TOPIC)
        at = time.monotonic()
        victim.kill()
        for directory in directories:
            newest = segments(directory)[-1]
            cut_at(newest, newest.stat().st_size - CUT_BYTES)
        forge_boot(victim.data_dir)
        victim.start()
        load.wait_for_progress()
        gap = load.gap(led, at)
    figures.note("restart within the lease with a cut tail", gap=gap)


def test_a_leader_whose_disk_fails_resigns(tmp_path: Path, machines: list[Machine]) -> None:
    with loaded_cluster(tmp_path) as (running, load):
        running.wait_until_whole()
        victim = running.leader(TOPIC)
        led, at = led_by(running, victim), time.monotonic()
        machines[victim.id - 1].break_disk(victim)
        resigned = wait_for_another_leader(running, victim, led)
        load.wait_for_progress()
        gap = load.gap(led, at)
        victim.kill()
        machines[victim.id - 1].unmount()
        assert machines[victim.id - 1].mount()
        victim.start()
    figures.note("fsync EIO on the leader", resigned=resigned, gap=gap)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[None]:
    """The first node's data directory is a small file system."""
    data = home_of(tmp_path, 1) / "data"
    data.mkdir(mode=0o700)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_MB}m,mode=0700", "postroad-test", str(data)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    yield
    kept = tmp_path / "kept"
    shutil.copytree(data, kept, dirs_exist_ok=True)
    subprocess.run(["umount", "--lazy", str(data)], check=True)


@pytest.mark.usefixtures("small_disk")
def test_a_follower_whose_disk_is_full_leaves_the_isr_and_returns(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path) as (running, load):
        running.wait_until_whole()
        full = running.node(1)
        others = [index for index in range(PARTITIONS) if running.leader(TOPIC, index) is not full]
        at = time.monotonic()
        filler = fill(full)

        def is_out(seen: Cluster) -> bool:
            return all(full.id not in in_sync(seen, index) for index in others)

        running.wait_until(is_out, "the full node has left the in-sync replicas", running.node(2))
        left = time.monotonic() - at
        load.wait_for_progress()
        gap = load.gap(range(PARTITIONS), at)
        filler.unlink()
        at = time.monotonic()
        running.wait_until_whole()
        returned = time.monotonic() - at
    figures.note("ENOSPC on a follower", left_after=left, gap=gap, in_sync_after=returned)
