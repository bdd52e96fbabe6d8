"""Damage to the state of groups costs what its batch held: duplicates, never messages, and no other group."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from postroad.broker.metrics.collect import collect
from postroad.broker.own_batch import append_own
from postroad.broker.partition import Partition
from postroad.broker.replies import replied
from postroad.wire.batch import HEADER_BYTES, walk
from postroad.wire.messages import offset_commit, offset_fetch
from postroad.wire.records import Record
from tests.broker.harness import Running, running_node
from tests.broker.test_queues import GROUP, configure, ledger_of, publish_together
from tests.clients.share_session import Error, Fate, Word, session
from tests.clients.wait import until

OFFSETS_TOPIC = "__consumer_offsets"
GROUPS = ("billing", "mail", "search")
DAMAGED = "mail"

StoredBatch = tuple[Path, int, int]
"""A segment, and a batch's position and size in it."""


def commit(running: Running, group: str, offset: int) -> None:
    partition = offset_commit.OffsetCommitRequestPartition(0, offset)
    asked = offset_commit.OffsetCommitRequestTopic("orders", partitions=[partition])
    request = offset_commit.OffsetCommitRequest(group, -1, "", -1, None, [asked])
    answer = running.call(offset_commit, 9, request)
    assert answer.topics[0].partitions[0].error_code == 0


def committed(running: Running, group: str) -> int:
    asked = offset_fetch.OffsetFetchRequestTopics("orders", partition_indexes=[0])
    wanted = offset_fetch.OffsetFetchRequestGroup(group, topics=[asked])
    answer = running.call(offset_fetch, 8, offset_fetch.OffsetFetchRequest(groups=[wanted])).groups[0]
    assert answer.error_code == 0
    return int(answer.topics[0].partitions[0].committed_offset)


def batches_of(partition: Partition) -> list[StoredBatch]:
    """Each batch in the log of a partition or ledger."""
    directory = Path(partition.log.directory)
    found = []
    for segment in sorted(directory.glob("*.log")):
        found += [(segment, at, header.size) for at, header in walk(memoryview(segment.read_bytes()))]
    return found


def flip(segment: Path, position: int, bit: int) -> None:
    content = bytearray(segment.read_bytes())
    content[position] ^= 1 << bit
    segment.write_bytes(content)


def overwrite(segment: Path, position: int, length: int) -> None:
    content = bytearray(segment.read_bytes())
    content[position : position + length] = b"\xa5" * length
    segment.write_bytes(content)


def put_back(directory: Path, files: dict[Path, bytes]) -> None:
    for path in directory.iterdir():
        path.unlink()
    for path, content in files.items():
        path.write_bytes(content)


def bits(size: int) -> list[tuple[int, int]]:
    """(byte, bit): one in each field of the header, and some all over the records."""
    header = [*range(0, 12, 3), 14, 16, 18, 22, 25, 30, 40, 45, 51, 55, 58, 60]
    return [(at, at % 8) for at in [*header, *range(HEADER_BYTES, size, 17)]]


@pytest.fixture
def stopped(tmp_path: Path) -> list[StoredBatch]:
    """Each group has committed 5, then 7; the batches of `__consumer_offsets`."""
    with running_node(tmp_path) as running:
        running.create("orders")
        running.publish("orders", *[b"x"] * 10)
        for offset in (5, 7):
            for group in GROUPS:
                commit(running, group, offset)
        return batches_of(running.partition(OFFSETS_TOPIC))


def test_one_flipped_bit_costs_nothing(tmp_path: Path, stopped: list[StoredBatch]) -> None:
    segment, position, size = stopped[-2]  # the second commit of the second group
    files = {path: path.read_bytes() for path in segment.parent.iterdir()}
    for at, bit in bits(size):
        put_back(segment.parent, files)
        flip(segment, position + at, bit)
        with running_node(tmp_path) as running:
            found = {group: committed(running, group) for group in GROUPS}
            (coordinator,) = running.node.groups.all()
            assert not coordinator.doubts.offset_keys
        assert found == dict.fromkeys(GROUPS, 7), f"bit {bit} of byte {at}"


def test_damaged_commit_costs_duplicates_and_no_other_group_notices(
    tmp_path: Path, stopped: list[StoredBatch]
) -> None:
    segment, position, size = stopped[-2]
    files = {path: path.read_bytes() for path in segment.parent.iterdir()}
    for at in range(0, size, 19):
        put_back(segment.parent, files)
        overwrite(segment, position + at, min(23, size - at))
        with running_node(tmp_path) as running:
            found = {group: committed(running, group) for group in GROUPS}
            (coordinator,) = running.node.groups.all()
            assert set(coordinator.doubts.offset_keys) >= set(GROUPS), f"from byte {at} on"
            commit(running, "late", 3)
            assert committed(running, "late") == 3
        assert found == {"billing": 7, DAMAGED: 5, "search": 7}, f"from byte {at} on"


def test_group_whose_only_commit_is_damaged_begins_at_the_first_message(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        running.create("orders")
        running.publish("orders", *[b"x"] * 10)
        commit(running, "billing", 7)
        commit(running, "mail", 7)
        segment, position, size = batches_of(running.partition(OFFSETS_TOPIC))[-1]
    overwrite(segment, position + size - 9, 4)  # in the value: it can be seen whose it was
    with running_node(tmp_path) as running:
        assert committed(running, "mail") == 0, "else auto.offset.reset=latest would pass messages over"
        assert committed(running, "billing") == 7
        assert 'group="mail",topic="orders",partition="0"} 1' in doubts(running, "group")
        assert "in doubt: orders-0. " in cli(running, "group", "describe", "mail")
        assert json.loads(cli(running, "group", "describe", "mail", "--json"))["in_doubt"] == ["orders-0"]
        commit(running, "mail", 9)
        assert "mail" not in doubts(running, "group"), "its own commit ends the doubt"
        assert "billing" in doubts(running, "group")
    with running_node(tmp_path) as running:
        assert committed(running, "mail") == 9
        (coordinator,) = running.node.groups.all()
        assert (coordinator.doubts.batches, coordinator.doubts.offset_keys) == (1, {}), (
            "it is not repaired twice"
        )


def test_record_that_nobody_understands_costs_what_it_held_and_no_other_group_notices(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        running.create("orders")
        running.publish("orders", *[b"x"] * 10)
        commit(running, "billing", 7)
        odd = [Record(0, 1_000, b'["offset","mail","orders",0]', b'{"offset": "seven"}', [])]
        partition = running.partition(OFFSETS_TOPIC)
        running.run(replied(partial(append_own, partition, running.node.turn, odd, 1_000)))
        commit(running, "search", 5)
    with running_node(tmp_path) as running:
        assert (committed(running, "billing"), committed(running, "search")) == (7, 5)


def cli(running: Running, *command: str) -> str:
    called = [sys.executable, "-m", "postroad", *command, "--bootstrap", running.bootstrap]
    return subprocess.run(called, check=True, capture_output=True, text=True, timeout=60).stdout


def doubts(running: Running, kind: str) -> str:
    """What the metrics say of them."""
    lines = running.run(collect(running.node)).splitlines()
    return "\n".join(line for line in lines if line.startswith(f"postroad_{kind}_in_doubt{{"))


# --- subscriptions


def accept(running: Running, group: str, first: int, last: int) -> StoredBatch:
    """The batch that holds the acceptance; when the session ends, that of what it gives back follows."""
    with session(running.bootstrap, group, "jobs") as member:
        held: set[int] = set()
        while not held >= set(range(first, last + 1)):
            held |= {one.offset for one in member.fetch_some().held}
        assert member.acknowledge(Word(first, last, [Fate.ACCEPT])) == Error.NONE
        return batches_of(ledger_of(running))[-1]


def delivered(running: Running, group: str) -> set[int]:
    until(lambda: running.node.subscriptions.loaded, "its state is loaded")
    with session(running.bootstrap, group, "jobs") as member:
        return {one.offset for one in member.fetch_some().held}


def work_off(running: Running, *groups: str) -> StoredBatch:
    """Each of the groups accepts messages 0 to 2, 5 and 6 of ten; the batch that holds the last of it."""
    running.create("jobs")
    for group in groups:
        latest = {"share_auto_offset_reset": "latest"}  # a beginning that is forgotten would cost messages
        configure(running, group, postroad_topics="jobs", **latest)
    publish_together(running, "jobs", 10)
    for group in groups:
        accept(running, group, 0, 2)
        accepted = accept(running, group, 5, 6)
    return accepted


def test_damaged_state_of_subscriptions_costs_second_deliveries_and_no_message(tmp_path: Path) -> None:
    """Whichever batch of the ledger is hit: what was not accepted is delivered."""
    with running_node(tmp_path) as running:
        work_off(running, GROUP, "other")
        found = batches_of(ledger_of(running))
    segment = found[0][0]
    files = {path: path.read_bytes() for path in segment.parent.iterdir()}
    for number, (_, position, size) in enumerate(found):
        for at, length in ((0, 12), (17, 4), (57, 16), (size // 2, 9), (size - 9, 5)):
            put_back(segment.parent, files)
            overwrite(segment, position + at, length)
            with running_node(tmp_path) as running:
                for group in (GROUP, "other"):
                    again = delivered(running, group)
                    assert again >= {3, 4, 7, 8, 9}, f"batch {number}, from byte {at} on: {group}"


def test_log_of_subscriptions_begins_behind_the_damage_once_all_is_written_anew(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        segment, position, size = work_off(running, GROUP)
    overwrite(segment, position + size - 9, 5)
    with running_node(tmp_path) as running:
        state = ledger_of(running).log
        until(lambda: state.start_offset > 2, "what lies before, and the damage, is deleted")
        assert f'subscription="{GROUP}"' in doubts(running, "subscription")
        assert "in doubt: " in cli(running, "subscription", "describe", GROUP)
    with running_node(tmp_path) as running:
        assert delivered(running, GROUP) == {3, 4, 5, 6, 7, 8, 9}
        assert doubts(running, "subscription") == ""
