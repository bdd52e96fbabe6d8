"""`postroad mirror` as a process: its last words, its metrics, and what it refuses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from click.testing import CliRunner

from postroad.cli import main
from postroad.testing import Node
from postroad.testing.ports import hold
from tests.clients.wait import until
from tests.spark import plain
from tests.spark.plain import Message


def command(west: Node, east: Node, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "postroad", "mirror", "-b", west.bootstrap, "--to", east.bootstrap, *more
    ]  # fmt: skip


def metric(page: str, name: str, topic: str) -> float:
    line = next(line for line in page.splitlines() if line.startswith(f'{name}{{topic="{topic}"}}'))
    return float(line.rpartition(" ")[2])


def test_lag_is_told_in_seconds_and_grows_while_the_target_is_away(
    west: Node, postroad: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(west.bootstrap, topic)
    plain.send(west.bootstrap, topic, [Message(b"one")])
    held = hold("127.0.0.1:0")
    address = "{}:{}".format(*held.getsockname())
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(
            command(west, postroad, "--topic", topic, "--metrics", address),
            stdout=subprocess.PIPE,
            stderr=log,
        )

    def page() -> str:
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    try:
        until(
            lambda: (
                (text := page())
                and "lag_seconds{" in text
                and metric(text, "postroad_mirror_messages_total", topic) == 1
                and metric(text, "postroad_mirror_lag_seconds", topic) < 1.5
            ),
            "it is mirrored",
        )
        postroad.kill()
        plain.send(west.bootstrap, topic, [Message(b"two")])
        until(lambda: metric(page(), "postroad_mirror_lag_seconds", topic) > 2.5, "the lag grows")
        postroad.start()
        until(lambda: metric(page(), "postroad_mirror_messages_total", topic) == 2, "it goes on")
        until(lambda: metric(page(), "postroad_mirror_lag_seconds", topic) < 1.5, "the lag falls")
        assert metric(page(), "postroad_mirror_lag_messages", topic) == 0
        running.send_signal(signal.SIGTERM)
        said, _ = running.communicate(timeout=30)
    finally:
        running.kill()
        running.wait()
        held.close()
    assert (running.returncode, said.decode().splitlines()[0]) == (
        0,
        f"mirrored 2 messages of 1 topics to {postroad.bootstrap}",
    )


def test_a_run_that_ends_says_what_it_did(west: Node, east: Node, topic: str) -> None:
    plain.create(west.bootstrap, topic)
    plain.send(west.bootstrap, topic, plain.numbered(7))
    done = subprocess.run(
        command(west, east, "--topic", topic, "--once", "--json"), capture_output=True, check=True, timeout=60
    )
    assert json.loads(done.stdout) == {
        "topics": {topic: {"copied": 7, "behind": 0}},
        "groups": {},
        "subscriptions": {},
        "access_rules": None,
        "is_complete": True,
    }


def test_wrong_calls_are_refused() -> None:
    def called(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["mirror", *words])
        return result.exit_code, result.output

    assert called("--topic", "a")[0] == 2
    nobody = ("-b", "127.0.0.1:1", "--to", "127.0.0.1:1")
    assert "nothing listens" in called(*nobody, "--topic", "a", "--once")[1]
    assert called("--to", "no address/", "--topic", "a")[0] == 2
