"""`postroad gateway`, which takes another for lost after seconds, not a quarter of a minute:
`python -m tests.gateway.redrives.quick_gateway ARGUMENTS`.
"""

from __future__ import annotations

import sys
from typing import Any

from postroad.cli import main
from postroad.gateway.redrives import redrives, runner
from postroad.gateway.sqs import move_task

PACE: dict[Any, dict[str, float]] = {
    redrives: {"LOOK_S": 0.5, "SILENT_S": 6.0},
    runner: {"BEAT_S": 0.5},
    move_task: {"LOCK_MS": 4_000},  # they have ended by then
}

if __name__ == "__main__":
    for module, constants in PACE.items():
        for name, value in constants.items():
            assert hasattr(module, name)
            setattr(module, name, value)
    sys.argv.insert(1, "gateway")
    main()
