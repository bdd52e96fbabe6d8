"""House rule: no file of ours grows past some 500 lines (generated code aside)."""

from __future__ import annotations

import sys
from pathlib import Path

LINES_MAX = 500
GENERATED = Path("src/postroad/wire/messages")
ROOTS = ("src", "tests", "tools", "benchmarks", "simulator", "examples", "docs/spec")


def too_long() -> list[tuple[int, Path]]:
    files = (path for root in ROOTS for path in Path(root).rglob("*.py") if GENERATED not in path.parents)
    return sorted(
        (lines, path) for path in files if (lines := len(path.read_text().splitlines())) > LINES_MAX
    )


if __name__ == "__main__":
    for lines, path in (found := too_long()):
        print(f"{path}: {lines} lines; look for the noun that hides in it (at most {LINES_MAX})")
    sys.exit(bool(found))
