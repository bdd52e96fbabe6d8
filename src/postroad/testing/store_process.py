"""A process that serves a coordination store of its own at a Unix socket, for nodes that a test runs.

    python -m postroad.testing.store_process FILE SOCKET

It writes a line to standard output once nodes may connect, and ends when its standard input does: the test
holds the other end, so nothing is left behind even when the test is killed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from postroad import process
from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.store_server import StoreServer


async def serve(file: Path, socket: Path) -> None:
    """Serve the store until standard input ends, or SIGTERM or SIGINT comes."""
    stopping = process.told_to_stop()
    process.end_with_stdin(stopping)
    store = await SqliteStore.open(file)
    server = await StoreServer.open(store, socket)
    process.say("ready")
    await stopping.wait()
    await server.close()
    await store.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), Path(sys.argv[2])))
