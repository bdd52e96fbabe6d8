"""A backup that is taken under load, and restored after the disk is lost, counted by stock clients."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postroad.backups.create import Creation, Made
from postroad.backups.target import open_target
from postroad.client import Client
from postroad.testing import Node
from postroad.wire.backup import FindLogs
from tests.backups.lags import call
from tests.backups.load import COUNT_MAX, CREW, JOBS, LEFT, ORDERS, PARTITIONS, RIGHT, Load, Told
from tests.backups.restored import check_restored
from tests.clients.wait import PATIENCE_S, until

LOOK_S = 1.0  # for the load to go on between two looks at the logs: three of them are within a hold


class SlowClient(Client):
    """Much happens on the nodes between the answers that a cut is made of."""

    load: Load
    looks = 0

    async def call(self, api: Any, body: Any, **how: Any) -> Any:
        answer = await super().call(api, body, **how)
        if isinstance(body, FindLogs):
            self.looks += 1
            then, clock = self.load.told(), asyncio.get_running_loop()
            deadline = clock.time() + LOOK_S
            await until_async(lambda: clock.time() >= deadline or goes_on(then, self.load.told()))
        return answer


async def until_async(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110  # nobody can tell: other threads are at work
        await asyncio.sleep(0.01)


def goes_on(then: Told, now: Told) -> bool:
    """Messages were produced, read and accepted since."""
    return (
        sum(map(len, now.sent[ORDERS].values())) > sum(map(len, then.sent[ORDERS].values())) + 20
        and sum(now.committed.values()) > sum(then.committed.values()) + 20
        and len(now.accepted) > len(then.accepted) + 20
    )


def back_up_slowly(bootstrap: str, where: str, load: Load) -> Made:
    async def work() -> Made:
        async with SlowClient(bootstrap) as client:
            client.load = load
            made = await Creation(client, open_target(where), lambda seen, new: None).run()
            assert client.looks >= 6
            return made

    return asyncio.run(work())


def prepare(bootstrap: str) -> None:
    for topic, partitions in ((ORDERS, PARTITIONS), (JOBS, PARTITIONS), (LEFT, 1), (RIGHT, 1)):
        call("topic", "create", topic, "--partitions", str(partitions), bootstrap=bootstrap)
    call("subscription", "create", CREW, "--topic", JOBS, "--lock", "15s", bootstrap=bootstrap)


def has_grown(load: Load, since: Told | None, by: int = 300) -> bool:
    """Every client has had answers."""
    assert not load.failed, load.failed
    told = load.told()

    def grown(count: int, before: int) -> bool:
        return count >= before + by // 10

    sent = sum(map(len, told.sent[ORDERS].values()))
    sent_before = 0 if since is None else sum(map(len, since.sent[ORDERS].values()))
    return (
        sent >= sent_before + by
        and grown(len(told.accepted), 0 if since is None else len(since.accepted))
        and len(told.pairs) >= (0 if since is None else len(since.pairs)) + 3
        and sum(told.committed.values()) > (0 if since is None else sum(since.committed.values()))
    )


@pytest.mark.slow
def test_backup_taken_under_load_is_restored_after_the_disk_is_lost(tmp_path: Path) -> None:
    where, home = str(tmp_path / "backups"), tmp_path / "node"
    home.mkdir()
    running = Node(home)
    try:
        running.start()
        prepare(running.bootstrap)
        load = Load(running.bootstrap)
        with load.running():
            until(lambda: has_grown(load, None), "all clients are at work", PATIENCE_S)
            first = json.loads(call("backup", "create", where, "--json", bootstrap=running.bootstrap))
            between = load.told()
            until(lambda: has_grown(load, between), "all clients go on", PATIENCE_S)
            before = load.told()
            second = back_up_slowly(running.bootstrap, where, load)
            after = load.told()
            until(lambda: has_grown(load, after), "all clients go on after it", PATIENCE_S)
        running.kill()
        assert sum(map(len, load.told().sent[ORDERS].values())) < COUNT_MAX
        shutil.rmtree(running.data_dir)
        assert json.loads(call("backup", "verify", where, "--all", "--json"))[1]["damaged"] == []
        assert [each["backup"] for each in json.loads(call("backup", "list", where, "--json"))] == [
            first["backup"],
            second.name,
        ]
        call("backup", "restore", where, "--data", str(running.data_dir))
        running.start()
        counted = check_restored(running.bootstrap, before, after)
        assert min(counted["orders"], counted["jobs"], counted["pairs"]) > 0, counted
    finally:
        running.kill()
        running.release_ports()
