"""Postroad: a distributed message queue, and an API for those who use it from Python.

    import postroad

    app = postroad.App()

    @app.worker("resize", topic="jobs", attempts=5, backoff="1s")
    async def resize(job: dict) -> None: ...

docs/workers.md is the guide. To read the code start at ARCHITECTURE.md, then `broker/`.

The names below are loaded when they are first used: a node and the command line need none of them. Type
checkers find them in `__init__.pyi`.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "App": "workers.app",
    "Client": "workers.client",
    "Message": "workers.message",
    "Middleware": "workers.middleware",
    "Outgoing": "workers.publishing",
    "PostroadError": "errors",
    "Record": "workers.streams",
    "Received": "workers.receiving",
    "Reject": "workers.outcomes",
    "Retry": "workers.outcomes",
    "SyncClient": "workers.blocking",
    "Tracing": "workers.telemetry",
    "Undecodable": "workers.errors",
}

_EXTRA = "Tracing"  # needs OpenTelemetry, so `from postroad import *` leaves it out

__all__ = [*(name for name in _HOMES if name != _EXTRA), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found
