"""The gateway as a process, alone or beside a node, from its settings to its last log line.

Alone it takes an address of its own. Beside a node it is given a socket that the node's process listens on,
so that address and waiting connections outlive a gateway that dies; and it ends when its standard input does,
however the node's process came to its end.

Stop: no new connections → whoever waits for messages gets none → what is under way is answered, for `GRACE_S`
at most on the short way and then for as long by aiohttp → what was accepted is published.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import web

from postroad import process
from postroad.client.login import Credentials
from postroad.config import Settings
from postroad.errors import BrokerNotAvailable, ConfigurationError, PostroadError, TryAgain
from postroad.gateway.access_log import ACCESS
from postroad.gateway.app import create_app
from postroad.gateway.connections import Door
from postroad.gateway.dialects import CONTEXTS, DIALECTS
from postroad.gateway.gateway import Gateway, GatewaySettings
from postroad.gateway.short_way import ShortWayHandler
from postroad.gateway.tls import GatewayTls
from postroad.security.master_key import GATEWAY_USER, machine_password, read_key

GRACE_S: Final = 5.0
ASK_AGAIN_S: Final = 1.0  # while no node answers

log = logging.getLogger("postroad.gateway")


def run(
    settings: Settings, bootstrap: str, ready_file: str | None = None, inherited: int | None = None
) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. `inherited` is the descriptor of a listening socket."""
    is_json = settings.http.access_log_format == "json"
    process.log_to_stderr(settings.logging.level, settings.logging.format, ACCESS if is_json else "")
    process.raise_file_limit()
    try:
        with process.event_loop() as runner:
            return runner.run(_serve(settings, bootstrap, ready_file, inherited))
    except PostroadError as error:
        process.complain(error)
        return 1


async def _serve(settings: Settings, bootstrap: str, ready_file: str | None, inherited: int | None) -> int:
    stopping = process.told_to_stop()
    if inherited is None:
        sock = bind(settings.http.host, settings.http.port)
    else:
        sock = socket.socket(fileno=inherited)
        process.end_with_stdin(stopping)
    asks = settings.security.enabled or settings.http.access_keys or settings.http.demands_certificates
    if not settings.http.loopback and not asks:
        log.warning("others can connect to %s, without a key", settings.http.host)
    if not settings.http.loopback and not settings.http.tls:
        log.warning("others can connect to %s, without TLS", settings.http.host)
    if inherited is None:  # else the node has said it
        process.warn_of_exposed(settings.security.gateway_key_file, settings.tls.key)
    tls = None if not settings.http.tls else GatewayTls(settings)
    name = settings.http.name or f"{socket.gethostname()}-{sock.getsockname()[1]}"
    gateway = await _connected(settings, bootstrap, name, stopping)
    if gateway is not None:
        await _serve_requests(gateway, sock, tls, stopping, ready_file, say=inherited is None)
    return 0


async def _serve_requests(
    gateway: Gateway,
    sock: socket.socket,
    tls: GatewayTls | None,
    stopping: asyncio.Event,
    ready_file: str | None,
    say: bool,
) -> None:
    runner = web.AppRunner(create_app(gateway, DIALECTS, CONTEXTS), shutdown_timeout=GRACE_S)
    await runner.setup()
    handler = ShortWayHandler(gateway)
    door = Door(runner, gateway.http, gateway.metrics, handler, gateway.memory)
    await door.open(sock, None if tls is None else tls.context)
    renewing = None
    if tls is not None:
        process.when_told_to_reload(partial(tls.reload, True))
        renewing = asyncio.create_task(tls.keep_current(), name="keep-certificates")
    _say_ready(sock, gateway.http.scheme, ready_file, say)
    gc.collect()
    gc.freeze()  # what is loaded by now stays: the collector need not look at it again
    await stopping.wait()
    log.info("stopping: answering what is under way")
    door.close()
    if renewing is not None:
        renewing.cancel()
    await gateway.end_waits()
    await handler.finish(GRACE_S)
    await runner.cleanup()
    await gateway.__aexit__(None)


def credentials_of(settings: Settings) -> Credentials | None:
    """With what the gateway logs in to the nodes; None: they don't ask. Raises ConfigurationError."""
    if not settings.security.enabled:
        return None
    path = settings.security.gateway_key_file or settings.security.master_key_file
    if not path:
        raise ConfigurationError(
            "security.gateway_key_file: a gateway needs the file gateway.key from a node's data directory."
        )
    try:
        key = read_key(Path(path).read_text())  # both are as long
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the key in {path} can't be used: {error}.") from None
    if settings.security.gateway_key_file:
        return Credentials(GATEWAY_USER, key.hex())
    return Credentials(GATEWAY_USER, machine_password(key, GATEWAY_USER))


async def _connected(
    settings: Settings, bootstrap: str, name: str, stopping: asyncio.Event
) -> Gateway | None:
    """As soon as a node answers; None if we are told to stop before."""
    while not stopping.is_set():
        gateway = Gateway(
            GatewaySettings(
                bootstrap,
                settings.http,
                credentials_of(settings),
                settings.security.enabled,
                settings.tls.principal_rules,
                name,
                settings.console,
            )
        )
        try:
            return await gateway.__aenter__()
        except (BrokerNotAvailable, TryAgain) as error:
            gateway.client.close()
            log.warning("no node answers at %s (%s); asking again", bootstrap, error)
        try:
            async with asyncio.timeout(ASK_AGAIN_S):
                await stopping.wait()
        except TimeoutError:
            continue
    return None


def bind(host: str, port: int) -> socket.socket:
    """The address is ours, and nobody is let in yet. Raises ConfigurationError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError as error:
        raise ConfigurationError(
            f"can't listen on {host}:{port}: {error.strerror or error}. "
            "Choose another port with --http HOST:PORT."
        ) from None
    return sock


def _say_ready(sock: socket.socket, scheme: str, ready_file: str | None, say: bool) -> None:
    host, port = sock.getsockname()[:2]
    address = f"[{host}]:{port}" if sock.family == socket.AF_INET6 else f"{host}:{port}"
    if say:
        process.say(f"postroad gateway is ready: {scheme}://{address}")
    else:
        log.info("serving %s://%s", scheme, address)
    if ready_file is not None:
        process.write_ready_file(ready_file, process.ready_http(scheme, address))
