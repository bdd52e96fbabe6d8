"""The command as a Unix program: full and closed outputs, readers that go away, Ctrl-C, questions."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postroad.testing import Node
from tests.clients.wait import until

from .conftest import PATIENCE_S, Command

PROGRAM = [sys.executable, "-m", "postroad"]


@pytest.fixture
def topic(run: Command, name: str) -> str:
    run("publish", name, "x")
    return name


def start(node: Node, *command: str, **streams: Any) -> subprocess.Popen[str]:
    nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "POSTROAD_BOOTSTRAP": node.bootstrap}
    return subprocess.Popen(command, env=environment, text=True, **{**nothing, **streams})


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for its end: the exit code, and what it wrote to standard error."""
    try:
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    return process.returncode, errors


def shell(node: Node, line: str) -> tuple[int, str]:
    """`postroad LINE`, where the line may redirect streams."""
    return finish(start(node, "bash", "-c", f'"$@" {line}', "bash", *PROGRAM))


@pytest.mark.parametrize("line", ["topic list", "topic list --json", "config", "--help", "consume TOPIC"])
@pytest.mark.parametrize(
    ("output", "reason"), [("> /dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
def test_output_that_cannot_be_written_is_an_error(
    postroad_session: Node, topic: str, line: str, output: str, reason: str
) -> None:
    done = shell(postroad_session, f"{line.replace('TOPIC', topic)} {output}")
    assert done == (1, f"postroad: can't write to standard output: {reason}\n")


def test_letters_that_an_encoding_lacks_are_shown_by_their_numbers() -> None:
    done = subprocess.run(
        [*PROGRAM, "topic", "list", "--help"],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert "HOST:PORT[,\\u2026]" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_closed_input_and_standard_error_hurt_nobody(postroad_session: Node, topic: str) -> None:
    assert shell(postroad_session, f"publish {topic} <&- 2>&-") == (0, "")


@pytest.mark.parametrize("line", ["topic list", "--help", "consume TOPIC"])
def test_reader_that_is_gone_ends_the_command_without_a_word(
    postroad_session: Node, topic: str, line: str
) -> None:
    """As `postroad topic list | head -1` does, but for certain: nobody reads from the start."""
    reader, writer = os.pipe()
    os.close(reader)
    words = line.replace("TOPIC", topic).split()
    with os.fdopen(writer, "w") as output:
        assert finish(start(postroad_session, *PROGRAM, *words, stdout=output)) == (-signal.SIGPIPE, "")


def test_interrupt_ends_a_consumer_that_follows(postroad_session: Node, topic: str) -> None:
    following = start(postroad_session, *PROGRAM, "consume", topic, "--follow")
    assert following.stdout is not None
    assert following.stdout.readline() == "x\n"
    following.send_signal(signal.SIGINT)
    assert finish(following) == (-signal.SIGINT, "")


def test_interrupt_ends_a_publisher_that_waits_for_its_input(
    postroad_session: Node, run: Command, topic: str
) -> None:
    ours, theirs = pty.openpty()  # nobody types an end of file
    publishing = start(postroad_session, *PROGRAM, "publish", topic, stdin=theirs)
    os.write(ours, b"typed\n")
    until(lambda: "typed" in run("consume", topic).stdout, "the line that was typed is published")
    publishing.send_signal(signal.SIGINT)
    code, errors = finish(publishing)
    os.close(ours)
    os.close(theirs)
    assert (code, errors) == (-signal.SIGINT, "Each line is a message; end with Ctrl-D.\n")


DELETIONS = ["topic delete", "group delete", "subscription delete", "subscription purge"]


@pytest.mark.parametrize("command", DELETIONS)
def test_without_a_terminal_and_without_yes_nothing_is_destroyed(command: str) -> None:
    done = subprocess.run(
        [*PROGRAM, *command.split(), "anything", "--bootstrap", "127.0.0.1:1"],
        input="y\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 2
    assert "there is no terminal to ask on: add --yes" in done.stderr


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 1)])
@pytest.mark.parametrize("command", DELETIONS)
def test_on_a_terminal_whoever_destroys_is_asked(
    postroad_session: Node, run: Command, topic: str, command: str, answer: str, code: int
) -> None:
    run("consume", topic, "--group", f"{topic}-g")
    run("subscription", "create", f"{topic}-s", "--topic", topic)
    name = {"group": f"{topic}-g", "subscription": f"{topic}-s"}.get(command.split()[0], topic)
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    ended, errors = finish(start(postroad_session, *PROGRAM, *command.split(), name, stdin=theirs))
    os.close(ours)
    os.close(theirs)
    assert name in errors
    assert "[y/N]" in errors
    assert ended == code
    if code:
        assert errors.endswith("postroad: nothing was done\n")


@pytest.mark.parametrize("command", ["serve", "gateway"])
def test_ready_file_in_a_missing_directory_is_a_wrong_call(tmp_path: Path, command: str) -> None:
    done = subprocess.run(
        [*PROGRAM, command, "--ready-file", str(tmp_path / "missing/ready"), "--http", "127.0.0.1:0"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 2
    assert f"the directory '{tmp_path / 'missing'}' does not exist" in done.stderr
    assert not list(tmp_path.iterdir())


def test_node_whose_output_is_full_serves_all_the_same(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command = [*PROGRAM, "serve", "--no-http", "--kafka", "127.0.0.1:0", "--ready-file", str(ready)]
    with open("/dev/full", "w") as full:
        serving = subprocess.Popen(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    until(ready.exists, "the node is ready")
    serving.send_signal(signal.SIGTERM)
    code, errors = finish(serving)
    assert code == 0
    assert "can't write to standard output: No space left on device" in errors


def test_http_port_is_told_from_a_nodes_port(run: Command) -> None:
    """A peer that answers as an HTTP server does."""
    import socket
    from threading import Thread

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            peer, _ = listening.accept()
            with peer:
                peer.recv(1024)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = Thread(target=answer)
        thread.start()
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        result = run("topic", "list", "--bootstrap", address, code=1)
        thread.join(PATIENCE_S)
    assert result.stderr == (
        f"postroad: {address} speaks HTTP, not the Kafka protocol: name a node's Kafka port.\n"
    )
