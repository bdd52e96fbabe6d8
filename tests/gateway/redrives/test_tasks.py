"""What is written down of redrives."""

from __future__ import annotations

import msgspec
import pytest

from postroad.gateway.redrives.book import Page, read_tasks
from postroad.gateway.redrives.task import OTHERS, REASONS_MAX, TEXT_MAX, Progress, Task, bounded


def test_a_task_reads_back_as_it_was_written() -> None:
    task = Task(
        "1", "rest", 5, {"to": "t"}, owner="g", beat=3, progress=Progress(9, 4, 3, 1, {"why": 1}), failure="x"
    )
    assert read_tasks(msgspec.json.encode([task]).decode()) == [task]


@pytest.mark.parametrize("text", ["", "nonsense", "{}", "[1]", '[{"id": "1"}]', "[" * 100_000, '["\ud800"]'])
def test_what_is_no_record_of_tasks_is_none(text: str) -> None:
    assert read_tasks(text) == []


def test_only_the_newest_task_can_be_running() -> None:
    running, over = Task("2", "sqs", 0), Task("1", "sqs", 0, state="failed")
    assert Page([running, over], "").running is running
    assert Page([over, running], "").running is None
    assert Page([], "").running is None


def test_reasons_are_told_in_short_and_none_is_left_out_of_the_count() -> None:
    failed = {f"{number} " + "x" * 1000: 1000 - number for number in range(100)}
    short = bounded(failed)
    assert len(short) == REASONS_MAX + 1
    assert max(map(len, short)) <= TEXT_MAX
    assert sum(short.values()) == sum(failed.values())
    assert short[OTHERS] == sum(sorted(failed.values())[:80])
