"""The HTTP gateway beside a node: a child process, started again when it dies, gone when this one is.

This process takes the address and listens; the child inherits the socket. So the address is known at once
and never lost, and whoever connects while a gateway is being started waits a moment instead of being refused.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

from postroad.broker.child_process import keep_running, run_child
from postroad.broker.master_key_file import gateway_key_path
from postroad.config import Loaded, Settings
from postroad.config.declaration import declarations
from postroad.config.sections import Http, Logging
from postroad.config.security import Security
from postroad.config.settings import declared
from postroad.config.sources import DEFAULT
from postroad.config.tls import Tls
from postroad.errors import ConfigurationError

BACKLOG: Final = 1024
# The gateway of a node that was killed a moment ago lets its port go when it sees that.
PORT_PATIENCE_S: Final = 3.0
DEFAULT_PORT_PATIENCE_S: Final = 0.3  # the node can do without, and should not be held up
LOOK_AGAIN_S: Final = 0.02
STOP_S: Final = 12.0  # more than the gateway allows itself

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
            log.warning("HTTP is off: port %d is taken. Choose another with --http HOST:PORT.", http.port)

    def start(self, bootstrap: str) -> None:
        if self._socket is not None:
            run = partial(self._run, self._socket, bootstrap)
            self._keeper = asyncio.create_task(keep_running("the gateway", run), name="gateway")

    async def stop(self) -> None:
        """The gateway has answered what was under way, or was ended."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()

    async def _run(self, sock: socket.socket, bootstrap: str) -> int:
        """One gateway from its start to its end; its exit code."""
        arguments = ["gateway", "--bootstrap", bootstrap, "--inherit", str(sock.fileno())]
        settings = settings_of(self._settings)
        return await run_child("the gateway", arguments, settings, STOP_S, [sock.fileno()])


def bootstrap_of(settings: Settings, addresses: str) -> str:
    """How a process of this machine reaches nodes: where that needs TLS, as another node would."""
    if not settings.kafka.tls:
        return addresses
    tls = settings.tls  # the certificate names what clients are told, which need not be these addresses
    files = {"ca": tls.ca, "certificate": tls.certificate, "key": tls.key}
    options = [f"{name}={quote(str(Path(file).absolute()))}" for name, file in files.items() if file]
    return f"tls://{addresses}?{'&'.join([*options, 'verify=ca'])}"


def shown_bootstrap(settings: Settings, addresses: str) -> str:
    """What a command needs to be told to try the nodes."""
    if not settings.kafka.tls:
        return addresses
    return f"'tls://{addresses}{f'?ca={settings.tls.ca}' if settings.tls.ca else ''}'"


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


def settings_of(settings: Settings) -> dict[str, str]:
    """The settings of a gateway in full, as variables of its environment."""
    found = {
        setting.environment_name: setting.kafka_text(settings.get(setting.full_name))
        for section in (Http, Tls, Security, Logging)
        for setting in declarations(section)
    }
    if settings.security.enabled:  # it has no need of the master key
        found[declared("security.master_key_file").environment_name] = ""
        found[declared("security.gateway_key_file").environment_name] = gateway_key_path(settings)
    return found
