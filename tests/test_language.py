"""The language of the code: docstrings are sentences that stand on their own; each word has one meaning."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("src/postroad", "tests", "benchmarks", "tools", "examples")
GENERATED = ROOT / "src/postroad/wire/messages"

# A docstring that begins so leaves out its noun: "Of one endpoint." Of what?
RIDDLE = re.compile(r"(Of|That|Its|So many|So much)\b")


def python_files() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (path for path in sorted((ROOT / folder).rglob("*.py")) if GENERATED not in path.parents)


def docstrings(path: Path) -> Iterator[tuple[str, str]]:
    """The name and the docstring of each module, class and function that has one."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "the module"), text


def test_docstrings_stand_on_their_own() -> None:
    riddles = [
        f"{path.relative_to(ROOT)}, {name}: {text.splitlines()[0]}"
        for path in python_files()
        for name, text in docstrings(path)
        if RIDDLE.match(text)
    ]
    assert riddles == []
