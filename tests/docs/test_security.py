"""SECURITY.md: who is trusted and what is defended, each line with the tests that show it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.markdown import rows

ROOT = Path(__file__).parent.parent.parent
TEXT = (ROOT / "SECURITY.md").read_text()
TRUSTED = rows(TEXT, "who", "what they can do", "shown by")
DEFENDED = rows(TEXT, "attack", "defence", "where", "test")
SOURCE = ROOT / "src" / "postroad"


@pytest.mark.parametrize("row", [*TRUSTED, *DEFENDED], ids=lambda row: row[0][:40])
def test_every_line_names_tests_that_are_there(row: list[str]) -> None:
    named = re.findall(r"`(tests/[^`]+)`", row[-1])
    assert named, "no test"
    assert [name for name in named if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("row", DEFENDED, ids=lambda row: row[0][:40])
def test_every_defence_names_code_that_is_there(row: list[str]) -> None:
    named = re.findall(r"`([\w/.]+)`", row[2])
    assert [name for name in named if not (SOURCE / name).exists()] == []


def test_there_is_a_line_for_each_side() -> None:
    assert len(TRUSTED) >= 9
    assert len(DEFENDED) >= 40
