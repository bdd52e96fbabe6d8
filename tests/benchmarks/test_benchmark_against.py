"""`make bench --against`: two trees of this repository beside each other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import against
from benchmarks.cache import Missing
from benchmarks.results import ModeResults
from benchmarks.servers import Mode, Postroad
from benchmarks.session import Measurement
from benchmarks.workloads import WORKLOADS

SINGLE = next(workload for workload in WORKLOADS if workload.key == "single")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose first commit, `v1`, differs from what lies there now."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "repository"
    (root / "src").mkdir(parents=True)
    source = root / "src" / "file.py"
    source.write_text("old")
    identity = ("-c", "user.name=tester", "-c", "user.email=tester@localhost", "-c", "commit.gpgsign=false")
    for step in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "first"), ("tag", "v1")):
        subprocess.run(["git", "-C", str(root), *step], check=True, capture_output=True)
    source.write_text("new")
    return root


def test_commit_is_checked_out_into_the_cache_once(repository: Path, tmp_path: Path) -> None:
    tree = against.checkout("v1", repository)
    assert (tree / "src" / "file.py").read_text() == "old"
    assert tree.is_relative_to(tmp_path / "cache")
    assert against.checkout("v1", repository) == tree
    assert (repository / "src" / "file.py").read_text() == "new"


def test_commit_that_does_not_exist_is_said(repository: Path) -> None:
    with pytest.raises(Missing, match="names no commit"):
        against.checkout("v2", repository)


def test_each_tree_is_a_server_of_its_own(tmp_path: Path) -> None:
    servers = against.variants({against.HERE: tmp_path / "a", "v1": tmp_path / "b"})
    old = servers["postroad@v1"](Mode.PAGE_CACHE, tmp_path)
    _, environment = old.prepare()
    assert environment["PYTHONPATH"] == str(tmp_path / "b" / "src")
    assert SINGLE.fits(type(old))
    assert not SINGLE.fits(servers["postroad-cluster@v1"])
    assert "PYTHONPATH" not in Postroad(Mode.PAGE_CACHE, tmp_path).prepare()[1]


def test_table_has_both_medians_their_ratio_and_that_of_the_cpu() -> None:
    outcome = ModeResults(Mode.PAGE_CACHE)
    outcome.results["single"] = {
        "postroad@here": {turn: Measurement((value,), 100, 3.0) for turn, value in enumerate((10, 30, 20))},
        "postroad@v1": {turn: Measurement((value,), 100, 2.0) for turn, value in enumerate((20, 15, 40))},
    }
    text = against.render([outcome], [SINGLE], "v1")
    line = next(line for line in text.splitlines() if line.startswith("| postroad"))
    assert [cell.strip() for cell in line.strip("|").split("|")][1:] == ["20", "20", "1.00", "0.50", "1.50"]


def test_unknown_commit_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--against", "no-such-commit"]) == 1
    assert "names no commit" in capsys.readouterr().err
