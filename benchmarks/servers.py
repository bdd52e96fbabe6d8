"""The brokers that are compared: how each is found, configured, started and named.

Every broker runs in two modes, both with acks=all (or what comes nearest):

- PAGE_CACHE: an acknowledged message is in the page cache, as Kafka's default leaves it.
- SYNCED: it is on the disk before it is acknowledged. A broker that can't do that is left out, and it is
  said.

Otherwise the brokers keep their defaults. Data lies in a directory that is deleted afterwards.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import ClassVar

from benchmarks import kafka_jars
from benchmarks.cache import Missing
from benchmarks.process import Process, Processes, free_port, free_ports


class Mode(Enum):
    PAGE_CACHE = "page cache"
    SYNCED = "synced"


class Server(ABC):
    """One broker in one mode. `start` raises Missing or ServerFailed; `stop` may be called at any time."""

    name: ClassVar[str]
    client: ClassVar[str | None] = None  # the program in c/ that speaks its protocol
    raw_client: ClassVar[str | None] = None
    queue_client: ClassVar[str | None] = None
    sqs_client: ClassVar[str | None] = None
    stream_client: ClassVar[str | None] = None
    queue_kind: ClassVar[str] = ""  # where it has several
    warm_rounds: ClassVar[int] = 0  # that it gets alone, before the round that warms up all
    measured_as: ClassVar[str] = ""  # the name that workloads have for it, where that is another
    is_named: ClassVar[bool] = False  # measured by workloads that name it, no others
    nodes: ClassVar[int] = 1
    replicas: ClassVar[int] = 1  # of each topic

    def __init__(self, mode: Mode, directory: Path) -> None:
        self.mode = mode
        self.directory = directory
        self.port = free_ports(self.nodes)
        self.ready_seconds = 0.0
        self.process: Process | Processes | None = None

    def start(self) -> None:
        """The broker accepts connections afterwards."""
        self.directory.mkdir(parents=True, exist_ok=True)
        command, environment = self.prepare()
        begun = time.monotonic()
        self.process = Process(command, self.directory / "output.log", environment)
        self.wait_until_ready(self.process)
        self.ready_seconds = time.monotonic() - begun

    def wait_until_ready(self, process: Process) -> None:
        process.wait_for(self.port)

    def stop(self) -> None:
        if self.process:
            self.process.stop()
            self.process = None
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def running(self) -> Process | Processes:
        assert self.process, f"{self.name} was not started"
        return self.process

    def queue_options(self) -> dict[str, object]:
        """What its queue clients have to be told besides the port."""
        return {}

    def client_environment(self) -> dict[str, str]:
        """What its clients have to be told, and not as arguments."""
        return {}

    @abstractmethod
    def prepare(self) -> tuple[list[str], dict[str, str]]:
        """Writes the broker's files; answers its command and environment. Raises Missing."""

    @abstractmethod
    def version(self) -> str:
        """As its makers write it."""


class Postroad(Server):
    """A node. Its gateway is another process, and is measured as one of its own (`sqs_servers`)."""

    name = "postroad"
    client: ClassVar[str | None] = "kafka"
    raw_client: ClassVar[str | None] = "kafka_raw"
    queue_client: ClassVar[str | None] = "share"
    tree: ClassVar[Path | None] = None  # where its source is, if it is not what is installed

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        command = [
            sys.executable,
            "-m",
            "postroad",
            "serve",
            "--data",
            str(self.directory / "data"),
            "--kafka",
            f"127.0.0.1:{self.kafka_port}",
            *self.http_options(),
        ]
        flush = "os" if self.mode is Mode.PAGE_CACHE else "sync"
        source = {"PYTHONPATH": str(self.tree / "src")} if self.tree else {}
        return command, {"POSTROAD_DURABILITY_FLUSH": flush, **source}

    @property
    def kafka_port(self) -> int:
        return self.port

    def http_options(self) -> list[str]:
        return ["--no-http"]

    def version(self) -> str:
        return metadata.version("postroad")


class Kafka(Server):
    """KRaft, broker and controller in one process, with the JVM options of kafka-server-start.sh."""

    name = "kafka"
    client = "kafka"
    raw_client: ClassVar[str | None] = "kafka_raw"
    queue_client: ClassVar[str | None] = "share"
    # Until the JVM has compiled what runs often, Kafka is several times slower than it will be: that would be
    # a comparison with its first minute.
    warm_rounds = 3

    _JVM = (
        "-Xmx1G",
        "-Xms1G",
        "-server",
        "-XX:+UseG1GC",
        "-XX:MaxGCPauseMillis=20",
        "-XX:InitiatingHeapOccupancyPercent=35",
        "-XX:+ExplicitGCInvokesConcurrent",
        "-Djava.awt.headless=true",
    )
    _CLUSTER_ID = "cG9zdHJvYWQtYmVuY2gtMQ"  # any 16 bytes in base64

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        return self.prepare_node(self.directory, self.properties(1, self.port, {1: free_port()})), {}

    def prepare_node(self, directory: Path, lines: Sequence[str]) -> list[str]:
        """The command of a broker with these properties, whose storage is formatted afterwards."""
        libs = kafka_jars.find()
        directory.mkdir(parents=True, exist_ok=True)
        properties = directory / "server.properties"
        properties.write_text("\n".join([*lines, f"log.dirs={directory / 'data'}"]) + "\n")
        (directory / "log4j2.properties").write_text(_LOG4J)
        java = [
            "java",
            f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}",
            "-cp",
            f"{libs}/*",
        ]
        format_storage = ["kafka.tools.StorageTool", "format", "-t", self._CLUSTER_ID, "-c", str(properties)]
        done = subprocess.run([*java, *format_storage], capture_output=True, text=True, check=False)
        if done.returncode:
            why = (done.stderr or done.stdout).strip()[-500:]
            raise Missing(f"Kafka's storage could not be formatted\n{why}")
        return [java[0], *self._JVM, *java[1:], "kafka.Kafka", str(properties)]

    def version(self) -> str:
        return kafka_jars.version(kafka_jars.find())

    def properties(self, number: int, port: int, controllers: Mapping[int, int]) -> list[str]:
        """The properties of a node that clients reach at `port`. `controllers`: the ports of their quorum."""
        voters = ",".join(f"{node}@127.0.0.1:{controllers[node]}" for node in controllers)
        lines = [
            "process.roles=broker,controller",
            f"node.id={number}",
            f"controller.quorum.voters={voters}",
            f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controllers[number]}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            f"offsets.topic.replication.factor={self.replicas}",
            f"share.coordinator.state.topic.replication.factor={self.replicas}",
            f"share.coordinator.state.topic.min.isr={max(self.replicas - 1, 1)}",
            f"transaction.state.log.replication.factor={self.replicas}",
            f"transaction.state.log.min.isr={max(self.replicas - 1, 1)}",
            f"min.insync.replicas={max(self.replicas - 1, 1)}",
            # Dropped topics leave the disk before the next round, as they do on the other side.
            "log.segment.delete.delay.ms=1000",
        ]
        if self.mode is Mode.SYNCED:
            lines.append("log.flush.interval.messages=1")  # the default of every topic's flush.messages
        return lines


_LOG4J = """\
status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
rootLogger.level=info
rootLogger.appenderRef.out.ref=out
"""


class Nats(Server):
    """JetStream, streams in files. Before 2.10 it syncs every two minutes, and nothing can change that."""

    name = "nats"
    client = "nats"
    queue_client = "nats_queue"

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        program = _program("nats-server", "nats-server")
        if self.mode is Mode.SYNCED and tuple(map(int, self.version().split(".")[:2])) < (2, 10):
            raise Missing(f"nats-server {self.version()} can't sync before it acknowledges (2.10 can)")
        sync = ", sync_interval: always" if self.mode is Mode.SYNCED else ""
        config = self.directory / "nats.conf"
        config.write_text(
            f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{self.directory / "data"}"{sync} }}\n'
        )
        return [program, "-c", str(config)], {}

    def version(self) -> str:
        return _version_of("nats-server", "--version")


class Redis(Server):
    """Streams with the append-only file: synced every second, or before every answer."""

    name = "redis"
    client = "redis"

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        program = _program("redis-server", "redis-server")
        options = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "dir": str(self.directory),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec" if self.mode is Mode.PAGE_CACHE else "always",
            "auto-aof-rewrite-percentage": "0",  # or a rewrite in the background falls into somebody's round
        }
        return [program, *(word for name, value in options.items() for word in (f"--{name}", value))], {}

    def version(self) -> str:
        return _version_of("redis-server", "--version")


class RabbitMQ(Server):
    """A durable classic queue. Persistent messages are confirmed when they are on the disk, in both modes."""

    name = "rabbitmq"
    client: ClassVar[str | None] = "rabbitmq"
    queue_client = "rabbitmq_queue"
    queue_kind = "classic"

    _HOME = Path("/usr/lib/rabbitmq")

    def __init__(self, mode: Mode, directory: Path) -> None:
        super().__init__(mode, directory)
        self._epmd: Process | None = None
        self._epmd_port = free_port()

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        # Debian's wrapper in /usr/sbin changes to the user rabbitmq; the script behind it does not.
        program = self._HOME / "bin" / "rabbitmq-server"
        if not program.exists():
            raise Missing("rabbitmq-server is not installed (Debian: apt-get install rabbitmq-server)")
        (self.directory / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\ndistribution.listener.interface = 127.0.0.1\n"
        )
        (self.directory / "plugins").write_text("[].\n")
        environment = self._environment()
        self._start_epmd(environment)
        return [str(program)], environment

    def stop(self) -> None:
        if self.process:
            self.process.stop()
            self.process = None
        if self._epmd:
            self._epmd.stop()
            self._epmd = None
        super().stop()

    def version(self) -> str:
        found = sorted(self._HOME.glob("lib/rabbitmq_server-*"))
        return found[-1].name.partition("-")[2] if found else "unknown"

    def _start_epmd(self, environment: dict[str, str]) -> None:
        """Erlang's name server: left alone, RabbitMQ would start one that outlives the benchmark."""
        self._epmd = Process([_program("epmd", "erlang-base")], self.directory / "epmd.log", environment)
        self._epmd.wait_for(self._epmd_port)

    def _environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.directory),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": "bench@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_CONFIG_FILE": str(self.directory / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.directory / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.directory / "data"),
            "RABBITMQ_LOG_BASE": str(self.directory / "log"),
            "RABBITMQ_PID_FILE": str(self.directory / "pid"),
        }


class RabbitMQQuorum(RabbitMQ):
    """Quorum queues, in a process of their own, so that CPU and memory can be told apart."""

    name = "rabbitmq-quorum"
    client = None
    queue_kind = "quorum"


def _program(name: str, package: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/sbin")
    if not found:
        raise Missing(f"{name} is not installed (Debian: apt-get install {package})")
    return found


def _version_of(name: str, option: str) -> str:
    output = subprocess.run(
        [_program(name, name), option], capture_output=True, text=True, check=False
    ).stdout
    match = re.search(r"\d+\.\d+\.\d+", output)
    return match[0] if match else "unknown"
