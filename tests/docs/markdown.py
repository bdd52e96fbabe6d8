"""Markdown as far as the tests need it: links, headings, code blocks, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^([ ]*)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_NOTED_FENCE = re.compile(rf"((?:^ *<!-- [^\n]* -->\n)*){_FENCE.pattern}".replace("\\1", "\\2"), _FENCE.flags)
_NOTE = re.compile(r"<!-- ([^\n]*?)(?:: ([^\n]*))? -->")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A code block; `notes` are the comments right above it: `<!-- given: a command -->` is {"given": …}."""

    language: str
    text: str
    line: int = 0
    notes: Mapping[str, str] = {}


def documents() -> list[Path]:
    """Every Markdown file of the project, none of the environment's."""
    found = [
        *ROOT.glob("*.md"),
        *(p for d in ("docs", "examples", "benchmarks") for p in (ROOT / d).rglob("*.md")),
    ]
    return sorted(found)


def prose(text: str) -> str:
    """The text without its code blocks."""
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    return _LINK.findall(prose(text))


def anchors(text: str) -> set[str]:
    """The fragments that headings can be linked by, as GitHub makes them."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(prose(text)))
    return {heading.replace(" ", "-") for heading in plain}


def blocks(text: str, *languages: str) -> list[Block]:
    return [block for block in all_blocks(text) if block.language in languages]


def all_blocks(text: str) -> list[Block]:
    return [
        Block(
            language,
            _outdent(body, len(indent)),
            1 + text.count("\n", 0, found.end(1)),
            dict(_NOTE.findall(notes)),
        )
        for found in _NOTED_FENCE.finditer(text)
        for notes, indent, language, body in [found.groups()]
    ]


def commands(text: str) -> Iterator[str]:
    """The shell commands of a document: lines of `sh` blocks, lines after a prompt in `console` blocks."""
    for block in blocks(text, "sh", "console"):
        for line in block.text.splitlines():
            if block.language == "sh" or line.startswith("$ "):
                yield line.removeprefix("$ ")


def rows(text: str, *columns: str) -> list[list[str]]:
    """The cells of each row of the table with these columns."""
    head = "| " + " | ".join(columns) + " |\n"
    assert text.count(head) == 1, f"one table with the columns {columns}"
    lines = text.split(head)[1].split("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def _outdent(body: str, spaces: int) -> str:
    return "".join(line[spaces:] for line in body.splitlines(keepends=True))
