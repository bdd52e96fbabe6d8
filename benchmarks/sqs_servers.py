"""The servers that speak SQS: Postroad's gateway, moto's server and ElasticMQ.

The other two keep messages in memory and nowhere else, so they are left out where messages have to be synced.
"""

from __future__ import annotations

import shutil
import time
import urllib.request
from pathlib import Path
from typing import ClassVar

from benchmarks import cache, maven, moto
from benchmarks.cache import Missing
from benchmarks.process import READY_SECONDS_MAX, free_port
from benchmarks.servers import Mode, Postroad, Server


class PostroadGateway(Postroad):
    """A node and the gateway that it starts beside itself; `port` is the gateway's."""

    name = "postroad-gateway"
    client: ClassVar[str | None] = None
    raw_client: ClassVar[str | None] = None
    queue_client: ClassVar[str | None] = None
    sqs_client = "sqs"
    stream_client = "stream"

    def __init__(self, mode: Mode, directory: Path) -> None:
        super().__init__(mode, directory)
        self._kafka_port = free_port()

    @property
    def kafka_port(self) -> int:
        return self._kafka_port

    def http_options(self) -> list[str]:
        return ["--http", f"127.0.0.1:{self.port}"]

    def queue_options(self) -> dict[str, object]:
        return {"kafka": self.kafka_port}

    def start(self) -> None:
        """The node listens for the gateway too, so that a connection alone does not mean that it is there."""
        begun = time.monotonic()
        super().start()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=READY_SECONDS_MAX):
            self.ready_seconds = time.monotonic() - begun


class Moto(Server):
    """As `moto_server` runs it: a thread for each connection, and a line in the log for each request."""

    name = "moto"
    sqs_client = "sqs"

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        _refuse_synced(self.mode)
        return [str(moto.python()), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)], {}

    def version(self) -> str:
        return moto.VERSION


class ElasticMQ(Server):
    name = "elasticmq"
    sqs_client = "sqs"
    warm_rounds = 3  # the JVM's, as for Kafka

    VERSION = "1.7.1"

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        _refuse_synced(self.mode)
        if not shutil.which("java"):
            raise Missing("ElasticMQ needs Java (Debian: apt-get install openjdk-17-jre-headless)")
        libs = cache.directory(f"elasticmq-{self.VERSION}") / "libs"
        if not libs.is_dir():
            maven.fetch(
                f"ElasticMQ {self.VERSION}", [f"org.elasticmq:elasticmq-server_2.13:{self.VERSION}"], libs
            )
        config = self.directory / "elasticmq.conf"
        config.write_text(
            f"node-address {{ host = 127.0.0.1, port = {self.port} }}\n"
            f"rest-sqs {{ bind-hostname = 127.0.0.1, bind-port = {self.port} }}\n"
            "rest-stats { enabled = false }\n"
        )
        return ["java", f"-Dconfig.file={config}", "-cp", f"{libs}/*", "org.elasticmq.server.Main"], {}

    def version(self) -> str:
        return self.VERSION


def _refuse_synced(mode: Mode) -> None:
    if mode is Mode.SYNCED:
        raise Missing("it keeps messages in memory only")
