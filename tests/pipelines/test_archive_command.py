"""`postroad pipeline archive` as a program: what it says, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest
from click.testing import CliRunner

from postroad.cli import main
from postroad.pipelines import __file__ as pipelines_file
from postroad.pipelines.tables import TableAddress, create_table
from postroad.testing import Node
from tests.pipelines.archives import offsets_of, read_plainly
from tests.spark import plain

PATIENCE_S = 240  # a session takes 5 s, and many times that on a machine with other work
SAID_BY_JAVA = "WARNING: Using incubator modules: jdk.incubator.vector\n"
SMALL = ("--master", "local[2]", "--conf", "spark.driver.memory=1g")


@pytest.mark.spark_slow
def test_program_that_is_told_to_stop_ends_well_and_has_told_its_progress(
    node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, plain.numbered(20))
    table = create_table(TableAddress(str(tmp_path), "parquet"))
    arguments = ["-b", node.bootstrap, "-t", topic, "--to", str(tmp_path), "--format", "parquet", *SMALL]
    with subprocess.Popen(
        [sys.executable, "-m", "postroad.pipelines", "archive", *arguments, "--every", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not table.ends([topic]) and program.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            time.sleep(1.0)  # the batch is in the table; its progress is told a moment later
            program.send_signal(signal.SIGTERM)
            output, errors = program.communicate(timeout=PATIENCE_S)
        finally:
            program.kill()
    assert program.returncode == 0, errors
    *progress, summary = [json.loads(line) for line in output.splitlines()]
    assert [(told["batch"], told["done"], told["total"]) for told in progress] == [(0, 20, 20)]
    assert summary["ends"] == {topic: {"0": 20}}
    assert offsets_of(read_plainly(tmp_path, "parquet")) == [(topic, 0, offset) for offset in range(20)]


@pytest.mark.spark_slow
def test_pipelines_are_an_application_for_spark_submit(node: Node, topic: str, tmp_path: Path) -> None:
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, plain.numbered(20))
    submit = Path(pyspark.__file__).with_name("bin") / "spark-submit"
    application = Path(pipelines_file).with_name("__main__.py")
    arguments = ["archive", "-b", node.bootstrap, "-t", topic, "--to", str(tmp_path), "--once"]
    done = subprocess.run(
        [submit, "--master", "local[2]", "--driver-memory", "1g", application, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"archived 20 messages to {tmp_path}\n"
    assert len(read_plainly(tmp_path, "delta")) == 20


@pytest.mark.spark_slow
def test_ctrl_c_while_spark_starts_ends_the_program_without_a_word(
    node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    arguments = ["-b", node.bootstrap, "-t", topic, "--to", str(tmp_path), *SMALL]
    with subprocess.Popen(
        [sys.executable, "-m", "postroad", "pipeline", "archive", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not _starts_spark(program.pid):
                assert program.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
            program.send_signal(signal.SIGINT)
            output, errors = program.communicate(timeout=PATIENCE_S)
        finally:
            program.kill()
    assert (program.returncode, output) == (-signal.SIGINT, "")
    assert errors.removeprefix(SAID_BY_JAVA) == ""


def _starts_spark(parent: int) -> bool:
    """Whether a child of the process is the script, or the Java, that starts Spark."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
    return any(b"SparkSubmit" in command or b"spark-class" in command for command in commands)


@pytest.mark.parametrize("command", ["archive", "merge"])
def test_password_in_the_url_of_a_catalogue_is_refused(command: str) -> None:
    """Nothing has been started, nor the URL repeated."""
    words = ["pipeline", command, "-t", "orders", "--to", "lake", "--format", "iceberg"]
    shown = CliRunner().invoke(main, [*words, "--catalog", "postgresql://ann:secret@db/lake"])
    assert shown.exit_code == 2
    assert "list of processes" in shown.stderr
    assert "secret@" not in shown.output
