"""The language of the code: docstrings are sentences that stand on their own; each word has one meaning."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("src/postroad", "tests", "benchmarks", "simulator", "tools", "examples", "docs/spec")
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


# Names that were metaphors, and what they are called now.
METAPHORS = {
    "Wish": "ReceiveRequest, RedriveRequest, MoveRequest",
    "Saying": "PendingSettlement",
    "_Clerk": "_RequestHandler",
    "hurry": "expire",
    "heard": "replied",
    "open_doors": "start_accepting",
    "close_doors": "stop_accepting",
    "_lose_patience": "_time_out",
    "Place": "TopicPartition, TopicIdPartition, OffsetKey",
    "place": "topic_partition, position; a verb only in cluster/placement.py",
}
PLACEMENT = ("cluster/placement.py", "cluster/topics.py")  # which nodes get a partition's replicas
MESSAGES_ARE_SETTLED = (
    "broker/subscriptions",
    "broker/api",
    "queues",
    "client",
    "gateway",
    "cli",
    "pipelines",
    "workers",
    "testing/worker_runs.py",
)
VAGUE = {"Kind", "Entry", "Answer", "Node", "State"}


def names(path: Path) -> Iterator[str]:
    """Every name that the file defines or uses."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


def source_files() -> Iterator[tuple[str, Path]]:
    source = ROOT / "src/postroad"
    return ((path.relative_to(source).as_posix(), path) for path in python_files() if source in path.parents)


def test_names_are_no_metaphors() -> None:
    found = {
        f"{file}: {name}, better {METAPHORS[name]}"
        for file, path in source_files()
        for name in METAPHORS.keys() & set(names(path))
        if name != "place" or file not in PLACEMENT
    }
    assert found == set()


def test_only_messages_are_settled() -> None:
    found = {
        f"{file}: {name}"
        for file, path in source_files()
        if not file.startswith(MESSAGES_ARE_SETTLED)
        for name in names(path)
        if "settl" in name.lower()
    }
    assert found == set()


def test_a_vague_class_name_stands_for_one_class() -> None:
    """At most once in a room, and only where the room leaves no doubt of what it is of."""
    defined = [
        f"{file.split('/')[0]}: {node.name}"
        for file, path in source_files()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.name in VAGUE
    ]
    assert sorted(defined) == ["broker: Answer", "broker: Node", "config: Node", "testing: Node"]
