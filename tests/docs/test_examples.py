"""The programs in `examples/` run as they stand, against a real node."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from postroad.testing import Node, node

from .markdown import ROOT

PROGRAMS = sorted(path for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".sh"))
PATIENCE_S = 120
ASKS_A_GATEWAY = "schemas.py"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_example_runs_and_prints_something(program: Path, postroad_session: Node, tmp_path: Path) -> None:
    if program.suffix == ".sh" and shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    interpreter = sys.executable if program.suffix == ".py" else "sh"
    if program.name == ASKS_A_GATEWAY:
        with node({"http.enabled": True}) as running:
            run([interpreter, str(program), running.bootstrap, running.http], tmp_path)
    else:
        run([interpreter, str(program), postroad_session.bootstrap], tmp_path)


def run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_every_example_is_listed() -> None:
    listed = (ROOT / "examples/README.md").read_text()
    assert not [program.name for program in PROGRAMS if f"examples/{program.name}`" not in listed]
