"""Somebody at a terminal who does what a block says, line by line, and says yes where a command asks."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

from .markdown import ROOT, Block, all_blocks
from .reader import ENVIRONMENT, PATIENCE_S


class Operator:
    """Works in the directory `home`. `names` are what the document writes: what stands there instead here."""

    def __init__(self, home: Path, bootstrap: str, names: dict[str, str] | None = None) -> None:
        self.home = home
        self.names = dict(names or {})
        self.environment = ENVIRONMENT | {"POSTROAD_BOOTSTRAP": bootstrap}

    def do(self, line: str) -> str:
        """What is printed. AssertionError if it fails."""
        if found := re.fullmatch(r"export (\w+)=(\S+)", line):
            self.environment[found[1]] = found[2]
            return ""
        for name, here in self.names.items():
            line = line.replace(name, here)
        terminal, stdin = pty.openpty()
        try:
            os.write(terminal, b"y\n")
            done = subprocess.run(
                ["bash", "-ec", line],
                cwd=self.home,
                env=self.environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=PATIENCE_S,
            )
        finally:
            os.close(terminal)
            os.close(stdin)
        assert done.returncode == 0, f"$ {line}\n{done.stdout}"
        return done.stdout


def block_of(document: str, test: str, contains: str) -> Block:
    """The one that this test runs and that has this text."""
    found = [
        block
        for block in all_blocks((ROOT / document).read_text())
        if block.notes.get("not run", "").startswith(f"{test} does") and contains in block.text
    ]
    assert len(found) == 1, f"{document}: {len(found)} blocks with {contains!r}"
    return found[0]


def lines_of(block: Block) -> list[str]:
    return [line for line in block.text.splitlines() if line and not line.startswith("#")]
