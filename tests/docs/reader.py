"""Somebody who does what a document says, block after block, in one directory, and looks at what is printed.

What is printed after a `$ ` line of a `console` block is compared, standard error included. What differs from
run to run is shown in documents as it was once: times, ids, sizes and rates are not compared, nor how columns
are aligned, and `…` stands for any text. `sh` blocks must succeed; their output is not shown.

A comment right above a block says what is special about it:

    <!-- not run: WHY -->        it needs what a test has not: its syntax is checked only
    <!-- given: COMMANDS -->     what the reader has done before, or has anyway
    <!-- runs until stopped -->  it is interrupted when it has printed something
    <!-- file: NAME -->          it is the content of this file, which is written and not run

`postroad serve` starts the node. Where a document has none the node is there from the start. `postroad log`
is for a node that is stopped, so it is stopped for it. Another one, of another cluster, is there where a
document names its address, `OTHER`. Ports are free ones.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from click.testing import CliRunner

from postroad.cli import main
from postroad.testing import node as start_node

from .markdown import Block

KAFKA, HTTP = "127.0.0.1:9092", "127.0.0.1:8080"
OTHER: Final = "127.0.0.1:9292"
OTHER_PORTS: Final = "127.0.0.1:8081"
HOME: Final = "/home/me"
PATIENCE_S: Final = 120.0  # Spark's takes more than half a minute on a busy machine
PRELUDE: Final = 'curl() { command curl --silent --show-error --fail-with-body "$@"; }\n'
# As in a virtual environment that is activated: Spark starts its workers by the name python3. A JVM that
# lives for one query is quicker without its second compiler, and needs no page of its own.
ENVIRONMENT: Final = os.environ | {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false"
    " --driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell",
    "SPARK_LOCAL_IP": "127.0.0.1",
}
VARIES: Final = (
    (re.compile(r"\b1[5-9]\d{11}\b"), "<ms>"),
    (re.compile(r"\b[\w-]{22}(?=-\d+\b|\s)"), "<id>"),
    (re.compile(r"\b[\d,]+ bytes"), "<n> bytes"),
    (re.compile(r"\b\d+\.\d+(?= |$)", re.MULTILINE), "<n>"),
    (re.compile(r" +"), " "),
)


class Reader:
    """`with Reader(home) as reader: reader.follow(block)`; AssertionError where a block is not as it says."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._node: subprocess.Popen[str] | None = None
        self._serve: list[str] = ["serve"]
        self._kafka, self._http = KAFKA, HTTP
        self._stack = contextlib.ExitStack()
        self._other = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._stack.close()

    def follow(self, block: Block) -> None:
        if "given" in block.notes:
            self._line(block.notes["given"])
        if "file" in block.notes:
            self._file(block, block.notes["file"])
        elif block.language == "console":
            self._console(block)
        elif "runs until stopped" in block.notes:
            self._glance(self._command(block))
        elif block.language == "sh":
            for line in _lines(block.text):
                self._line(line)
        elif "def test_" in block.text:
            self._file(block, "test_example.py")
            # schemathesis is found too, and takes seconds to import
            self._shell("python -m pytest -q -p no:cacheprovider -p no:schemathesis test_example.py")
        else:
            self._shell(f"python {self._file(block, 'example.py')}")

    # --- one block -----------------------------------------------------------------------------

    def _console(self, block: Block) -> None:
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            line, _, expected = part.partition("\n")
            printed = self._line(line, must_succeed=False)
            assert _alike(expected, self._documented(printed)), (
                f"$ {line}\n--- the document:\n{expected}\n--- printed:\n{self._documented(printed)}"
            )

    def _line(self, line: str, must_succeed: bool = True) -> str:
        words = shlex.split(line, comments=True)
        if words[:2] == ["postroad", "serve"] and "0.0.0.0" not in line:
            self._stop()
            self._serve = words[1:]
            return self._start()
        if words[:2] == ["postroad", "log"]:
            self._stop()
        elif self._node is None:
            self._start()
        if words[0] == "postroad" and not re.search(r"[|<>&;$]", line):
            return self._postroad(shlex.split(self._here(line), comments=True)[1:], must_succeed)
        return self._shell(self._here(line), must_succeed)

    def _command(self, block: Block) -> list[str]:
        if self._node is None:
            self._start()
        if block.language == "python":
            return [sys.executable, "-u", self._file(block, "example.py")]
        return ["bash", "-ec", PRELUDE + self._here(block.text)]

    def _file(self, block: Block, name: str) -> str:
        if self._node is None:
            self._start()
        (self._home / name).parent.mkdir(parents=True, exist_ok=True)
        (self._home / name).write_text(self._here(block.text))
        return name

    # --- processes -----------------------------------------------------------------------------

    def _postroad(self, arguments: list[str], must_succeed: bool) -> str:
        """The command in this process: most lines are such, and a process for each would take a minute."""
        with contextlib.chdir(self._home):
            done = CliRunner().invoke(main, arguments, env={"POSTROAD_BOOTSTRAP": self._kafka})
        assert not must_succeed or done.exit_code == 0, f"{arguments}\n{done.output}"
        return done.output

    def _shell(self, text: str, must_succeed: bool = True) -> str:
        done = subprocess.run(
            ["bash", "-ec", PRELUDE + text],
            cwd=self._home,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
        )
        assert not must_succeed or done.returncode == 0, f"{text}\n{done.stdout}"
        return done.stdout

    def _glance(self, command: list[str]) -> None:
        """Start it, read a line, interrupt it."""
        process = subprocess.Popen(
            command,
            cwd=self._home,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), process.communicate()[1]
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.communicate(timeout=PATIENCE_S)

    def _start(self) -> str:
        """Start the node; what it prints until it is ready."""
        own = ["--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        self._node = subprocess.Popen(
            [sys.executable, "-m", "postroad", *self._serve, *own],
            cwd=self._home,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._node.stdout is not None
        printed = ""
        while "postroad consume" not in printed:
            line = self._node.stdout.readline()
            assert line, f"the node ended: {printed}"
            printed += line
        self._kafka = re.findall(r"connect to (\S+);", printed)[0]
        self._http = re.findall(r"http://(\S+)", printed)[0]
        return printed

    def _stop(self) -> None:
        if self._node is not None:
            self._node.send_signal(signal.SIGTERM)
            self._node.communicate(timeout=PATIENCE_S)
            self._node = None

    def _environment(self) -> dict[str, str]:
        return {**ENVIRONMENT, "POSTROAD_BOOTSTRAP": self._kafka}

    # --- texts ---------------------------------------------------------------------------------

    def _here(self, text: str) -> str:
        if OTHER in text and not self._other:
            self._other = self._stack.enter_context(start_node()).bootstrap
        text = text.replace(KAFKA, self._kafka).replace(HTTP, self._http).replace(OTHER, self._other)
        return text.replace(OTHER_PORTS, "127.0.0.1:0")

    def _documented(self, printed: str) -> str:
        printed = printed.replace(self._kafka, KAFKA).replace(self._http, HTTP)
        printed = printed.replace(self._other, OTHER) if self._other else printed
        return printed.replace(str(self._home), HOME)


def _lines(text: str) -> list[str]:
    """Commands, each on a line of its own; a backslash at the end joins the next one."""
    joined = text.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def _alike(expected: str, printed: str) -> bool:
    pattern = ".*".join(map(re.escape, _plain(expected).split("…")))
    return re.fullmatch(pattern, _plain(printed), re.DOTALL) is not None


def _plain(text: str) -> str:
    for pattern, replacement in VARIES:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
