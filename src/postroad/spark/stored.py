"""Is what an earlier attempt stored what this one would store?"""

from __future__ import annotations

from typing import Any

from postroad.errors import OutOfOrderSequence
from postroad.spark.cluster import Cluster
from postroad.spark.columns import KEY, VALUE
from postroad.spark.fetched import OutsideLog
from postroad.spark.router import Place
from postroad.spark.rows import column
from postroad.wire.batch import walk
from postroad.wire.records import Record, decode_records


class DifferentRows(OutOfOrderSequence):
    """A repeated task has other rows than before, or in another order."""


def expect_same(cluster: Cluster, place: Place, offset: int, rows: Any) -> None:
    """Keys and values of the batch at `offset` are those of the rows, or DifferentRows is raised.

    Records that retention or compaction took away are no contradiction.
    """
    keys, values = _texts(rows, KEY), _texts(rows, VALUE)
    for record in _batch(cluster, place, offset):
        at = record.offset - offset
        if (record.key, record.value) != (keys[at], values[at]):
            raise DifferentRows(
                f"{place[0]}/{place[1]}: the task was repeated with other rows than before, or in another "
                "order, so nobody can tell which of them are stored. Make them the same each time (sort in "
                "foreachBatch, and write there with the options writeId and writeBatch), or give the option "
                "writeId a new value to write all of them once more."
            )


def _batch(cluster: Cluster, place: Place, offset: int) -> list[Record]:
    try:
        data = cluster.fetch(place, offset).data
    except OutsideLog:
        return []
    for at, header in walk(data):
        if header.base_offset == offset:
            return decode_records(data[at : at + header.size])
    return []


def _texts(rows: Any, name: str) -> list[bytes | None]:
    texts = column(rows, name)
    return [None] * len(rows) if texts is None else texts.to_pylist()
