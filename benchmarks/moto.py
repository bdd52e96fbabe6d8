"""moto, which imitates AWS for tests: its server in an environment of its own, made once, in the cache.

Never in Postroad's own environment: moto brings boto3, Flask and some sixty packages more.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks import cache

VERSION = "5.2.5"
INSTALL_SECONDS_MAX = 600


def python() -> Path:
    """An interpreter that knows moto. Raises Missing."""
    home = cache.directory(f"moto-{VERSION}")
    program, complete = home / "bin" / "python", home / "complete"
    if not complete.exists():
        print(f"installing moto {VERSION} into an environment of its own, once …", flush=True)
        _run([sys.executable, "-m", "venv", "--clear", str(home)])
        _run([str(program), "-m", "pip", "install", "-q", f"moto[server]=={VERSION}"])
        complete.touch()  # an installation that was broken off is begun anew
    return program


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX, check=False)
    if done.returncode:
        why = (done.stderr or done.stdout).strip()[-500:]
        raise cache.Missing(f"moto {VERSION} could not be installed\n{why}")
