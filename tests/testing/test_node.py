"""The helpers for users' tests: real nodes, quickly there, and gone afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from postroad.client import EARLIEST, Client, Consumer, Producer, TopicPartition, topics
from postroad.errors import UnknownTopicOrPartition
from postroad.testing import Node, NodeFailed, node
from postroad.testing.process import toml

pytest_plugins = ["pytester"]


async def publish(bootstrap: str, value: bytes) -> None:
    async with Client(bootstrap) as client, Producer(client) as producer:
        await producer.send("t", value)


async def values(bootstrap: str, count: int) -> list[bytes | None]:
    """All that is there, at least `count` messages, in as many polls as that takes."""
    found: list[bytes | None] = []
    async with asyncio.timeout(60), Client(bootstrap) as client, Consumer(client) as consumer:
        await consumer.assign({TopicPartition("t", 0): EARLIEST})
        while len(found) < count:
            found += [record.value for part in await consumer.poll(5) for record in part.records]
    return found


async def test_node_takes_clients_at_once_and_leaves_nothing_behind() -> None:
    started = time.monotonic()
    with node() as running:
        assert time.monotonic() - started < 10, "usually 0.4 s"
        await publish(running.bootstrap, b"hello")
        assert await values(running.bootstrap, 1) == [b"hello"]
        data, pid = running.data_dir, running.pid
        assert data.is_dir()
    assert not data.parent.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_data_and_port_survive_restart_and_kill() -> None:
    with node() as running:
        bootstrap = running.bootstrap
        await publish(bootstrap, b"one")
        running.restart()
        await publish(bootstrap, b"two")
        running.kill()
        assert not running.is_running
        running.start()
        assert running.bootstrap == bootstrap
        assert await values(bootstrap, 2) == [b"one", b"two"]


async def test_settings_reach_the_node() -> None:
    with node({"topics.auto_create": False, "topics.partitions": 3}) as running:
        async with Client(running.bootstrap) as client:
            with pytest.raises(UnknownTopicOrPartition):
                await client.topic("not-made")
            await topics.create(client, "made")
            assert len((await client.topic("made")).partitions) == 3


def test_wrong_setting_is_an_error_that_shows_what_the_node_said() -> None:
    with (
        pytest.raises(NodeFailed, match=r"exit code 1 instead of starting[\s\S]*topics\.auto_creates"),
        node({"topics.auto_creates": False}),
    ):
        pass


def test_own_directory_is_kept(tmp_path: Path) -> None:
    with node(directory=tmp_path) as running:
        assert running.data_dir == tmp_path / "data"
    assert (tmp_path / "data").is_dir()
    assert (tmp_path / "node.log").exists()


def test_node_killed_from_outside_may_be_started_again() -> None:
    with node() as running:
        os.kill(running.pid, signal.SIGKILL)
        running.kill()
        running.start()
        assert running.is_running


def test_nodes_stand_side_by_side() -> None:
    with node() as first, node() as second:
        assert first.bootstrap != second.bootstrap


def test_values_are_written_astoml() -> None:
    text = toml({"a.on": True, "a.text": 'say "hi"', "b.number": 3})
    assert text.split() == [
        "[a]",
        "on",
        "=",
        "true",
        "text",
        "=",
        '"say',
        '\\"hi\\""',
        "[b]",
        "number",
        "=",
        "3",
    ]


def test_fixtures_come_with_the_package(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import socket

        def reaches(node):
            host, port = node.bootstrap.split(":")
            socket.create_connection((host, int(port)), timeout=30).close()
            return node.bootstrap

        def test_fresh_node(postroad, postroad_session):
            assert reaches(postroad) != reaches(postroad_session)
        """
    )
    # Another plug-in that is found here takes seconds to import.
    others = ("-p", "no:cacheprovider", "-p", "no:schemathesis")
    pytester.runpytest_subprocess(*others).assert_outcomes(passed=1)


def test_stop_is_quick_and_clean(postroad: Node) -> None:
    started = time.monotonic()
    postroad.stop()
    assert time.monotonic() - started < 10, "usually 0.1 s"
    assert not postroad.is_running
