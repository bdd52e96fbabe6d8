"""What steps tell of themselves is there for other processes, and says when nobody tells any more."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

import pytest

from postroad.pipelines.declared.declaration import Pipeline, Step
from postroad.pipelines.declared.serving import served
from postroad.pipelines.declared.status import SILENT_S, StepStatus, page, read_status
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.running import Progress, behind

STEP = Step("paid", "table", {"sql": "", "to": ""}, ("orders",))


class Clock:
    def __init__(self) -> None:
        self.at = 1_000_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return Pipeline("shop", None, tmp_path / "state", 1.0, (STEP,))


def test_step_that_never_ran_is_new(pipeline: Pipeline) -> None:
    assert [status.state for status in read_status(pipeline)] == ["new"]


def test_rows_and_bytes_of_all_runs_and_the_rates_of_the_last_minute_are_told(
    pipeline: Pipeline, clock: Clock
) -> None:
    first = StepStatus(pipeline.directory(STEP), STEP, clock)
    first.change("running")
    first.advance(Progress(0, 600, 600, 600, 1.0, 0, 72_000))
    assert (read_status(pipeline, clock.at)[0].rows, first.status.rate) == (600, 10.0)
    assert (read_status(pipeline, clock.at)[0].bytes, first.status.byte_rate) == (72_000, 1_200.0)
    again = StepStatus(pipeline.directory(STEP), STEP, clock)
    again.advance(Progress(0, 60, 60, 60, 1.0, 0, 8_000))
    clock.at += 61
    assert (again.status.rows, again.status.rate) == (660, 0.0)
    assert (again.status.bytes, again.status.byte_rate) == (80_000, 0.0)


def test_status_of_a_version_that_told_no_bytes_is_read(pipeline: Pipeline, clock: Clock) -> None:
    directory = pipeline.directory(STEP)
    directory.mkdir(parents=True)
    (directory / "status.json").write_text('{"step": "paid", "kind": "table", "state": "done", "rows": 7}')
    assert [(each.rows, each.bytes) for each in read_status(pipeline, clock.at)] == [(7, 0)]


def test_lag_is_for_how_long_a_step_is_behind(pipeline: Pipeline, clock: Clock) -> None:
    status = StepStatus(pipeline.directory(STEP), STEP, clock)
    status.change("running")
    status.advance(Progress(0, 1, 1, 1, 1.0, 0))
    clock.at += 5
    status.advance(Progress(1, 1, 2, 2, 1.0, 40))
    clock.at += 5
    assert (status.status.behind, status.status.lag_s) == (40, 10.0)
    status.advance(Progress(2, 40, 42, 42, 1.0, 0))
    assert status.status.lag_s == 0.0


def test_program_that_tells_nothing_any_more_is_silent(pipeline: Pipeline, clock: Clock) -> None:
    status = StepStatus(pipeline.directory(STEP), STEP, clock)
    status.change("waiting", "the topic is gone")
    soon = read_status(pipeline, clock.at + 1)[0]
    assert (soon.state, soon.error, soon.restarts) == ("waiting", "the topic is gone", 1)
    late = read_status(pipeline, clock.at + SILENT_S + 1)[0]
    assert (late.state, late.lag_s) == ("silent", SILENT_S + 1)


def test_metrics_are_served_while_it_runs(pipeline: Pipeline, clock: Clock) -> None:
    status = StepStatus(pipeline.directory(STEP), STEP, clock)
    status.change("running")
    status.advance(Progress(0, 600, 600, 600, 1.0, 3, 72_000))
    with served("127.0.0.1", 0, lambda: page("shop", [status.status])) as port:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        with pytest.raises(PipelineError, match="metrics can't be served at"), served("127.0.0.1", port, str):
            pass
    assert 'postroad_pipeline_rows_total{pipeline="shop",step="paid",kind="table"} 600' in text
    assert 'postroad_pipeline_bytes_total{pipeline="shop",step="paid",kind="table"} 72000' in text
    assert 'postroad_pipeline_bytes_per_second{pipeline="shop",step="paid",kind="table"} 1200' in text
    assert 'postroad_pipeline_behind{pipeline="shop",step="paid",kind="table"} 3' in text
    assert 'postroad_pipeline_up{pipeline="shop",step="paid",kind="table"} 1' in text


def test_a_query_is_behind_by_what_its_sources_are_ahead() -> None:
    told = {
        "sources": [
            {"endOffset": '{"orders":{"0":5,"1":7}}', "latestOffset": '{"orders":{"0":9,"1":7,"2":3}}'},
            {"endOffset": {"postroad_batch": 2}, "latestOffset": {"postroad_batch": 4}},
        ]
    }
    assert behind(told) == 4 + 3 + 2
    assert behind({"sources": [{"endOffset": "1", "latestOffset": None}]}) is None
