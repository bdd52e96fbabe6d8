"""What JSON is read as, here and by Spark's own `from_json`: the same, but for what the guide lists."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from postroad.spark import json_parsing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = (
    "id bigint, small int, name string, price double, ok boolean, day date, at timestamp, "
    "total decimal(12,3), tags array<string>, inner struct<x: double, more: map<string, bigint>>, "
    "m map<string, struct<a: bigint, b: array<boolean>>>, deep array<map<string, array<bigint>>>"
)
CORRUPT = "corrupt"
BAD = "bad"

# What is bad here, and what Spark makes of it: the fields that are not null, as Python writes them.
DIFFERENT = {
    "": "{}",
    '{"id": 1} {"id": 2}': "{'id': 1}",
    '{"id": 1}]': "{'id': 1}",
    '{"id": 1, "id": 2}': "{'id': 2}",
    "{'id': 1}": "{'id': 1}",
    '{"id": 1, "more": NaN}': "{'id': 1}",
    '{"price": "NaN"}': "{'price': nan}",
    '{"name": 5}': "{'name': '5'}",
    '{"name": {"a": 1}}': "{'name': '{\"a\":1}'}",
    '{"tags": [true]}': "{'tags': ['true']}",
    '{"name": "\\ud800"}': "{'name': '?'}",
    '{"day": "2024-5-1"}': "{'day': datetime.date(2024, 5, 1)}",
    '{"at": 5}': "{'at': datetime.datetime(1970, 1, 1, 0, 0, 5, tzinfo=zoneinfo.ZoneInfo(key='UTC'))}",
    '{"total": 1.2345}': "{'total': Decimal('1.235')}",
}
# What is bad for both.
WRONG = [
    *("{", "[1]", '[{"id": 1}]', "5", '{"id": "1"}', '{"id": 1.0}', '{"id": 99999999999999999999}'),
    *(
        '{"small": 3000000000}',
        '{"id": true}',
        '{"price": "0.5"}',
        '{"ok": 1}',
        '{"day": "soon"}',
        '{"day": 5}',
    ),
    *('{"at": "soon"}', '{"total": 12345678901.5}', '{"tags": "a"}', '{"tags": {}}', '{"inner": []}'),
    *('{"inner": {"x": "y"}}', '{"inner": {"more": {"a": 0.5}}}', '{"m": []}', '{"m": 5}', '{"m": {"a": 5}}'),
    *('{"m": {"a": {"b": [1]}}}', '{"deep": {}}', '{"deep": [[]]}', '{"deep": [{"a": {}}]}', '{"id": 1,}'),
]


def random_value(kind: Any, chance: random.Random) -> Any:
    """What JSON of this type may hold, nulls and missing fields among it."""
    if chance.random() < 0.15:
        return None
    if pa.types.is_struct(kind):
        return {each.name: random_value(each.type, chance) for each in kind if chance.random() < 0.8}
    if pa.types.is_map(kind):
        keys = ["a", "b c", "\u00fc", "", "x.y", '"']
        return {key: random_value(kind.item_type, chance) for key in chance.sample(keys, chance.randrange(4))}
    if pa.types.is_list(kind):
        return [random_value(kind.value_type, chance) for _ in range(chance.randrange(4))]
    if pa.types.is_string(kind):
        return chance.choice(["", "a", "\u00fc\U0001f600", '"\\\n\t', "null", "{}", "]],["])
    if pa.types.is_boolean(kind):
        return chance.random() < 0.5
    if pa.types.is_date(kind):
        return f"{chance.randrange(1600, 9999)}-0{chance.randrange(1, 10)}-1{chance.randrange(10)}"
    if pa.types.is_timestamp(kind):
        fraction = chance.choice(["", ".5", ".123456"])
        zone = chance.choice(["Z", "+02:00"])
        return f"{chance.randrange(1600, 9999)}-05-01T10:1{chance.randrange(10)}:00{fraction}{zone}"
    if pa.types.is_decimal(kind):
        return chance.randrange(-(10**8), 10**8) / 1000
    if pa.types.is_floating(kind):
        return chance.choice([0.5, -1e300, 7, 1e-9, 2**53])
    bits = kind.bit_width - 1
    return chance.choice([0, -1, 2**bits - 1, -(2**bits), chance.randrange(10**6)])


@pytest.fixture(scope="module")
def both(spark: SparkSession) -> Any:
    """Reads texts in both ways: rows, or BAD."""
    from pyspark.sql import functions as sf
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    schema = StructType.fromDDL(DDL)
    assert isinstance(schema, StructType)
    kind = pa.struct(list(to_arrow_schema(schema, timezone="UTC")))

    def read(texts: list[str]) -> tuple[list[Any], list[Any]]:
        found, bad = json_parsing.parse(pa.array([text.encode() for text in texts], pa.binary()), kind)
        ours = [
            BAD if row in bad else value for row, value in enumerate(found.to_pylist(maps_as_pydicts="lossy"))
        ]
        options = {"columnNameOfCorruptRecord": CORRUPT}
        frame = spark.createDataFrame([*enumerate(texts)], "n int, text string")
        parsed = sf.from_json("text", f"{DDL}, {CORRUPT} string", options).alias("v")
        theirs: list[Any] = [None] * len(texts)
        for row in frame.select("n", parsed).select("n", "v.*").toArrow().to_pylist(maps_as_pydicts="lossy"):
            theirs[row.pop("n")] = BAD if row.pop(CORRUPT) is not None else row
        return ours, theirs

    read.kind = kind  # type: ignore[attr-defined]
    return read


def test_values_of_the_schema_are_read_alike(both: Any) -> None:
    chance = random.Random(7)
    values = [random_value(both.kind, chance) or {} for _ in range(400)]
    ours, theirs = both([json.dumps(value, ensure_ascii=chance.random() < 0.5) for value in values])
    assert BAD not in ours
    for value, here, there in zip(values, ours, theirs, strict=True):
        assert here == there, value


def test_what_is_wrong_is_bad_for_both(both: Any) -> None:
    ours, theirs = both(WRONG)
    for text, here, there in zip(WRONG, ours, theirs, strict=True):
        assert (here, there) == (BAD, BAD), text


def test_they_differ_as_the_guide_says(both: Any) -> None:
    ours, theirs = both(list(DIFFERENT))
    assert set(ours) == {BAD}
    for (text, expected), row in zip(DIFFERENT.items(), theirs, strict=True):
        assert str({name: cell for name, cell in row.items() if cell is not None}) == expected, text
    assert both(["null"]) == ([None], [BAD])
