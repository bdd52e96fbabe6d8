"""`postroad pipeline run` and `status` as people call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from postroad.cli import main
from postroad.pipelines.declared.declaration import read
from postroad.pipelines.declared.status import StepStatus
from postroad.pipelines.running import Progress

TEXT = """\
[archive.orders]
topics = ["orders"]
to = "lake/orders"

[table.paid]
sql = "select * from orders"
to = "lake/paid"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pipeline.toml"
    path.write_text(TEXT)
    return path


def test_status_shows_each_step_and_fails_where_one_has(file: Path) -> None:
    pipeline = read(file)
    orders = StepStatus(pipeline.directory(pipeline.step("orders")), pipeline.step("orders"))
    orders.change("running")
    orders.advance(Progress(0, 1200, 1200, 1200, 1.0, 0, 60_000))
    shown = CliRunner().invoke(main, ["pipeline", "status", str(file)])
    assert shown.exit_code == 0, shown.output
    assert [line.split()[:7] for line in shown.stdout.splitlines()][1:] == [
        ["orders", "archive", "running", "1200", "20.0", "60000", "1000"],
        ["paid", "table", "new", "0", "0.00", "0", "0"],
    ]
    orders.change("failed", "the disk is full")
    failed = CliRunner().invoke(main, ["pipeline", "status", str(file), "--json"])
    assert failed.exit_code == 1
    told = {each["step"]: each for each in json.loads(failed.stdout)}
    assert (told["orders"]["state"], told["orders"]["error"]) == ("failed", "the disk is full")
    assert "look after: orders" in failed.stderr


@pytest.mark.parametrize("command", ["run", "status"])
def test_what_is_wrong_with_the_file_is_told_before_anything_starts(file: Path, command: str) -> None:
    file.write_text(TEXT.replace('to = "lake/paid"', 'too = "x"'))
    shown = CliRunner().invoke(main, ["pipeline", command, str(file)])
    assert shown.exit_code == 1
    assert f"{file}, line 7: [table.paid] there is no 'too' here; did you mean 'to'?" in shown.stderr
