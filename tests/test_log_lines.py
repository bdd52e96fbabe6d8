"""Lines of the log: as JSON each is one object, and nothing else stands on it."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from postroad import log_lines
from postroad.testing import Node
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
            logged = [json.loads(line) for line in lines_of(node)]
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
