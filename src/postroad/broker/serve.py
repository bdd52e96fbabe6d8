"""`postroad serve`: one node in this process, from its settings to its last log line."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Final

from postroad.broker.node import Node
from postroad.config import Loaded
from postroad.errors import PostroadError

SWITCH_INTERVAL_S: Final = (
    0.0005  # a finished sync waits at most this long for the interpreter (default 5 ms)
)

log = logging.getLogger("postroad")


def run(loaded: Loaded, ready_file: str | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. `ready_file` is written when clients may come."""
    logging.basicConfig(
        level=loaded.settings.logging.level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    _raise_file_limit()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        with _runner() as runner:
            return runner.run(_serve(loaded, ready_file))
    except PostroadError as error:
        print(f"postroad: {error}", file=sys.stderr)
        return 1


async def _serve(loaded: Loaded, ready_file: str | None) -> int:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if not loaded.settings.kafka.loopback:
        log.warning("others can connect to %s, without TLS or a password", loaded.settings.kafka.host)
    node = Node(loaded)
    await node.start()
    _say_ready(node, ready_file)
    gc.collect()
    gc.freeze()  # what is loaded by now stays: the collector need not look at it again
    await _either(stopping, node.failed)
    log.info("stopping: answering what is under way, syncing the logs")
    await node.stop()
    return int(node.failed.is_set())


async def _either(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for one in waiting:
        one.cancel()


def _runner() -> asyncio.Runner:
    """uvloop where it is installed, asyncio's own loop otherwise."""
    with contextlib.suppress(ImportError):
        import uvloop

        return asyncio.Runner(loop_factory=uvloop.new_event_loop)
    return asyncio.Runner()


def _say_ready(node: Node, ready_file: str | None) -> None:
    address = f"{node.settings.kafka.host_to_advertise}:{node.advertised_port}"
    print(
        f"postroad is ready: Kafka clients connect to {address}; data in {node.directory.path.absolute()}\n"
        f"Try it:  postroad publish hello world --bootstrap {address}\n"
        f"         postroad consume hello --from-beginning --bootstrap {address}",
        flush=True,
    )
    if ready_file is not None:
        temporary = Path(f"{ready_file}.new")
        temporary.write_text(json.dumps({"kafka": address, "pid": os.getpid()}))
        temporary.replace(ready_file)


def _raise_file_limit() -> None:
    """Each partition holds a few files open; take all that we may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
