"""Writes src/postroad/wire/messages from kio's schemas: `make messages`.

With --check nothing is written; the exit status says whether the files are what would be written.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.generator import module, schema

TARGET = Path(__file__).resolve().parent.parent / "src" / "postroad" / "wire" / "messages"


def generate() -> dict[str, str]:
    """File name → text."""
    apis = schema.load_all()
    files = {f"{api.module}.py": module.write_module(api) for api in apis}
    return files | {"__init__.py": module.write_package(apis)}


def stale(files: dict[str, str]) -> list[str]:
    """The names of files that are missing, different, or no longer generated."""
    there = {path.name: path.read_text() for path in TARGET.glob("*.py")}
    return sorted(name for name in there.keys() | files.keys() if there.get(name) != files.get(name))


def write(files: dict[str, str]) -> None:
    TARGET.mkdir(exist_ok=True)
    for name in stale(files):
        if name in files:
            (TARGET / name).write_text(files[name])
        else:
            (TARGET / name).unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the files are not current"
    )
    arguments = parser.parse_args()
    files = generate()
    if not arguments.check:
        write(files)
        return 0
    old = stale(files)
    if old:
        print(f"not current, run `make messages`: {', '.join(old)}")
    return bool(old)


if __name__ == "__main__":
    sys.exit(main())
