"""Every block of every document works as printed, in order, in one directory."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .markdown import ROOT, Block, all_blocks, documents
from .reader import Reader

RUNNABLE = ("sh", "console", "python")
# The guide's Python runs in `make spark` (tests/pipelines/test_guide.py), and so do its pipelines, each in
# tests of its own: a JVM for each command would take minutes.
ELSEWHERE = {ROOT / "docs/spark.md", *(ROOT / "examples/spark").glob("*.md")}
MISSING = [tool for tool in ("kcat", "curl", "jq") if shutil.which(tool) is None]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def runnable(document: Path) -> list[Block]:
    return [block for block in all_blocks(document.read_text()) if block.language in RUNNABLE]


def is_run(block: Block) -> bool:
    has_tools = not any(re.search(rf"^{tool} |\| {tool} ", block.text, re.MULTILINE) for tool in MISSING)
    return "not run" not in block.notes and has_tools and not needs_spark(block)


def needs_spark(block: Block) -> bool:
    return "from pyspark" in block.text


DOCUMENTS = [document for document in documents() if runnable(document)]
RUN = [
    document for document in DOCUMENTS if document not in ELSEWHERE and any(map(is_run, runnable(document)))
]

SPARK = [block for block in runnable(ROOT / "README.md") if needs_spark(block)]


@pytest.mark.parametrize("document", RUN, ids=name_of)
def test_blocks_work_as_printed_from_top_to_bottom(document: Path, tmp_path: Path) -> None:
    with Reader(tmp_path) as reader:
        for block in filter(is_run, runnable(document)):
            try:
                reader.follow(block)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                pytest.fail(f"{name_of(document)}:{block.line}: {error}")


@pytest.mark.slow
@pytest.mark.spark_slow
@pytest.mark.parametrize("block", SPARK, ids=lambda block: f"line {block.line}")
def test_spark_block_works_as_printed(block: Block, tmp_path: Path) -> None:
    with Reader(tmp_path) as reader:
        reader.follow(block._replace(notes={"given": "postroad publish orders one"}))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_block_that_is_not_run_says_why_and_can_be_read(document: Path) -> None:
    for block in runnable(document):
        assert block.notes.get("not run", "it runs"), f"line {block.line}: why not?"
        if block.language == "python":
            compile(block.text, f"{name_of(document)}:{block.line}", "exec")
        elif block.language == "sh":
            subprocess.run(["bash", "-n", "-c", block.text], check=True)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_notes_of_blocks_are_known_ones(document: Path) -> None:
    known = {"not run", "given", "runs until stopped", "file"}
    assert not [b.line for b in all_blocks(document.read_text()) if not b.notes.keys() <= known]
