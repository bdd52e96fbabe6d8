"""Archives in an object store, by the URL and the credentials that all use for it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from deltalake import DeltaTable

from benchmarks import moto
from postroad.testing import Node
from tests.pipelines.archives import offsets_of
from tests.spark import plain

pytestmark = pytest.mark.spark_slow

PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def _store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """S3 as moto imitates it, with a bucket `lake`; whoever uses it finds it by these variables."""
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
