"""What older versions kept in `__share_group_state` moves to the ledgers, once, whatever happens."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import pytest

from postroad.broker.record_log import RecordLog
from postroad.broker.replies import replied
from postroad.broker.subscriptions import migration
from postroad.cluster.internal_topics import INTERNAL_TOPICS
from postroad.errors import StorageFailed
from postroad.queues.update import Key, Released, Update, encode_key, encode_update
from tests.broker.harness import Running, running_node
from tests.broker.test_queues import ledger_of
from tests.clients.share_session import session
from tests.clients.wait import until

OLD = "__share_group_state"
OLD_PARTITIONS = 2
GROUPS = ("workers", "auditors", "mailers")  # in both partitions of the old topic
MESSAGES = 10


class OldLogs(NamedTuple):
    """Where logs of the first partitions lie."""

    state: Path
    jobs: Path


def old_directory(home: Path) -> OldLogs:
    """A data directory as older versions left it.

    Each group is done with 0 to 2 and 5 of both partitions, and has released 6; one sought back to 4 then.
    """
    with running_node(home) as running:
        topic_id = running.create("jobs", partitions=2)
        for index in (0, 1):
            running.publish("jobs", *[b"x"] * MESSAGES, partition=index)
        gone = running.create("gone")
        create = running.node.topic_changes.create
        config = INTERNAL_TOPICS[OLD]
        running.run(create(OLD, partitions=OLD_PARTITIONS, config=config, internal=True))
        for group in GROUPS:
            for index in (0, 1):
                key = Key(group, topic_id, index)
                write(running, key, Update(1, start=0), Update(1, done=[(0, 2), (5, 5)]))
                write(running, key, Update(1, released=[Released(6, 6, 2, 1, 2)]))
            write(running, Key(group, gone, 0), Update(1, start=0))
        write(running, Key(GROUPS[0], topic_id, 0), Update(2, start=4))
        write(running, Key("deleted", topic_id, 0), Update(1, start=0), None)
        running.delete("gone")
        return OldLogs(*(Path(running.partition(topic).log.directory) for topic in (OLD, "jobs")))


def write(running: Running, key: Key, *updates: Update | None) -> None:
    partition = running.partition(OLD, crc32(key.group.encode()) % OLD_PARTITIONS)
    log = RecordLog(partition, running.node.clock, running.node.turn)
    records = [(encode_key(key), None if update is None else encode_update(update)) for update in updates]
    running.run(replied(partial(log.append, records)))


def check_migrated(running: Running) -> None:
    assert OLD not in running.node.image.topics
    subscriptions = running.node.subscriptions
    assert subscriptions.ids() == set(GROUPS)
    for group in GROUPS:
        found = {ledger.key.partition: ledger for ledger in subscriptions.ledgers(group)}
        assert sorted(found) == [0, 1]
        moved = group == GROUPS[0]
        assert [found[index].start for index in (0, 1)] == [4 if moved else 3, 3]
        assert list(found[1].done) == [(5, 5)]
        assert list(found[1].attempts) == [Released(6, 6, 2, 1, 2)]
    with session(running.bootstrap, "auditors", "jobs") as member:
        held = {each.offset: each.delivery for each in member.fetch_some().held}
        assert held == {3: 1, 4: 1, 6: 3, 7: 1, 8: 1, 9: 1}


def test_state_of_older_versions_moves_beside_the_messages(tmp_path: Path) -> None:
    old = old_directory(tmp_path)
    with running_node(tmp_path) as running:
        check_migrated(running)
        until(lambda: not old.state.exists(), "the old topic's directories are removed")
        until(lambda: ledger_of(running).log.end_offset > 3, "what was held is released")
        ends = [ledger_of(running, index=index).log.end_offset for index in (0, 1)]
    with running_node(tmp_path) as running:
        assert [ledger_of(running, index=index).log.end_offset for index in (0, 1)] == ends
        assert OLD not in running.node.image.topics


@pytest.mark.parametrize("step", ["_name_ledgers", "_write", "_delete"])
@pytest.mark.parametrize("flush", ["sync", "os"])
def test_migration_that_was_interrupted_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, flush: str
) -> None:
    old_directory(tmp_path)
    original, calls = getattr(migration, step), []

    async def fail_after(*arguments: object) -> None:
        """The first call does its work; the second finds the disk gone, and so does a crash behind it."""
        calls.append(step)
        if len(calls) > 1 or step != "_write":
            raise StorageFailed("The disk is gone.")
        await original(*arguments)

    for _ in range(2):
        calls.clear()
        monkeypatch.setattr(migration, step, fail_after)
        with pytest.raises(StorageFailed), running_node(tmp_path, durability_flush=flush):
            pass
        assert calls
        monkeypatch.undo()
    with running_node(tmp_path, durability_flush=flush) as running:
        check_migrated(running)


def test_node_does_not_start_while_the_old_state_can_not_be_read(tmp_path: Path) -> None:
    old, aside = old_directory(tmp_path).state, tmp_path / "aside"
    old.rename(aside)
    old.write_bytes(b"no directory")
    with pytest.raises(StorageFailed), running_node(tmp_path):
        pass
    old.unlink()
    aside.rename(old)
    with running_node(tmp_path) as running:
        check_migrated(running)


def test_messages_that_were_lost_before_the_migration_are_forgotten(tmp_path: Path) -> None:
    (segment,) = old_directory(tmp_path).jobs.glob("*.log")
    content = segment.read_bytes()
    segment.write_bytes(content[: len(content) // MESSAGES * 4])
    with running_node(tmp_path) as running:
        assert running.partition("jobs").high_watermark == 4
        (ledger,) = [one for one in running.node.subscriptions.ledgers("auditors") if not one.key.partition]
        assert (ledger.start, ledger.generation, list(ledger.done)) == (3, 2, [])
