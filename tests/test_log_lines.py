"""Lines of the log: as JSON each is one object, and nothing else stands on it."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from array import array
from fcntl import ioctl
from pathlib import Path
from termios import FIONREAD
from typing import Any

import pytest

from postroad import log_lines
from postroad.testing import Node
from tests.clients.wait import until
from tests.gateway.conftest import broker  # noqa: F401
from tests.gateway.processes import PATIENCE_S, alone, get, url_of


def record(
    message: str, *facts: object, error: BaseException | None = None, **fields: Any
) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    made = logging.LogRecord("postroad.one", logging.ERROR, "", 0, message, facts, info)
    if fields:
        setattr(made, log_lines.FIELDS, fields)
    return made


def failure() -> Exception:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        return error


def test_json_line_has_time_level_logger_and_message() -> None:
    line = log_lines.formatter("json").format(record("%s is\n%d", "one", 1))
    assert "\n" not in line
    read = json.loads(line)
    assert read.pop("time").endswith("Z")
    assert read == {"level": "ERROR", "logger": "postroad.one", "message": "one is\n1"}


def test_traceback_is_a_field_of_its_line() -> None:
    line = log_lines.formatter("json").format(record("it failed", error=failure()))
    assert "\n" not in line
    read = json.loads(line)
    assert read["message"] == "it failed"
    assert read["traceback"].startswith("Traceback (most recent call last):\n")
    assert read["traceback"].endswith("ValueError: two\nlines")


def test_fields_of_a_record_stand_in_place_of_its_message() -> None:
    read = json.loads(log_lines.formatter("json").format(record("status=200", status=200)))
    assert read["status"] == 200
    assert "message" not in read


def test_one_logger_may_write_json_in_a_log_of_text() -> None:
    mixed = log_lines.formatter("text", "postroad.one")
    assert json.loads(mixed.format(record("hello", status=200)))["status"] == 200
    other = record("hello")
    other.name = "postroad.two"
    assert mixed.format(other).endswith(" ERROR postroad.two: hello")


def lines_of(process: subprocess.Popen[str]) -> list[str]:
    """All that it has logged, when it has ended in order."""
    process.send_signal(signal.SIGTERM)
    _, logged = process.communicate(timeout=PATIENCE_S)
    return logged.splitlines()


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        ("%d of them", ("many",)),
        ("%s and %s", ("one",)),
        ("no place for it", (1,)),
        ("bytes %s", (b"\xff",)),
        ("a lone \udcff", ()),
        ("a line\u2028b\x00\x1b[31m", ()),
    ],
)
def test_line_can_be_parsed_whatever_its_record_holds(message: str, facts: tuple[object, ...]) -> None:
    line = log_lines.formatter("json").format(record(message, *facts))
    assert len(line.splitlines()) == 1
    assert str(message)[:4].split("%")[0] in parsed(line)["message"]


def test_fields_that_json_has_no_form_for_are_shown_as_text() -> None:
    loop: list[object] = []
    loop.append(loop)
    odd: dict[str, Any] = {"nan": float("nan"), "loop": loop, "path": Path("/x"), "bytes": b"\xff"}
    assert parsed(log_lines.formatter("json").format(record("", **odd)))["nan"] == "nan"
    assert parsed(log_lines.formatter("json").format(record("", path=Path("/x"))))["path"] == "/x"
    keyed = record("", **odd)
    setattr(keyed, log_lines.FIELDS, {(1, 2): "no key of JSON"})
    assert "no key" in log_lines.formatter("json").format(keyed)


@pytest.mark.parametrize("text", ["x" * 100_000, "\u2028ü" * 20_000, "a\nb" * 5_000])
def test_long_text_goes_on_in_further_lines(text: str) -> None:
    lines = log_lines.formatter("json").format(record(text)).split("\n")
    assert max(map(len, lines)) < 4096
    found = [parsed(line) for line in lines]
    assert "".join(each["message"] for each in found) == text
    assert [each["part"] for each in found] == list(range(1, len(found) + 1))
    many: dict[str, Any] = {f"field {number}": "y" * 100 for number in range(100)}
    wide = record("", **many)
    assert max(len(line) for line in log_lines.formatter("json").format(wide).split("\n")) < 4096


def parsed(line: str) -> dict[str, Any]:
    """The object of a line, read strictly: NaN is no JSON."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    found = json.loads(line, parse_constant=refuse)
    assert isinstance(found, dict)
    assert {"time", "level", "logger"} <= found.keys()
    return found


NOISE = """
import asyncio, gc, logging, sys, threading, warnings
from postroad import process

process.log_to_stderr("info", "json")
warnings.warn("a library\\nwarns")
logging.getLogger("library").error("%d", "no number")
thread = threading.Thread(target=lambda: 1 / 0, name="worker")
thread.start()
thread.join()

class Bad:
    def __del__(self):
        raise ValueError("in a finalizer")

Bad()
gc.collect()

async def forget():
    async def fail():
        raise KeyError("nobody asks")
    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del task
    gc.collect()

asyncio.run(forget())
process.say("ready", "", "at x")
process.complain(ValueError("it can't\\nstart"))
raise RuntimeError("two\\nlines")
"""


def test_what_python_itself_says_is_lines_of_the_log_too() -> None:
    done = subprocess.run([sys.executable, "-c", NOISE], capture_output=True, text=True, timeout=PATIENCE_S)
    lines = [parsed(line) for line in done.stderr.splitlines()]
    said = [line["message"] for line in lines]
    for part in ("a library\nwarns", "no number", "the thread worker ended", "Bad", "it can't\nstart"):
        assert any(part in message for message in said), part
    tracebacks = "".join(line.get("traceback", "") for line in lines)
    for part in ("ZeroDivisionError", "in a finalizer", "nobody asks", "RuntimeError: two\nlines"):
        assert part in tracebacks, part
    assert [parsed(line)["message"] for line in done.stdout.splitlines()] == ["ready", "at x"]
    assert done.returncode == 1


def test_lines_of_several_processes_do_not_mix() -> None:
    """They are longer than what a pipe takes as one piece, and nobody reads before all wait to write."""
    program = """
import logging, sys
from postroad import process

process.log_to_stderr("info", "json")
for number in range(200):
    logging.getLogger(sys.argv[1]).info("%d %s", number, sys.argv[1] * 6000)
"""
    reading, writing = os.pipe()
    command = [sys.executable, "-c", program]
    processes = [subprocess.Popen([*command, name], stderr=writing) for name in "ab"]
    os.close(writing)
    until(lambda: is_full(reading), "nobody can write any more", PATIENCE_S)
    with os.fdopen(reading) as lines:
        found = [parsed(line) for line in lines]
    for process in processes:
        assert process.wait(PATIENCE_S) == 0
    for name in "ab":
        parts = [line for line in found if line["logger"] == name]
        assert len(parts) == 200 * 2
        assert "".join(line["message"] for line in parts) == "".join(
            f"{number} {name * 6000}" for number in range(200)
        )


def is_full(pipe: int) -> bool:
    waiting = array("i", [0])
    ioctl(pipe, FIONREAD, waiting)
    return waiting[0] > 30_000


def test_access_log_in_json_is_one_object_a_line(broker: Node, tmp_path: Path) -> None:  # noqa: F811
    settings = ["--set", "http.access_log=all", "--set", "http.access_log_format=json"]
    with alone(tmp_path, "--bootstrap", broker.bootstrap, *settings) as process:
        get(url_of(tmp_path) + "/healthz")
        lines = lines_of(process)
    (line,) = [line for line in lines if "healthz" in line]
    read = json.loads(line)
    assert (read["logger"], read["path"], read["status"]) == ("postroad.access", "/healthz", 200)
    assert not all(line.startswith("{") for line in lines), "the rest is text as before"


def test_log_of_node_and_gateway_in_json_is_one_object_a_line(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "postroad", "serve", "--data", str(tmp_path / "data")]
    command += ["--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", str(ready)]
    command += ["--set", "logging.format=json", "--set", "http.access_log=all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as node:
        try:
            (tmp_path / "gateway.json").symlink_to(ready)
            assert get(url_of(tmp_path) + "/healthz")[0] == 200
            node.send_signal(signal.SIGTERM)
            said, written = node.communicate(timeout=PATIENCE_S)
            logged = [parsed(line) for line in written.splitlines()]
            assert any("is ready" in parsed(line)["message"] for line in said.splitlines())
        finally:
            node.kill()
    assert {"postroad", "postroad.access"} <= {line["logger"] for line in logged}
    (request,) = [line for line in logged if line["logger"] == "postroad.access"]
    assert request["path"] == "/healthz"


def test_a_line_says_which_of_several_nodes_wrote_it() -> None:
    text = log_lines.formatter("text", source="node 2").format(record("it runs"))
    assert " node 2 postroad" in text
    line = json.loads(log_lines.formatter("json", source="node 2").format(record("it runs")))
    assert line["source"] == "node 2"
