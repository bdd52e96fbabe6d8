"""`postroad serve --nodes N`: a cluster on one machine, to use more of its cores or to see a failover.

This process owns the coordination store and serves it at a Unix socket in the data directory. The nodes are
its children, each with a data directory and a port of its own; one gateway is in front of all. A node that
dies is started again, and all of them end with this process, however that came to its end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from postroad import process
from postroad.broker.child_process import keep_running, run_child
from postroad.broker.cluster_directory import ClusterDirectory
from postroad.broker.gateway_process import GatewayProcess, bootstrap_of, shown_bootstrap
from postroad.broker.master_key_file import master_key_path, read_or_make
from postroad.broker.runtime import SystemRuntime
from postroad.cluster.image import Image, NodeEntry
from postroad.cluster.keys import SERVING
from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.store import Store
from postroad.cluster.store_server import StoreServer
from postroad.config import Loaded
from postroad.config.settings import all_settings
from postroad.config.sources import DEFAULT
from postroad.errors import ConfigurationError, PostroadError
from postroad.log.disk import OsDisk

if TYPE_CHECKING:
    from postroad.broker.secure_start import SecureStart

PORT_MAX: Final = 65535
LOOK_S: Final = 0.05  # at a start, for nodes that have become ready
STOP_S: Final = 60.0  # a node syncs all logs before it ends
EVERY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # and the one among them to connect to

log = logging.getLogger("postroad")


def run(loaded: Loaded, nodes: int, ready_file: str | None = None, secured: SecureStart | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the exit code. `ready_file` is written when clients may come.

    `secured`: what a start with `--secure` has to do besides.
    """
    process.log_to_stderr(loaded.settings.logging.level, loaded.settings.logging.format)
    process.raise_file_limit()
    try:
        check(loaded, nodes)
        with process.event_loop() as runner:
            return runner.run(_serve(loaded, nodes, ready_file, secured))
    except PostroadError as error:
        process.complain(error)
        return 1


def check(loaded: Loaded, nodes: int) -> None:
    """Raise ConfigurationError for settings that so many nodes can't have."""
    settings = loaded.settings
    if settings.cluster.store:
        raise ConfigurationError(
            "--nodes brings a coordination store of its own. Leave cluster.store out, or start each node by "
            "itself with --store."
        )
    if settings.kafka.listeners:
        raise ConfigurationError(
            "--nodes gives each node one listener, the one of kafka.host and kafka.port. "
            "Leave kafka.listeners out, or start each node by itself with --store."
        )
    if settings.topics.replicas > nodes:
        raise ConfigurationError(
            f"topics.replicas is {settings.topics.replicas}, but a topic can't have more replicas than there "
            f"are nodes: start more with --nodes, or set --replicas to {nodes} or less."
        )
    for port in (settings.kafka.port, settings.kafka.advertised_port):
        if port and port + nodes - 1 > PORT_MAX:
            raise ConfigurationError(
                f"the nodes would need the ports from {port} to {port + nodes - 1}: choose a lower one."
            )


async def _serve(loaded: Loaded, nodes: int, ready_file: str | None, secured: SecureStart | None) -> int:
    stopping = process.told_to_stop()
    directory = ClusterDirectory(loaded.settings.data.dir, OsDisk())
    directory.open(nodes)
    master = b""
    if loaded.settings.security.enabled:
        master = read_or_make(OsDisk(), loaded.settings, SystemRuntime().random.randbytes)
    gateway = GatewayProcess(loaded)
    await gateway.listen()
    store = await SqliteStore.open(directory.store)
    server = await StoreServer.open(store, directory.socket)
    running = NodeProcesses(loaded, nodes, directory, store)
    try:
        if not await running.start(stopping):
            return int(not stopping.is_set())
        gateway.start(bootstrap_of(loaded.settings, ",".join(running.addresses.values())))
        if secured is not None:
            at, advertised = list(running.addresses.values()), list(running.advertised.values())
            await secured.finish(at, advertised, gateway.address, master)
        _say_ready(loaded, running, gateway.address, ready_file, secured)
        await stopping.wait()
        log.info("stopping: first the gateway, then all nodes")
        await gateway.stop()
    finally:
        await running.stop()
        await server.close()
        await store.close()
        directory.close()
    return 0


class NodeProcesses:
    """The nodes, numbered from 1. `addresses` says where a process of this machine reaches each."""

    def __init__(self, loaded: Loaded, count: int, directory: ClusterDirectory, store: Store) -> None:
        self.addresses: dict[int, str] = {}
        self.advertised: dict[int, str] = {}
        self._loaded = loaded
        self._directory = directory
        self._store = store
        port = loaded.settings.kafka.port
        self._ports = {number: port + number - 1 if port else 0 for number in range(1, count + 1)}
        self._keepers: list[asyncio.Task[None]] = []
        self._ready = False
        self._failed = asyncio.Event()

    async def start(self, stopping: asyncio.Event) -> bool:
        """Start all. Returns whether all of them serve; False if one ended before, or we are told to stop."""
        before = {number: entry.incarnation for number, entry in (await self._image()).nodes.items()}
        for number in self._ports:
            name = f"node {number}"
            keeping = keep_running(name, partial(self._run, name, number))
            self._keepers.append(asyncio.create_task(keeping, name=name))
        while not self._is_ready(await self._image(), before):
            try:
                async with asyncio.timeout(LOOK_S):
                    await process.any_of(stopping, self._failed)
                return False
            except TimeoutError:
                continue
        self._ready = True
        return True

    async def stop(self) -> None:
        """End all at once. What they have to sync takes long where there is much of it."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def _run(self, name: str, number: int) -> int:
        settings = node_settings(self._loaded, number, len(self._ports), self._ports[number], self._directory)
        code = await run_child(name, ["serve", "--child"], settings, STOP_S)
        if not self._ready:
            log.error("%s could not be started", name)
            self._failed.set()
        return code

    async def _image(self) -> Image:
        image = Image()
        image.catch_up(await self._store.list(""))
        return image

    def _is_ready(self, image: Image, before: Mapping[int, str]) -> bool:
        """All nodes have registered anew and serve, and one of them is the controller."""
        entries = [image.nodes.get(number) for number in self._ports]
        for entry in entries:
            if entry is None or entry.state != SERVING or before.get(entry.id) == entry.incarnation:
                return False
            self._note_address(entry)
        return image.controller in self._ports

    def _note_address(self, entry: NodeEntry) -> None:
        """A node whose port was any free one keeps it from now on."""
        kafka = self._loaded.settings.kafka
        if not self._ports[entry.id]:
            self._ports[entry.id] = entry.port
        host = EVERY_ADDRESS.get(kafka.host, kafka.host)
        self.addresses[entry.id] = _address(host, self._ports[entry.id])
        self.advertised[entry.id] = _address(entry.host, entry.port)


def node_settings(
    loaded: Loaded, number: int, nodes: int, port: int, directory: ClusterDirectory
) -> dict[str, str]:
    """The settings of one node that differ from the defaults, as variables of its environment."""
    settings, is_default = loaded.settings, {name for name, at in loaded.origins.items() if at == DEFAULT}
    own: dict[str, object] = {
        "node.id": number,
        "data.dir": directory.node(number),
        "cluster.store": f"unix://{directory.socket}",
        "kafka.port": port,
        "http.enabled": False,
    }
    if settings.security.enabled:
        own["security.master_key_file"] = master_key_path(settings)
    if settings.kafka.advertised_port:
        own["kafka.advertised_port"] = settings.kafka.advertised_port + number - 1
    # A partition for each node, so that all of them have work; no replica that nobody has asked for.
    defaults: dict[str, object] = {
        "topics.partitions": nodes,
        "topics.internal_replicas": settings.topics.replicas,
        "groups.offsets_partitions": nodes,
    }
    chosen = {name: settings.get(name) for name in loaded.origins if name not in is_default}
    values = {**defaults, **chosen, **own}
    return {
        setting.environment_name: _text(values[setting.full_name])
        for setting in all_settings()
        if setting.full_name in values
    }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _say_ready(
    loaded: Loaded,
    running: NodeProcesses,
    http: str,
    ready_file: str | None,
    secured: SecureStart | None,
) -> None:
    addresses = ",".join(running.advertised.values())
    first = shown_bootstrap(loaded.settings, next(iter(running.advertised.values())))
    data = loaded.settings.data.dir.absolute()
    hints = (
        f"Try it:  postroad publish hello world --bootstrap {first}",
        f"         postroad consume hello --from-beginning --bootstrap {first}",
    )
    process.say(
        f"postroad is ready, {len(running.advertised)} nodes: Kafka clients connect to {addresses}; "
        f"data in {data}",
        *process.http_lines(loaded.settings.http.scheme, http, console=loaded.settings.http.console),
        *(hints if secured is None else secured.lines),
    )
    if ready_file is not None:
        facts = process.ready_http(loaded.settings.http.scheme, http)
        process.write_ready_file(ready_file, {"kafka": addresses, **facts})
