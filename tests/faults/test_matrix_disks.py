"""The failure matrix: disks fail, fill up and lose what was not synced, under the load of all clients."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.client.metadata import Cluster
from postroad.testing import ClusterNode, cluster
from tests.clients.wait import until

from . import figures
from .epoch_witness import EpochSender, EpochWitness
from .files import cut_at, fill, partition_directories, segments
from .load import PARTITIONS, TOPIC, running_threads
from .loaded_cluster import in_sync, led_by, loaded_cluster, wait_for_another_leader
from .machine import Machine, forge_boot, installed
from .replicas_at_rest import assert_equal_at_rest

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


def are_in_sync(nodes: set[int]) -> Callable[[Cluster], bool]:
    """Whether the load's partitions have just these in sync."""
    return lambda seen: all(set(in_sync(seen, index)) == nodes for index in range(PARTITIONS))


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


def test_the_power_of_all_is_cut_where_nothing_is_synced(tmp_path: Path, machines: list[Machine]) -> None:
    """What was acknowledged last may be lost. But whoever has read a message never reads another one at its
    offset, unless a later leader epoch says that it is another one."""
    settings = {"topics.replicas": 3}
    with cluster(nodes=NODES, settings=settings, etcd=1, directory=tmp_path) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3, config=OS)])[TOPIC].result(60)
        sender, witness = EpochSender(running), EpochWitness(running)
        with running_threads(sender, witness):
            until(lambda: witness.has_read(300), "messages are read", 60)
            for machine, node in zip(machines, running.nodes, strict=True):
                machine.cut_power(node)
            read_before, acknowledged = len(witness.seen), sender.acknowledged
            for machine, node in zip(machines, running.nodes, strict=True):
                return_power(machine, node)
            for node in running.nodes:
                node.wait_until_ready()
            running.wait_until_whole()
            until(lambda: witness.has_read(300, since_epoch=1), "messages of later leaders are read", 120)
        kept = witness.read_all()
        lost = sum(place not in kept for place in witness.seen)
        assert witness.contradictions == []
        assert len(witness.seen) > read_before
    assert_equal_at_rest(running)
    figures.note(
        "power cut of all, flush os", acknowledged=acknowledged, read=read_before, read_and_lost=lost
    )


def test_a_replica_of_the_elr_leads_when_the_last_in_sync_has_lost_its_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was committed while one was in sync, so those that left then have all of it."""
    with loaded_cluster(tmp_path) as (running, load):
        running.wait_until_whole()
        last, eligible, other = running.nodes
        for leaving, left in ((other, {last.id, eligible.id}), (eligible, {last.id})):
            leaving.kill()
            running.wait_until(are_in_sync(left), f"only {left} are in sync", last)
        last.kill()
        shutil.rmtree(last.data_dir)
        eligible.start()
        at = time.monotonic()
        running.wait_until(
            lambda seen: {state.leader for state in seen.topics[TOPIC].partitions} == {eligible.id},
            "the replica that may be elected leads",
            eligible,
        )
        elected = time.monotonic() - at
        other.start()
        monkeypatch.setenv("POSTROAD_NODE_REPLACE", "true")
        last.start()
        monkeypatch.delenv("POSTROAD_NODE_REPLACE")
        load.wait_for_progress()
    figures.note("ISR {A}, ELR {B}, A loses its disk", b_leads_after=elected)


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
def test_a_node_whose_disk_is_full_hands_over_leaves_the_isr_and_returns(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path) as (running, load):
        running.wait_until_whole()
        full = running.node(1)
        led = led_by(running, full)
        at = time.monotonic()
        filler = fill(full)

        def is_out(seen: Cluster) -> bool:
            return all(full.id not in in_sync(seen, index) for index in range(PARTITIONS))

        handed_over = wait_for_another_leader(running, full, led)
        running.wait_until(is_out, "the full node has left the in-sync replicas", running.node(2))
        left = time.monotonic() - at
        load.wait_for_progress()
        gap_leader = load.gap(led, at)
        gap = load.gap(range(PARTITIONS), at)
        filler.unlink()
        at = time.monotonic()
        running.wait_until_whole()
        returned = time.monotonic() - at
    figures.note(
        "ENOSPC on a node",
        others_lead_after=handed_over,
        gap_where_it_led=gap_leader,
        left_after=left,
        gap=gap,
        in_sync_after=returned,
    )
