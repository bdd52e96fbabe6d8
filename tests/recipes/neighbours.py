"""What recipes come from or stand beside: RabbitMQ, Apache Kafka, PostgreSQL, Kafka Connect, and moto's SQS.

Each yields the environment that its recipe is told. What this machine lacks skips the test, which says how to
get it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import cache, kafka_jars, maven
from benchmarks.cache import Missing
from benchmarks.process import Process, free_port
from benchmarks.servers import Kafka, Mode, RabbitMQ, Server

DEBEZIUM = "3.6.3.Final"
CONNECT = (
    f"org.apache.kafka:connect-runtime:{kafka_jars.VERSION}",
    f"io.debezium:debezium-connector-postgres:{DEBEZIUM}",
    f"org.apache.logging.log4j:log4j-slf4j-impl:{kafka_jars.LOG4J_VERSION}",
)
POSTGRES_USER = "postgres"  # PostgreSQL does not run as root


@contextmanager
def rabbitmq(home: Path) -> Iterator[dict[str, str]]:
    with _running(RabbitMQ(Mode.PAGE_CACHE, home)) as server:
        yield {"RABBITMQ_URL": f"amqp://guest:guest@127.0.0.1:{server.port}"}


@contextmanager
def kafka(home: Path) -> Iterator[dict[str, str]]:
    with _running(Kafka(Mode.PAGE_CACHE, home)) as server:
        yield {"OLD_KAFKA": f"127.0.0.1:{server.port}"}


@contextmanager
def sqs(home: Path) -> Iterator[dict[str, str]]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        port = server.get_host_and_port()[1]
        yield {"OLD_SQS": f"http://127.0.0.1:{port}"}
    finally:
        server.stop()


@contextmanager
def debezium(home: Path) -> Iterator[dict[str, str]]:
    try:
        libs = _connect_jars()
    except Missing as missing:
        pytest.skip(str(missing))
    with _postgres() as database:
        yield {"CONNECT_LIBS": str(libs), "DATABASE": database}


@contextmanager
def _running(server: Server) -> Iterator[Server]:
    try:
        server.start()
    except Missing as missing:
        server.stop()
        pytest.skip(str(missing))
    try:
        yield server
    finally:
        server.stop()


def _connect_jars() -> Path:
    if not shutil.which("java"):
        raise Missing(
            "Kafka Connect needs Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless)"
        )
    libs = cache.directory(f"debezium-{DEBEZIUM}-{kafka_jars.VERSION}") / "libs"
    if not libs.is_dir():
        maven.fetch(f"Kafka Connect with Debezium {DEBEZIUM}", CONNECT, libs)
    return libs


@contextmanager
def _postgres() -> Iterator[str]:
    """A server with logical replication, and no password: the directory is gone afterwards."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs or not shutil.which("psql"):
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    home, port = Path(tempfile.mkdtemp(prefix="postgres-")), free_port()
    becomes: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(home, POSTGRES_USER)
        becomes = ["setpriv", f"--reuid={POSTGRES_USER}", f"--regid={POSTGRES_USER}", "--clear-groups"]
    initdb, data = programs[-1], str(home / "data")
    made = [*becomes, str(initdb), "-D", data, "-A", "trust", "-U", POSTGRES_USER, "--no-sync"]
    options = ["-c", "wal_level=logical", "-c", "fsync=off", "-h", "127.0.0.1", "-k", str(home)]
    server: Process | None = None
    try:
        subprocess.run(made, cwd=home, check=True, stdout=subprocess.DEVNULL)
        command = [*becomes, str(initdb.with_name("postgres")), "-D", data, "-p", str(port), *options]
        server = Process(command, home / "server.log")
        ready = [str(initdb.with_name("pg_isready")), "-q", "-h", "127.0.0.1", "-p", str(port)]
        server.wait_until(lambda: subprocess.run(ready, check=False).returncode == 0)
        yield f"{POSTGRES_USER}@127.0.0.1:{port}/postgres"
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(home, ignore_errors=True)
