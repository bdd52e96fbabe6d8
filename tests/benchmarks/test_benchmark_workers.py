"""`make bench-workers`: our own row is measured, and the table has the medians."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import workers
from benchmarks.servers import Mode


def test_jobs_of_our_own_worker_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(workers, "PACED_JOBS", 20)
    figures = workers.measure(workers.FRAMEWORKS[0], Mode.PAGE_CACHE, scale=0.001)
    assert figures.published > 0
    assert figures.done > 0
    assert 0 < figures.p50_ms <= figures.p99_ms


def test_table_has_the_medians_of_all_rounds() -> None:
    rounds = [workers.Figures(n, 1000 * n, n / 10, n) for n in (1.0, 9.0, 2.0)]
    assert workers.table({"ours": rounds}).splitlines()[-1] == "| ours | 2 | 2,000 | 0.20 | 2.00 |"


def test_each_framework_has_a_program() -> None:
    programs = {path.stem for path in workers.JOBS.glob("*_jobs.py")}
    assert programs == {framework.program for framework in workers.FRAMEWORKS}
