"""What a node runs on: everything outside of it, handed to it in one piece.

A node takes time, chance, files, threads, connections and the coordination store from its runtime and from
nowhere else. So the simulator can run the very same node on virtual time, over disks and networks that fail
as a seed says.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Protocol

from postroad import process
from postroad.cluster import store_address
from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.store import Store
from postroad.cluster.store_address import EtcdAddress, TlsFiles
from postroad.log.disk import Disk, OsDisk
from postroad.system import sockets
from postroad.system.clock import Clock, SystemClock
from postroad.system.stream import Listening, Stream
from postroad.system.workers import Threads, Workers

if TYPE_CHECKING:
    import ssl


class Runtime(Protocol):
    @property
    def clock(self) -> Clock: ...

    @property
    def disk(self) -> Disk: ...

    @property
    def random(self) -> Random:
        """For ids as well as for jitter: nobody can guess what it says."""

    def workers(self, count: int, name: str) -> Workers:
        """A number of threads, which call back on the running loop."""

    def cpu_seconds(self) -> float:
        """Processor time that the node's process has used."""

    def listen(self, host: str, port: int, backlog: int) -> Listening: ...

    async def connect(self, host: str, port: int) -> Stream: ...

    async def open_store(self, path: Path, address: str) -> Store:
        """The coordination store at this address (`cluster.store`); without one it lies in the file."""


class SystemRuntime:
    """The operating system's."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.disk = OsDisk()
        self.random = SystemRandom()
        self.cpu_seconds = process.cpu_seconds
        self.listen = sockets.listen
        self.connect = sockets.connect

    def workers(self, count: int, name: str) -> Workers:
        return Threads(asyncio.get_running_loop(), count, name)

    async def open_store(self, path: Path, address: str) -> Store:
        if not address:
            return await SqliteStore.open(path)
        # Imported when they are chosen: a single node starts without an HTTP client.
        parsed = store_address.parse(address)
        if isinstance(parsed, EtcdAddress):
            from postroad.cluster.etcd import EtcdStore

            return EtcdStore(parsed, None if parsed.tls is None else _tls_context(parsed.tls))
        from postroad.cluster.remote import RemoteStore

        return RemoteStore(parsed)


def _tls_context(files: TlsFiles) -> ssl.SSLContext:
    """ConfigurationError says which file can't be used."""
    from postroad.system.certificates import ClientFiles, client_context

    ca, certificate, key = (Path(file) if file else None for file in files)
    return client_context(ClientFiles(ca, certificate, key))
