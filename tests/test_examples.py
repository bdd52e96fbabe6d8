"""The examples run as they stand and print what they promise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DIRECTORY = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path for path in DIRECTORY.glob("with_*") if path.suffix in {".py", ".sh"})


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    elsewhere = os.environ.get("POSTROAD_TEST_BOOTSTRAP")
    if elsewhere:
        yield elsewhere
        return
    from postroad.testing import node

    with node() as running:
        yield running.bootstrap


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_publishes_consumes_and_joins_a_group(example: Path, bootstrap: str) -> None:
    if example.suffix == ".sh" and shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    lines = run(example, bootstrap)
    assert [line.split()[1] for line in lines if line.startswith("consumed ")] == ["a", "b", "c"]
    assert [line.split()[3] for line in lines if line.startswith("the group got ")] == ["a", "b", "c"]
    assert any(line.startswith("published ") for line in lines)
    assert any("language" in line for line in lines)


def test_queue_worker_settles_each_job_on_its_own(bootstrap: str) -> None:
    lines = run(DIRECTORY / "queue_worker.py", bootstrap)
    assert lines[:3] == ["published easy", "published flaky", "published impossible"]
    assert sorted(lines[3:-1]) == [
        "did easy (delivery 1)",
        "did flaky (delivery 2)",
        "rejected impossible",
        "released flaky: it comes again",
    ]
    assert lines[-1] == "dead letter impossible: rejected"


def run(example: Path, bootstrap: str) -> list[str]:
    """The lines that it prints."""
    interpreter = sys.executable if example.suffix == ".py" else "sh"
    command = [interpreter, str(example), bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_there_is_an_example_for_each_client() -> None:
    names = {path.stem for path in EXAMPLES}
    assert {"with_confluent_kafka", "with_aiokafka", "with_kafka_python", "with_kcat"} <= names
