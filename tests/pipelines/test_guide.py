"""The guide says what is so: its Python runs as it stands, and its tables name every option."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from postroad.gateway.dialects import DIALECTS
from postroad.pipelines.declared.declaration import parse
from postroad.pipelines.declared.run import run
from postroad.spark import option_names, options, write_options
from postroad.testing import Node
from tests.docs.markdown import ROOT, blocks, rows
from tests.gateway.conftest import gateway_in_thread
from tests.spark import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = (ROOT / "docs/spark.md").read_text()
PYTHON = [block.text for block in blocks(GUIDE, "python") if "not run" not in block.notes]
ORDERS = [
    b'{"id": 1, "customer": "ann", "total": 30}',
    b'{"id": 2, "customer": "bob", "total": 250}',
    b"no JSON",
]

CUSTOMERS = [
    plain.Message(b'{"name": "Ann"}', b"ann"),
    plain.Message(b'{"name": "Bob"}', b"bob"),
    plain.Message(b'{"name": "Ann B."}', b"ann"),
    plain.Message(None, b"bob"),
]


@pytest.fixture
def _session_is_kept(spark: SparkSession) -> Iterator[None]:
    """Snippets take the tests' session for theirs; what they make by name is dropped."""
    yield
    spark.catalog.dropTempView("orders")


@pytest.mark.slow
@pytest.mark.usefixtures("_session_is_kept")
@pytest.mark.spark_slow
def test_python_of_the_guide_runs_from_top_to_bottom(
    postroad: Node, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain.create(postroad.bootstrap, "orders", 3)
    for name in ("large-orders", "orders-test", "shipments", "typed-orders"):
        plain.create(postroad.bootstrap, name)
    plain.send(postroad.bootstrap, "orders", [plain.Message(value) for value in ORDERS])
    plain.create(postroad.bootstrap, "customers", cleanup_policy="compact")
    plain.send(postroad.bootstrap, "customers", CUSTOMERS)
    names: dict[str, Any] = {}
    with gateway_in_thread(postroad.bootstrap, DIALECTS) as gateway:
        for number, text in enumerate(PYTHON):
            here = _here(text, postroad.bootstrap, tmp_path).replace("http://127.0.0.1:8080", gateway.url)
            exec(compile(here, f"snippet {number}", "exec"), names)
    printed = capsys.readouterr().out
    assert "3 {'orders':" in printed  # archived
    assert "[{'id': 1, 'customer': 'ann'}, {'id': 2, 'customer': 'bob'}]" in printed  # by their schema
    assert "1 1 {'0': 4}\n[(b'ann', 'Ann B.')]" in printed  # merged
    assert "1 True" in printed  # replayed, once
    assert "2 topics carried 5 messages" in printed  # reported: bob's order once by a batch, once by a stream
    assert {row.value for row in plain.read_all(postroad.bootstrap, "orders.bad")} == {b"no JSON"}
    large = plain.read_all(postroad.bootstrap, "large-orders")
    assert [row.key for row in large] == [b"bob", b"bob"]
    assert (tmp_path / "reports/today/report.html").exists()


@pytest.mark.spark_slow
def test_pipeline_of_the_guide_runs(spark: SparkSession, postroad: Node, tmp_path: Path) -> None:
    for name in ("orders", "customers", "big-orders"):
        plain.create(postroad.bootstrap, name)
    plain.send(postroad.bootstrap, "orders", [plain.Message(value) for value in ORDERS])
    plain.send(postroad.bootstrap, "customers", CUSTOMERS)
    (text,) = (block.text for block in blocks(GUIDE, "toml"))
    found = run(spark, parse(text, tmp_path / "pipeline.toml"), postroad.bootstrap, once=True)
    assert {status.state for status in found} == {"done"}
    paid = DeltaTable(tmp_path / "lake/paid").to_pyarrow_table(columns=["id", "name", "total"]).to_pylist()
    assert sorted(map(str, paid)) == [
        "{'id': 1, 'name': 'Ann B.', 'total': 30.0}",
        "{'id': 2, 'name': None, 'total': 250.0}",
    ]
    assert [row.key for row in plain.read_all(postroad.bootstrap, "big-orders")] == [b"bob"]


def _here(text: str, bootstrap: str, home: Path) -> str:
    """With the test's own node and directories: Spark's workers don't know this process's."""
    text = text.replace("127.0.0.1:9092", bootstrap)
    return re.sub(r'"((?:checkpoints|lake|reports)/)', rf'"{home}/\1', text)


@pytest.mark.parametrize(
    ("table", "names"), [("reading", options.NAMES), ("writing", write_options.NAMES)], ids=["read", "write"]
)
def test_table_of_options_names_all_of_them_and_no_others(table: str, names: tuple[str, ...]) -> None:
    told = [
        name
        for row in rows(GUIDE, table, "default", "what it does")
        for name in re.findall(r"`([^`]+)`", row[0])
    ]
    assert sorted(told) == sorted({*names, *option_names.CONNECTION})
