"""One Spark session and one node for all tests of a process: a session costs seconds, a node half of one."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from postroad.testing import Node
from postroad.testing import node as start_node
from tests import shared_node
from tests.spark.driver import home_without_zip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark on two threads of this machine, without its web pages."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    home = tmp_path_factory.mktemp("spark")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("postroad-tests")
        .config("spark.driver.memory", "1g")
        # Nothing runs so often here that it pays to compile it well.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.ui.enabled", "false")
        .config("spark.python.authenticate.socketTimeout", "120")  # a busy machine starts workers slowly
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.local.dir", str(home / "local"))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home_without_zip(home / "home")))
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """A node that stays up; tests keep to topics of their own. One that is to be restarted: `postroad`."""
    with start_node(shared_node.SETTINGS) as running:
        yield running


@pytest.fixture
def topic() -> str:
    """A topic's name that nobody else uses."""
    return f"t-{uuid.uuid4().hex[:10]}"
