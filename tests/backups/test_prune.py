"""`postroad backup prune`: what stays can be restored, whatever interrupts it and whoever else is at work."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from postroad.backups import create, marks
from postroad.backups.create import Creation
from postroad.backups.directory import DirectoryTarget
from postroad.backups.errors import TargetFailed
from postroad.backups.keep import Keep
from postroad.backups.prune import preview, prune
from postroad.backups.target import Target
from postroad.client import Client
from postroad.testing import Node, node
from tests.backups.lags import call
from tests.backups.test_backups import back_up, bucket, parts, publish, restored
from tests.clients.confluent import consumer, read
from tests.clients.wait import PATIENCE_S, until

__all__ = ["bucket"]  # a fixture


@pytest.fixture(scope="module")
def running() -> Iterator[Node]:
    with node() as started:
        yield started


@pytest.fixture
def where(tmp_path: Path) -> str:
    return str(tmp_path / "backups")


def several(running: Node, where: str, topic: str, count: int = 4) -> list[str]:
    """Backups of a topic that share parts, and of which some have one of their own: the last part of a log is
    read again with what follows as long as it is small."""
    call("topic", "create", topic, bootstrap=running.bootstrap)
    names = []
    for number in range(count):
        publish(running, topic, 6, size=100_000, first=6 * number)
        names.append(back_up(running, where)["backup"])
    return names


def test_what_only_pruned_backups_need_goes_and_the_rest_can_be_restored(
    running: Node, where: str, tmp_path: Path
) -> None:
    names = several(running, where, "pruned")
    foreign = Path(where, "parts", "notes.txt")
    foreign.write_text("somebody's")
    before = len(parts(where))
    rule = ("--keep-last", "2")
    shown = json.loads(call("backup", "prune", where, *rule, "--dry-run", "--json"))
    assert (shown["removed"], shown["kept"]) == (names[:2], names[2:])
    assert shown["parts"] > 0
    assert len(parts(where)) == before
    stored = sum(path.stat().st_size for path in parts(where))
    assert "add --yes" in call("backup", "prune", where, *rule, code=2)
    told = call("backup", "prune", where, *rule, "--yes")
    assert f"deleted 2 backups and {shown['bytes']} bytes that no other needs; 2 backups stay" in told
    assert sum(path.stat().st_size for path in parts(where)) == stored - shown["bytes"]
    assert len(parts(where)) == before - shown["parts"]
    assert foreign.exists()
    assert [each["backup"] for each in json.loads(call("backup", "list", where, "--json"))] == names[2:]
    assert "damaged" not in call("backup", "verify", where, "--all")
    again = call("backup", "prune", where, *rule, "--yes")
    assert "deleted 0 backups and 0 bytes" in again
    assert back_up(running, where)["new_parts"] <= 1  # the store's, at most
    started = restored(tmp_path, where, "--backup", names[2])
    try:
        started.start()
        with consumer(started.bootstrap) as source:
            source.assign([TopicPartition("pruned", 0, 0)])
            assert [message.value().split()[0] for message in read(source, 18)] == [
                b"%d" % n for n in range(18)
            ]
    finally:
        started.stop()


def test_prune_in_an_object_store(running: Node, bucket: str) -> None:
    names = several(running, bucket, "pruned-far", 2)
    call("backup", "prune", bucket, "--keep-last", "1", "--yes")
    assert [each["backup"] for each in json.loads(call("backup", "list", bucket, "--json"))] == names[1:]
    assert "is whole" in call("backup", "verify", bucket)
    assert call("backup", "prune", bucket, "--keep-last", "1", "--yes").startswith("deleted 0 backups and 0 ")


def test_prune_wants_to_know_what_stays(where: str) -> None:
    assert "say which backups stay" in call("backup", "prune", where, code=2)
    for number in ("0", "-1", "many", "99999999999"):
        assert "is not a whole number" in call("backup", "prune", where, "--keep-last", number, code=2)


def test_nothing_is_deleted_where_a_backup_that_stays_is_damaged(running: Node, where: str) -> None:
    names = several(running, where, "pruned-hurt", 3)
    path = Path(where, "manifests", f"{names[1]}.json")
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    before = len(parts(where))
    said = call("backup", "prune", where, "--keep-last", "2", "--yes", code=1)
    assert "Nobody can tell which parts it needs, so nothing was deleted" in said
    assert len(parts(where)) == before
    call("backup", "prune", where, "--keep-last", "1", "--yes")  # without it, nobody has to know
    assert "is whole" in call("backup", "verify", where, "--all")


class Interrupted(DirectoryTarget):
    """A target that a process loses after so many deletes."""

    def __init__(self, path: Path, deletes: int) -> None:
        super().__init__(path)
        self._left = deletes

    def delete(self, path: str) -> None:
        if not self._left:
            raise TargetFailed("it is gone")
        self._left -= 1
        super().delete(path)


def test_prune_that_is_interrupted_anywhere_has_harmed_nothing(running: Node, where: str) -> None:
    several(running, where, "pruned-half", 6)
    all_of_it = preview(DirectoryTarget(Path(where)), Keep(last=2))
    steps = len(all_of_it.removed) + 1 + all_of_it.parts
    assert all_of_it.parts >= 2
    for _ in range(steps):
        with pytest.raises(TargetFailed):
            prune(Interrupted(Path(where), 1), Keep(last=2), lambda done: None)
        forget_marks(where)
        assert "damaged" not in call("backup", "verify", where, "--all")
        if not preview(DirectoryTarget(Path(where)), Keep(last=2)).parts:
            break
    prune(DirectoryTarget(Path(where)), Keep(last=2), lambda done: None)
    assert preview(DirectoryTarget(Path(where)), Keep(last=2))[1:] == ([], 0, 0)
    assert "is whole" in call("backup", "verify", where, "--all")


def forget_marks(where: str) -> None:
    """As ten minutes do."""
    for path in Path(where, "marks").iterdir():
        path.write_bytes(b'{"at_ms": 1}')


def test_what_a_killed_backup_has_stored_is_kept_for_the_next(running: Node, where: str) -> None:
    several(running, where, "pruned-unfinished", 2)
    publish(running, "pruned-unfinished", 30, size=100_000)
    with pytest.raises(TargetFailed):
        back_up_to(running, Refusing(Path(where)))
    stored = len(parts(where))
    assert Path(where, "unfinished.json").exists()
    call("backup", "prune", where, "--keep-last", "2", "--yes")
    assert len(parts(where)) == stored
    back_up(running, where)
    assert "is whole" in call("backup", "verify", where, "--all")


class Refusing(DirectoryTarget):
    """It takes parts, but no manifest."""

    def put(self, path: str, content: bytes | bytearray) -> None:
        if path.startswith("manifests/"):
            raise TargetFailed("it is gone")
        super().put(path, content)


def back_up_to(running: Node, target: Target) -> None:
    async def work() -> None:
        async with Client(running.bootstrap) as client:
            await Creation(client, target, lambda seen, new: None).run()

    asyncio.run(work())


class Held(DirectoryTarget):
    """One process of two stands still before a step, until the other has come to where it matters."""

    def __init__(self, path: Path, before: str) -> None:
        super().__init__(path)
        self._before = before
        self.reached, self.go_on = threading.Event(), threading.Event()

    def put(self, path: str, content: bytes | bytearray) -> None:
        self._stand("put", path)
        super().put(path, content)

    def delete(self, path: str) -> None:
        self._stand("delete", path)
        super().delete(path)

    def _stand(self, what: str, path: str) -> None:
        if f"{what} {path}".startswith(self._before):
            self.reached.set()
            assert self.go_on.wait(PATIENCE_S)


def test_backup_waits_for_a_prune_and_takes_over_nothing_that_goes(running: Node, where: str) -> None:
    several(running, where, "pruned-first", 3)
    target = Held(Path(where), "delete parts/")
    pruning = threading.Thread(target=prune, args=(target, Keep(last=1), lambda done: None))
    pruning.start()
    try:
        assert target.reached.wait(PATIENCE_S)
        command = [sys.executable, "-m", "postroad", "backup", "create", where, "-b", running.bootstrap]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as creating:
            until(lambda: was_turned_away(where), "the backup has seen the prune", PATIENCE_S)
            assert creating.poll() is None
            target.go_on.set()
        assert creating.returncode == 0
    finally:
        target.go_on.set()
        pruning.join()
    assert len(json.loads(call("backup", "list", where, "--json"))) == 2
    assert "damaged" not in call("backup", "verify", where, "--all")
    assert not list(Path(where, "marks").iterdir())


def was_turned_away(where: str) -> bool:
    return any(path.name.startswith("create-") for path in Path(where, "marks").iterdir())


def test_prune_does_not_begin_while_a_backup_is_made(running: Node, where: str) -> None:
    several(running, where, "pruned-later", 3)
    publish(running, "pruned-later", 3)
    target = Held(Path(where), "put parts/")
    creating = threading.Thread(target=back_up_to, args=(running, target))
    creating.start()
    try:
        assert target.reached.wait(PATIENCE_S)
        said = call("backup", "prune", where, "--keep-last", "1", "--yes", code=1)
        assert "a backup is being made there" in said
    finally:
        target.go_on.set()
        creating.join()
    assert len(json.loads(call("backup", "list", where, "--json"))) == 4
    assert not list(Path(where, "marks").iterdir())
    call("backup", "prune", where, "--keep-last", "1", "--yes")


def test_killed_commands_stop_the_others_for_ten_minutes_only(
    running: Node, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    several(running, where, "pruned-dead", 2)
    target = DirectoryTarget(Path(where))
    marks.Mark(target, marks.PRUNE).write()
    monkeypatch.setattr(create, "PRUNE_WAIT_S", 0.0)
    assert "backups are being pruned there" in call(
        "backup", "create", where, bootstrap=running.bootstrap, code=1
    )
    forget_marks(where)
    back_up(running, where)
    marks.Mark(target, marks.CREATE).write()
    assert "a backup is being made" in call("backup", "prune", where, "--keep-last", "1", "--yes", code=1)
    forget_marks(where)
    call("backup", "prune", where, "--keep-last", "1", "--yes")


def test_backup_that_was_taken_for_dead_leaves_no_manifest(running: Node, where: str) -> None:
    names = several(running, where, "pruned-asleep", 2)
    publish(running, "pruned-asleep", 3)
    for before in ("put parts/", "put manifests/"):
        with pytest.raises(marks.MarkLost, match="give it again"):
            back_up_to(running, Pruned(Path(where), before))
        assert [each["backup"] for each in json.loads(call("backup", "list", where, "--json"))] == names
        publish(running, "pruned-asleep", 3)


class Pruned(DirectoryTarget):
    """Before a step others remove the mark of whoever takes it, as if it had stood still for ten minutes."""

    def __init__(self, path: Path, before: str) -> None:
        super().__init__(path)
        self._place, self._before = path, before

    def put(self, path: str, content: bytes | bytearray) -> None:
        if f"put {path}".startswith(self._before):
            for mark in Path(self._place, "marks").iterdir():
                mark.unlink()
        super().put(path, content)
