"""The README's examples, copied out and run against a real node."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.testing import Node, node
from tests.clients.confluent import send_values

from .markdown import ROOT, blocks

README = (ROOT / "README.md").read_text()
DEFAULT, DEFAULT_HTTP = "127.0.0.1:9092", "http://127.0.0.1:8080"
PYTHON = [block.text for block in blocks(README, "python")]
(KCAT,) = [block.text for block in blocks(README, "sh") if "kcat -b" in block.text]
(SUBSCRIBE,) = [block.text for block in blocks(README, "sh") if "postroad subscription create" in block.text]


# As in a virtual environment that is activated: Spark starts its workers by the name python3. A JVM that
# lives for one query is quicker without its second compiler, and needs no page of its own.
ENVIRONMENT = os.environ | {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false"
    " --driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell",
    "SPARK_LOCAL_IP": "127.0.0.1",
}


def run(command: list[str], home: Path, **variables: str) -> str:
    done = subprocess.run(
        command,
        cwd=home,
        env=ENVIRONMENT | variables,
        capture_output=True,
        text=True,
        timeout=600,  # Spark's takes more than a minute on a busy machine
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def about(text: str) -> str:
    """The line that tells what an example is about, for the test's name."""
    return next(line for line in text.splitlines() if "import" in line and "asyncio" not in line)


@pytest.fixture(scope="module")
def served() -> Iterator[Node]:
    """As `postroad serve` starts it, with a gateway beside it; and with orders in it."""
    with node({"http.enabled": True, "http.port": 0}) as running:
        send_values(running.bootstrap, "orders", 3)
        yield running


@pytest.mark.parametrize("text", [t for t in PYTHON if "def test_" not in t], ids=about)
def test_python_example_runs(text: str, served: Node, tmp_path: Path) -> None:
    text = text.replace(DEFAULT, served.bootstrap).replace(DEFAULT_HTTP, served.http)
    (tmp_path / "example.py").write_text(text)
    if "ShareConsumer" in text:  # what README has before it; without it there would be nothing to wait for
        run(["sh", "-ec", SUBSCRIBE], tmp_path, POSTROAD_BOOTSTRAP=served.bootstrap)
    assert run([sys.executable, "example.py"], tmp_path), "each of them prints something"


@pytest.mark.parametrize("text", [t for t in PYTHON if "def test_" in t], ids=about)
def test_example_of_a_test_passes(text: str, tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
    assert "1 passed" in run(command, tmp_path)  # schemathesis is found too, and takes seconds to import


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat_example_runs(postroad_session: Node, tmp_path: Path) -> None:
    printed = run(["sh", "-ec", KCAT.replace(DEFAULT, postroad_session.bootstrap)], tmp_path)
    assert printed.startswith("one\ntwo\n")
