"""Stories that others learned the hard way go as their transcripts say; every mutant spoils one of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replication.interpreter import Interpreter
from tests.replication.mutants import MUTANTS

FOLDER = Path(__file__).parent / "transcripts"
STORIES = sorted(path.stem for path in FOLDER.glob("*.txt"))


def read(story: str) -> str:
    return (FOLDER / f"{story}.txt").read_text()


@pytest.mark.parametrize("story", STORIES)
def test_a_story_goes_as_its_transcript_says(story: str) -> None:
    assert Interpreter().run(read(story)) == read(story)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_does_harm_in_its_story(name: str) -> None:
    rules, story, harm = MUTANTS[name]
    harmed = Interpreter(rules, only_harm=True).run(read(story))
    assert f"violated: {harm}" in harmed
