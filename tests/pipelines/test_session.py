"""What is missing for Spark is said in one line, and before Spark is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from postroad.pipelines import session
from postroad.pipelines.errors import NotInstalled


def _java(home: Path, script: str) -> None:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2",
            "Spark needs Java 17 or newer, and .* is 11: install",
        ),
        ("echo 'java version \"1.8.0_402\"' >&2", "and .* is 8: install Java 17"),
        ("echo nonsense", "does not say its version: install"),
        ("exit 1", "does not say its version: install"),
        ("kill -9 $$", "does not say its version: install"),
    ],
)
def test_old_or_broken_java_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    _java(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NotInstalled, match=said):
        session.check()


def test_missing_java_is_told_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        NotInstalled, match=r"there is none here: install Java 17 or newer .*openjdk-17-jre-headless"
    ):
        session.check()


def test_java_home_without_java_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NotInstalled, match=r"JAVA_HOME is .*, and there is no Java in it"):
        session.check()


def test_newer_java_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _java(tmp_path, "echo 'openjdk version \"21\" 2023-09-19' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    session.check()


def test_connect_and_submitted_programs_need_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    session.check("sc://somewhere")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    session.check()


def test_missing_pyspark_is_told_by_the_command() -> None:
    """A program for which pyspark is not installed, as far as Python says."""
    hidden = "import sys, importlib.metadata as m; real = m.version\n" + (
        "def version(name):\n"
        "    if name == 'pyspark': raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.version = version\n"
        "from postroad.cli import main; main(['sql', 'select 1'])\n"
    )
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, timeout=240)
    assert done.returncode == 1
    assert done.stderr == (
        "postroad: pipelines run on Spark, and pyspark is not installed: pip install 'postroad[spark]'\n"
    )
