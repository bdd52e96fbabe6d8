"""Debezium on Postroad: what changes in PostgreSQL is in a topic, row by row, and a worker hears of it.

    CONNECT_LIBS=DIR DATABASE=postgres@127.0.0.1:5432/shop python debezium_changes.py 127.0.0.1:9092

Kafka Connect with Debezium's connector runs as it does beside Kafka; DIR has their jars. Its own topics
(configs, offsets, status) are in Postroad, too: it is stopped while rows change, and goes on where it was.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

import postroad

run = uuid.uuid4().hex[:8]
bootstrap = sys.argv[1]
user, host, port, database = re.match(r"(.+)@(.+):(\d+)/(.+)", os.environ["DATABASE"]).groups()


class Order(msgspec.Struct):
    id: int
    total: int


class Change(msgspec.Struct):
    """Debezium's envelope, as far as it is needed here."""

    op: str  # c(reate), u(pdate), d(elete); r(ead) for rows that were there before
    before: Order | None
    after: Order | None


WORKER = f"""
bootstrap.servers={bootstrap}
group.id=connect-{run}
config.storage.topic=connect-{run}-configs
offset.storage.topic=connect-{run}-offsets
status.storage.topic=connect-{run}-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.flush.interval.ms=1000
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter.schemas.enable=false
"""

CONNECTOR = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "database.hostname": host,
    "database.port": port,
    "database.user": user,
    "database.password": os.environ.get("PGPASSWORD", ""),
    "database.dbname": database,
    "plugin.name": "pgoutput",  # PostgreSQL's own; wal_level must be logical
    "slot.name": f"postroad_{run}",
    "publication.name": f"postroad_{run}",
    "publication.autocreate.mode": "filtered",
    "table.include.list": f"public.orders_{run}",
    "topic.prefix": f"shop-{run}",
}
TOPIC = f"shop-{run}.public.orders_{run}"


def sql(text: str) -> None:
    command = ["psql", "-q", "-o", os.devnull, "-h", host, "-p", port, "-U", user, database, "-c"]
    subprocess.run([*command, text.replace("orders", f"orders_{run}")], check=True)


@contextmanager
def connect(home: Path) -> Iterator[None]:
    """A worker of Kafka Connect, with the connector."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    properties = home / "worker.properties"
    properties.write_text(f"{WORKER}listeners={address}\n")
    classes = f"{os.environ['CONNECT_LIBS']}/*"
    with (home / "connect.log").open("ab") as log:
        command = ["java", "-Xmx256m", "-cp", classes, "org.apache.kafka.connect.cli.ConnectDistributed"]
        worker = subprocess.Popen([*command, properties], stdout=log, stderr=log)
    try:
        put = urllib.request.Request(f"{address}/connectors/orders/config", method="PUT")
        put.add_header("Content-Type", "application/json")
        while True:  # until its REST API listens and the worker is a member of its group
            try:
                urllib.request.urlopen(put, json.dumps(CONNECTOR).encode(), timeout=60).close()
                break
            except (urllib.error.URLError, ConnectionError):
                if worker.poll() is not None:
                    sys.exit((home / "connect.log").read_text())
                time.sleep(0.5)
        yield
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(60)


def hear(changes, count: int) -> None:
    for _, message in zip(range(count), changes, strict=False):
        with message:
            change = message.value
            if change is None:
                print("a tombstone, for compaction")
            else:
                print(change.op, change.before, "->", change.after)


sql("create table orders (id int primary key, total int); alter table orders replica identity full")
sql("insert into orders values (1, 10), (2, 20)")
with (
    tempfile.TemporaryDirectory() as home,
    postroad.SyncClient(bootstrap) as client,
    client.receive(f"billing-{run}", topic=TOPIC, of=Change | None, order="partition") as changes,
):
    with connect(Path(home)):
        hear(changes, 2)
        sql("update orders set total = 25 where id = 2")
        hear(changes, 1)
    sql("insert into orders values (3, 30); delete from orders where id = 1")  # Connect is down
    with connect(Path(home)):
        hear(changes, 3)
    sql(f"select pg_drop_replication_slot('postroad_{run}')")
