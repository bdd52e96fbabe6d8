"""Tables in an object store and in a catalogue, by URLs, credentials and settings that all use for them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from benchmarks import moto
from postroad.pipelines.tables import TableAddress, create_table, open_table
from postroad.testing import Node
from tests.pipelines.archives import append_batches, offsets_of
from tests.pipelines.test_merged_tables import Merge
from tests.spark import plain

pytestmark = pytest.mark.spark_slow

PATIENCE_S = 600.0


@pytest.fixture(scope="module")
def _store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """S3 and Glue as moto imitates them, with a bucket `lake`, found by these variables.

    Glue is `aws` in pyiceberg's settings.
    """
    log = tmp_path_factory.mktemp("moto") / "log"
    command = [str(moto.python()), "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        try:
            patch.setenv("AWS_ENDPOINT_URL", _address(log, server))
            patch.setenv("AWS_ACCESS_KEY_ID", "someone")
            patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
            patch.setenv("AWS_REGION", "us-east-1")
            patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
            patch.setenv("AWS_ALLOW_HTTP", "true")
            patch.setenv("PYICEBERG_CATALOG__AWS__TYPE", "glue")
            patch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # it was read when that was imported
            boto3.client("s3").create_bucket(Bucket="lake")
            yield
        finally:
            server.terminate()


def _address(log: Path, server: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())) is None:
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found[0]


def _run(*words: str) -> dict[str, object]:
    command = [sys.executable, "-m", "postroad.pipelines", *words, "--once", "--json", "--master", "local[2]"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_S, env=dict(os.environ), check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


def _in_glue(name: str) -> list[dict[str, Any]]:
    catalog = load_catalog("aws", **{"s3.endpoint": os.environ["AWS_ENDPOINT_URL"]})
    rows: list[dict[str, Any]] = catalog.load_table(name).scan().to_arrow().to_pylist()
    return rows


@pytest.mark.usefixtures("_store")
def test_archive_lies_in_a_bucket_as_delta(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, 2)
    plain.send(node.bootstrap, topic, [*plain.numbered(20), *plain.numbered(20, 1)])
    url = f"s3://lake/{topic}"
    for count in (40, 0):
        told = _run("archive", "-b", node.bootstrap, "-t", topic, "--to", url, "--optimize")
        assert told["rows"] == count
    rows = DeltaTable(url).to_pyarrow_table().to_pylist()
    assert offsets_of(rows) == [(topic, number, at) for number in (0, 1) for at in range(20)]


@pytest.mark.usefixtures("_store")
def test_iceberg_archive_is_known_to_glue() -> None:
    address = TableAddress("s3://lake/in-glue", "iceberg", "aws", "shop.in_glue")
    append_batches(create_table(address), range(2))
    append_batches(open_table(address), range(2, 3))
    assert offsets_of(_in_glue("shop.in_glue")) == [("orders", 0, at) for at in range(30)]


@pytest.mark.usefixtures("_store")
@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_merged_table_lies_in_a_bucket(format_: str) -> None:
    url, name = f"s3://lake/merged-{format_}", f"shop.merged_{format_}"
    merge = Merge(url, format_, catalog="aws" if format_ == "iceberg" else "", name=name)
    merge.step([(0, offset, b"%d" % offset, b'{"total": 1}') for offset in range(4)])
    merge.step([(0, 4, b"1", b'{"total": 2}'), (0, 5, b"2", None)])
    rows = _in_glue(name) if format_ == "iceberg" else DeltaTable(url).to_pyarrow_table().to_pylist()
    assert sorted((row["message_key"], row["total"]) for row in rows) == [(b"0", 1), (b"1", 2), (b"3", 1)]
