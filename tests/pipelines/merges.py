"""Merged tables in tests: read by readers that know nothing of ours, and compared with a dict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

FORMATS = ("delta", "iceberg")


def read_merged(to: Path, format_: str) -> list[dict[str, Any]]:
    return read_derived(to, format_, "postroad.merged")


def read_derived(to: Path, format_: str, name: str) -> list[dict[str, Any]]:
    """All rows, by deltalake or pyiceberg, and the same by DuckDB."""
    found, by_duckdb = _READERS[format_](to, name)
    assert sorted(map(_text, found)) == sorted(map(_text, by_duckdb))
    return found


def values_of(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is not of the message, and not null, in a fixed order."""
    plain = (
        {name: cell for name, cell in row.items() if not name.startswith("message_") and cell is not None}
        for row in rows
    )
    return sorted(plain, key=str)


def _text(row: dict[str, Any]) -> str:
    """Libraries differ in the objects that time zones are."""
    return str({name: cell.timestamp() if isinstance(cell, datetime) else cell for name, cell in row.items()})


def _delta(to: Path, name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    dataset = DeltaTable(to).to_pyarrow_dataset()
    columns = ", ".join(f'"{column}"' for column in dataset.schema.names)
    found = duckdb.from_arrow(dataset).project(columns)
    return DeltaTable(to).to_pyarrow_table().to_pylist(), found.to_arrow_table().to_pylist()


def _iceberg(to: Path, name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    catalog = load_catalog(
        "postroad", type="sql", uri=f"sqlite:///{quote(str(to))}/catalog.db", warehouse=f"file://{to}"
    )
    scan = catalog.load_table(name).scan()
    found = scan.to_duckdb("merged").sql("select * from merged").to_arrow_table().to_pylist()
    return scan.to_arrow().to_pylist(), found


_READERS: dict[str, Callable[[Path, str], tuple[list[dict[str, Any]], list[dict[str, Any]]]]] = {
    "delta": _delta,
    "iceberg": _iceberg,
}
