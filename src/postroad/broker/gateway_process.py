"""The HTTP gateway beside a node: a child process, started again when it dies, gone when this one is.

This process takes the address and listens; the child inherits the socket. So the address is known at once
and never lost, and whoever connects while a gateway is being started waits a moment instead of being refused.
The child's standard input is a pipe from here that nothing is written to: when it ends, so does the child,
even if this process was killed.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import sys
from collections.abc import Mapping
from typing import Final

from postroad.config import Loaded, Settings
from postroad.config.declaration import ENVIRONMENT_PREFIX, declarations
from postroad.config.sections import Http, Logging
from postroad.config.sources import DEFAULT
from postroad.errors import ConfigurationError

BACKLOG: Final = 1024
# The gateway of a node that was killed a moment ago lets its port go when it sees that.
PORT_PATIENCE_S: Final = 3.0
DEFAULT_PORT_PATIENCE_S: Final = 0.3  # the node can do without, and should not be held up
LOOK_AGAIN_S: Final = 0.02
STOP_S: Final = 12.0  # more than the gateway allows itself
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
WELL_AFTER_S: Final = 30.0  # one that lived so long gets the short pause again

log = logging.getLogger("postroad")


class GatewayProcess:
    """`listen`, then `start` once the node serves, then `stop` before the node does."""

    def __init__(self, loaded: Loaded) -> None:
        self._settings = loaded.settings
        self._port_is_chosen = loaded.origins["http.port"] != DEFAULT
        self._socket: socket.socket | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Where it listens; empty if there is no gateway."""
        if self._socket is None:
            return ""
        host, port = self._socket.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def listen(self) -> None:
        """Take the address. A port that somebody chose must be free, else ConfigurationError."""
        http = self._settings.http
        if not http.enabled:
            return
        patience_s = PORT_PATIENCE_S if self._port_is_chosen else DEFAULT_PORT_PATIENCE_S
        try:
            self._socket = await _bind(http.host, http.port, patience_s)
        except OSError as error:
            reason = error.strerror or str(error)
            if self._port_is_chosen or error.errno != errno.EADDRINUSE:
                raise ConfigurationError(
                    f"can't listen on {http.host}:{http.port} for HTTP: {reason}. "
                    "Choose another port with --http HOST:PORT, or leave it out with --no-http."
                ) from None
            log.warning("no HTTP here: port %d is taken. Choose another with --http HOST:PORT.", http.port)

    def start(self, bootstrap: str) -> None:
        if self._socket is not None:
            self._keeper = asyncio.create_task(self._keep(self._socket, bootstrap), name="gateway")

    async def stop(self) -> None:
        """The gateway has answered what was under way, or was ended."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()

    async def _keep(self, sock: socket.socket, bootstrap: str) -> None:
        pause_s = FIRST_PAUSE_S
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                code = await self._run_one(sock, bootstrap)
            except OSError as error:  # no memory or no process to be had
                log.error("the gateway can't be started: %s", error)
            else:
                log.error("the gateway ended with code %d; starting it again in %g s", code, pause_s)
            if loop.time() - began > WELL_AFTER_S:
                pause_s = FIRST_PAUSE_S
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _run_one(self, sock: socket.socket, bootstrap: str) -> int:
        """One gateway from its start to its end; its exit code."""
        # -P: a file called http.py where the node was started would else be run in the place of Python's own.
        arguments = ["-P", "-m", "postroad", "gateway"]
        arguments += ["--bootstrap", bootstrap, "--inherit", str(sock.fileno())]
        # A session of its own: Ctrl-C in a terminal reaches this process, which ends both in order.
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            pass_fds=[sock.fileno()],
            env=environment(self._settings, os.environ),
            start_new_session=True,
        )
        try:
            return await child.wait()
        except asyncio.CancelledError:
            await _end(child)
            raise


async def _end(child: asyncio.subprocess.Process) -> None:
    child.terminate()
    try:
        async with asyncio.timeout(STOP_S):
            await child.wait()
    except TimeoutError:
        log.error("the gateway did not end within %g s and is killed", STOP_S)
        child.kill()
        await child.wait()


async def _bind(host: str, port: int, patience_s: float) -> socket.socket:
    """A listening socket; waits a little for one who is about to let go of the port. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    deadline = asyncio.get_running_loop().time() + patience_s
    while True:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            sock.listen(BACKLOG)
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE or asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(LOOK_AGAIN_S)
        else:
            return sock


def environment(settings: Settings, ours: Mapping[str, str]) -> dict[str, str]:
    """For the child: what we were given but our settings, and those of its own in full."""
    plain = {name: value for name, value in ours.items() if not name.startswith(ENVIRONMENT_PREFIX)}
    for section in (Http, Logging):
        for setting in declarations(section):
            plain[setting.environment_name] = setting.kafka_text(settings.get(setting.full_name))
    return plain
