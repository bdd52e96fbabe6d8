"""`postroad serve`: a node in this process, a gateway beside it, from the settings to the last log line."""

from __future__ import annotations

import gc
import logging
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

from postroad import process
from postroad.broker.gateway_process import GatewayProcess, bootstrap_of, shown_bootstrap
from postroad.broker.master_key_file import gateway_key_path, master_key_path
from postroad.broker.node import Node
from postroad.config import Loaded, Settings
from postroad.config.kafka import Kafka
from postroad.config.listeners import is_loopback
from postroad.errors import PostroadError

if TYPE_CHECKING:
    from postroad.broker.secure_start import SecureStart

SWITCH_INTERVAL_S: Final = (
    0.0005  # a finished sync waits at most this long for the interpreter (default 5 ms)
)
EVERY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # and the one among them to connect to

log = logging.getLogger("postroad")


def run(
    loaded: Loaded,
    ready_file: str | None = None,
    is_child: bool = False,
    secured: SecureStart | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. `ready_file` is written when clients may come.

    A child of `several_nodes` also stops when its standard input ends, and says nothing. `secured`: what a
    start with `--secure` has to do besides.
    """
    settings = loaded.settings
    source = f"node {settings.node.id}" if is_child else ""
    process.log_to_stderr(settings.logging.level, settings.logging.format, source=source)
    process.raise_file_limit()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        with process.event_loop() as runner:
            return runner.run(_serve(loaded, ready_file, is_child, secured))
    except PostroadError as error:
        process.complain(error)
        return 1


async def _serve(loaded: Loaded, ready_file: str | None, is_child: bool, secured: SecureStart | None) -> int:
    stopping = process.told_to_stop()
    if is_child:
        process.end_with_stdin(stopping)
    for listener in loaded.settings.kafka.every_listener:
        is_asked = loaded.settings.security.enabled and listener.is_tls
        if not is_loopback(listener.host) and not listener.is_safe and not is_asked:
            without = "a certificate of their own" if listener.is_tls else "TLS or a password"
            log.warning("others can connect to %s, without %s", listener.host, without)
    gateway = GatewayProcess(loaded)
    await gateway.listen()
    node = Node(loaded)
    await node.start()
    process.warn_of_exposed(*_secrets(loaded.settings))
    if node.certificates is not None:
        process.when_told_to_reload(partial(node.certificates.reload, True))
    at = _own_address(node.settings.kafka, node.port)
    gateway.start(bootstrap_of(loaded.settings, at))
    if secured is not None:
        try:
            await secured.finish([at], [_advertised(node)], gateway.address, node.security.master_key)
        except BaseException:
            await gateway.stop()
            await node.stop()
            raise
    if not is_child:
        _say_ready(node, gateway.address, ready_file, secured)
    gc.collect()
    gc.freeze()  # what is loaded by now stays: the collector need not look at it again
    await process.any_of(stopping, node.failed)
    log.info("stopping: answering what is under way, syncing the logs")
    await gateway.stop()
    await node.stop()
    return int(node.failed.is_set())


def _secrets(settings: Settings) -> list[str]:
    """The files with which one can be this node, or the cluster."""
    keys = [master_key_path(settings), gateway_key_path(settings)] if settings.security.enabled else []
    return [*keys, settings.tls.key]


def _own_address(kafka: Kafka, port: int) -> str:
    """Where a process of this machine reaches the node."""
    return _address(EVERY_ADDRESS.get(kafka.host, kafka.host), port)


def _advertised(node: Node) -> str:
    """Where clients are told to connect."""
    return _address(node.settings.kafka.host_to_advertise, node.advertised_port)


def _say_ready(node: Node, http: str, ready_file: str | None, secured: SecureStart | None) -> None:
    address = _advertised(node)
    shown = shown_bootstrap(node.settings, address)
    hints = (
        f"Try it:  postroad publish hello world --bootstrap {shown}",
        f"         postroad consume hello --from-beginning --bootstrap {shown}",
    )
    process.say(
        f"postroad is ready: Kafka clients connect to {address}; data in {node.directory.path.absolute()}",
        *process.http_lines(node.settings.http.scheme, http, console=node.settings.http.console),
        *(hints if secured is None else secured.lines),
    )
    if ready_file is not None:
        others = {f"kafka.{name}": _address(*at) for name, at in node.registration.me.listeners.items()}
        process.write_ready_file(
            ready_file, {"kafka": address, **others, **process.ready_http(node.settings.http.scheme, http)}
        )


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
