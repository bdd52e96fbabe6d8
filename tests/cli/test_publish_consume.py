"""`postroad publish` and `postroad consume`: what goes in comes out, in every form."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from postroad.testing import Node
from postroad.wire.compression import NAMES

from .conftest import PATIENCE_S, Command, Program, read_lines


def test_arguments_are_messages(run: Command, name: str) -> None:
    assert run("publish", name, "one", "two").stderr == f"published 2 messages to {name}\n"
    assert run("consume", name).stdout == "one\ntwo\n"
    assert run("publish", name, "three", "-v").stdout == "0 2\n"


def test_lines_of_standard_input_are_messages(program: Program, name: str) -> None:
    program("publish", name, stdin="one\ntwo\r\nlast without an end")
    assert program("consume", name).stdout == "one\ntwo\nlast without an end\n"


def test_files_are_messages_whole_or_by_line(run: Command, name: str, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"a\nb\n")
    run("publish", name, "--file", str(file))
    run("publish", name, "--file", str(file), "--lines")
    values = [message["value"] for message in read_lines(run("consume", name, "--json").stdout)]
    assert values == ["a\nb\n", "a", "b"]


def test_key_separator_headers_and_null_values(program: Program, name: str) -> None:
    program("publish", name, "-K", ":", "-H", "source=shop", "--empty-is-null", stdin="k1:v:1\nk2:\n")
    first, second = read_lines(program("consume", name, "--json").stdout)
    assert (first["key"], first["value"], first["headers"]) == ("k1", "v:1", [["source", "shop"]])
    assert (second["key"], second["value"]) == ("k2", None)
    assert program("consume", name, "--keys", "--headers", "--separator", "|").stdout == (
        "source=shop|k1|v:1\nsource=shop|k2|\n"
    )


def test_line_without_its_separator_is_named(program: Program, name: str) -> None:
    done = program("publish", name, "-K", ":", stdin="k:v\nno separator\n", code=1)
    assert "message 2 has no separator ':'" in done.stderr


def test_json_goes_round_byte_for_byte(program: Program, name: str, tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\x00\xfe")
    program("publish", name, "--file", str(binary), "-k", "key", "-H", "a=1", "-H", "a=2")
    written = program("consume", name, "--json").stdout
    assert read_lines(written)[0]["value"] == {"base64": "/wD+"}
    program("publish", f"{name}-copy", "--json", stdin=written)
    copied = program("consume", f"{name}-copy", "--json").stdout
    assert copied.replace(f"{name}-copy", name) == written


def test_any_json_value_is_published_as_its_text(program: Program, name: str) -> None:
    program("publish", name, "--json", stdin='{"value": {"n": 1}, "headers": {"h": "x"}}\n{"value": [1]}\n')
    first, second = read_lines(program("consume", name, "--json").stdout)
    assert (first["value"], first["headers"], second["value"]) == ('{"n":1}', [["h", "x"]], "[1]")


@pytest.mark.parametrize("line", ["not json", "[1]", '{"key": "k"}', '{"value": 1, "partition": "x"}'])
def test_json_that_is_no_message_is_refused_by_number(program: Program, name: str, line: str) -> None:
    done = program("publish", name, "--json", stdin=f'{{"value": "ok"}}\n{line}\n', code=1)
    assert done.stderr.startswith("postroad: message 2 is not")


@pytest.mark.parametrize("compression", NAMES)
def test_every_compression_is_read_back(run: Command, name: str, compression: str) -> None:
    run("publish", name, "text " * 100, "-z", compression)
    assert run("consume", name).stdout == "text " * 100 + "\n"


def test_partitions_are_chosen_and_kept(run: Command, name: str) -> None:
    run("topic", "create", name, "-p", "3")
    run("publish", name, "-p", "2", "x")
    assert run("consume", name, "-p", "2").stdout == "x\n"
    assert run("consume", name, "-p", "0").stdout == ""
    assert "there is no 9" in run("consume", name, "-p", "9", code=1).stderr


def test_reading_starts_where_it_is_told(run: Command, name: str) -> None:
    before = time.time()
    run("publish", name, *map(str, range(10)))
    assert run("consume", name, "--from-beginning", "-n", "3").stdout == "0\n1\n2\n"
    assert run("consume", name, "--from", "7").stdout == "7\n8\n9\n"
    assert run("consume", name, "--from", "-2").stdout == "8\n9\n"
    assert run("consume", name, "--from", "end").stdout == ""
    assert run("consume", name, "--from", "99999").stdout == ""
    assert run("consume", name, "--from", "1h", "-n", "1").stdout == "0\n"
    moment = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(before + 3600))
    assert run("consume", name, "--from", moment).stdout == ""


def test_partition_without_messages_is_not_said_to_be_too_old(run: Command, name: str) -> None:
    run("topic", "create", name, "--partitions", "2")
    run("publish", name, "--partition", "1", "one")
    told = run("consume", name, "--from", "1960-01-01")
    assert (told.stdout, told.stderr) == ("one\n", "")
    assert run("consume", name, "--from", "2999-01-01").stderr == (
        f"no message in {name}/1 is that recent: using the end instead\n"
    )


def test_group_goes_on_where_it_stopped_even_within_a_batch(run: Command, name: str) -> None:
    run("publish", name, *map(str, range(6)))
    assert run("consume", name, "-g", name, "-n", "2").stdout == "0\n1\n"
    assert run("consume", name, "-g", name).stdout == "2\n3\n4\n5\n"
    assert run("consume", name, "-g", name).stdout == ""


def test_unknown_topic_is_an_error_and_is_not_made(run: Command, name: str) -> None:
    assert run("consume", name, code=1).stderr.startswith(f"postroad: there is no topic {name}")
    assert name not in run("topic", "list").stdout


def test_following_writes_each_message_as_it_comes_until_ctrl_c(
    run: Command, name: str, postroad_session: Node
) -> None:
    run("publish", name, "first")
    command = [
        sys.executable,
        "-m",
        "postroad",
        "consume",
        name,
        "--follow",
        "-b",
        postroad_session.bootstrap,
    ]
    following = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert following.stdout is not None
        assert following.stdout.readline() == b"first\n"
        run("publish", name, "second")
        assert following.stdout.readline() == b"second\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(PATIENCE_S) == -signal.SIGINT
    finally:
        following.kill()
        following.communicate()


def test_line_is_sent_before_the_next_one_comes(run: Command, name: str, postroad_session: Node) -> None:
    run("topic", "create", name)
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "postroad", "publish", name, "-b", postroad_session.bootstrap]
    publishing = subprocess.Popen(command, stdin=reading, stderr=subprocess.PIPE)
    os.close(reading)
    try:
        os.write(writing, b"typed\n")
        deadline = time.monotonic() + PATIENCE_S
        while run("consume", name).stdout != "typed\n":
            assert time.monotonic() < deadline
        os.close(writing)
        assert publishing.wait(PATIENCE_S) == 0
    finally:
        publishing.kill()
        publishing.communicate()


def test_time_that_can_not_be_read_is_not_published(run: Command, name: str) -> None:
    told = run("publish", name, "-H", "postroad-deliver-at=soon", "x", code=2).stderr
    assert "postroad-deliver-at is 'soon'; it must be milliseconds in up to 15 digits" in told


def test_file_comes_back_byte_for_byte(run: Command, name: str, tmp_path: Path) -> None:
    content = bytes(range(256)) * 100 + b"\r\n\n"
    (tmp_path / "sent").write_bytes(content)
    run("publish", name, "--file", str(tmp_path / "sent"))
    assert run("consume", name, "--raw").stdout_bytes == content
    run("consume", name, "--raw", "--keys", code=2)


@pytest.mark.parametrize("command", ["consume", "subscription consume"])
def test_whoever_follows_at_a_terminal_is_told_that_it_waits(
    run: Command, name: str, postroad_session: Node, command: str
) -> None:
    run("topic", "create", name)
    run("subscription", "create", name, "--topic", name)
    ours, theirs = pty.openpty()
    words = [*command.split(), name, "--follow", "-b", postroad_session.bootstrap]
    following = subprocess.Popen([sys.executable, "-m", "postroad", *words], stderr=theirs)
    os.close(theirs)
    try:
        assert os.read(ours, 1024) == b"Waiting for messages; end with Ctrl-C.\r\n"
    finally:
        following.kill()
        following.wait()
        os.close(ours)
