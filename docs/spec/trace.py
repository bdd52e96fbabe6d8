"""Prints a counterexample of TLC as steps: the action, and only the variables that it changed.

`python -m docs.spec.trace traces/m-shrinkEarly.txt`, with what `--traces` of `run.py` wrote.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

BOOKKEEPING: Final = {
    "bud",
    "n",
    "cur",
}  # budgets and counters, which change all the time and explain nothing


def states(output: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each state's headline, such as `State 3 Produce`, and its variables."""
    for block in re.split(r"^(?=State \d+:)", output, flags=re.MULTILINE)[1:]:
        headline, _, body = block.partition("\n")
        action = re.search(r"<(\w+)", headline)
        variables = {}
        for line in re.split(r"^/\\ ", body.split("\n\n")[0], flags=re.MULTILINE)[1:]:
            name, _, value = line.partition(" = ")
            variables[name] = " ".join(value.split())
        yield f"{headline.split(':')[0]} {action[1] if action else ''}".rstrip(), variables


def steps(output: str) -> Iterator[str]:
    """The lines that are printed: a headline for each state, below it what has changed."""
    before: dict[str, str] = {}
    for headline, variables in states(output):
        yield headline
        for name, value in variables.items():
            if before and before.get(name) != value and name not in BOOKKEEPING:
                yield f"      {name} = {value}"
        before = variables


if __name__ == "__main__":
    print("\n".join(steps(Path(sys.argv[1]).read_text())))
