"""Values that are JSON: read by a schema, given or found; rows that don't fit are dealt with as told."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from postroad.errors import ConfigurationError
from postroad.spark import json_parsing, json_schema
from postroad.testing import Node
from tests.spark.plain import Message, create, read_all, send
from tests.spark.streams import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KIND = pa.struct(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("price", pa.decimal128(10, 2)),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("inner", pa.struct([("x", pa.float64()), ("ok", pa.bool_())])),
    ]
)
GOOD = b'{"id": 1, "name": "a", "more": [1, {"x": 2}]}'
BAD = {
    b"": "it is not one JSON value",
    b" ": "it is not one JSON value",
    b"{": "Missing a name for object member",
    b'{"id": 1} {"id": 2}': "Missing a comma or ']'",
    b'{"id": 1}, {"id": 2}': "it is not one JSON value",
    b'{"id": 1},': "Invalid value",
    b'{"id": 1}],"x":[1': "it is not one JSON value",
    b'{"id": 1}],[{"id": 2}': "it is not one JSON value",
    b'{"id": 1}]],"x":[[1': "it is not one JSON value",
    b'{"id": 1} ] \n],"x":[[{"id": 2}': "it is not one JSON value",
    b'{"id": 1}]],"v":[[{"id": 2}': "it is not one JSON value",
    b"[1]": "it is of type array, not object",
    b"5": "it is of type number, not object",
    b"\xff\xfe": "UTF8",
    b'{"id": "1"}': "field id is of type string, not number",
    b'{"id": 1.5}': "1.5",
    b'{"id": 99999999999999999999}': "99999999999999999999",
    b'{"inner": {"x": "y"}}': "field inner/x is of type string, not number",
    b'{"day": "soon"}': "soon",
    b'{"id": 1, "id": 2}': "field id was specified twice",
    b"[" * 100_000: "it is of type array, not object",
}


def parsed(*values: bytes | None) -> tuple[list[Any], dict[int, str]]:
    array, bad = json_parsing.parse(pa.array(values, pa.binary()), KIND)
    array.validate(full=True)
    assert array.type == KIND
    return array.to_pylist(), bad


# --- parsing -------------------------------------------------------------------------------------


def test_each_type_is_read() -> None:
    value = b"""{"id": 5, "name": "\\u00fc", "day": "2024-05-01", "at": "2024-05-01T12:00:00+02:00",
        "price": "1.25", "tags": ["a", null], "inner": {"x": 1, "ok": true}}"""
    (row,), bad = parsed(value)
    assert bad == {}
    assert row["at"] == datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.UTC)
    assert (row["id"], row["name"], str(row["price"])) == (5, "ü", "1.25")
    assert (row["day"], row["tags"]) == (datetime.date(2024, 5, 1), ["a", None])
    assert row["inner"] == {"x": 1.0, "ok": True}


def test_nulls_and_missing_fields_are_null() -> None:
    rows, bad = parsed(None, b"null", b"{}", b'{"id": null, "tags": null}')
    assert bad == {}
    assert rows[:2] == [None, None]
    assert rows[2] == rows[3] == dict.fromkeys(field.name for field in KIND)


@pytest.mark.parametrize(("value", "reason"), list(BAD.items()))
def test_bad_row_has_its_reason(value: bytes, reason: str) -> None:
    rows, bad = parsed(value)
    assert rows == [None]
    assert reason in bad[0]


def test_bad_rows_change_none_of_their_neighbours() -> None:
    values, expected = [], {}
    for number, bad in enumerate(BAD):
        values += [b'{"id": %d}' % number, bad]
        expected[2 * number + 1] = bad
    rows, found = parsed(*values)
    assert set(found) == set(expected)
    assert [row["id"] for row in rows[::2]] == list(range(len(BAD)))


# Good and bad ones of which one parser or another has its own opinion.
ODD = (
    *BAD,
    *(b'{"id": 1.0}', b'{"id": 1e2}', b'{"id": -0}', b'{"id": 9223372036854775807}', b'{"id": 01}'),
    *(b'{"id": NaN}', b'{"inner": {"x": Infinity}}', b'{"inner": {"x": 1e999}}', b'{"inner": {"x": 5}}'),
    *(b'{"at": "2024-05-01"}', b'{"at": "2024-05-01 10:00"}', b'{"at": "2024-13-01T10:00:00Z"}'),
    *(b'{"at": 5}', b'{"day": "2024-05-01T10:00:00Z"}', b'{"day": 3}', b'{"id": null, "id": 1}'),
    *(b'{"price": 1.25}', b'{"price": "1.255"}', b'{"price": "x"}', b'{"price": "1e2"}'),
    *(b'{"price": 123456789.5}', b'{"tags": ["a", 1]}', b'{"tags": {}}', b'{"id": 1}\x00', b"{'id': 1}"),
    *(b'{"name": "\\ud800"}', b'{"name": "\xff"}', b'{"more": "\xff"}', b'{"name": "a\nb"}', b"null"),
    *(b'{"more": ' + b"[" * 5000 + b"]" * 5000 + b"}", b"\xef\xbb\xbf{}", b'{"id": 1}' + b"\n", b"{}"),
)


def test_what_is_bad_does_not_depend_on_what_stands_beside_it() -> None:
    alone = [parsed(value) for value in ODD]
    rows, bad = parsed(*ODD)
    assert rows == [found for (found,), _ in alone]
    assert set(bad) == {number for number, (_, why) in enumerate(alone) if why}
    for number, value in enumerate(ODD):
        rows, bad = parsed(GOOD, value, b"no json", GOOD)
        assert (rows[0], rows[1:3], rows[3]) == (rows[0], [alone[number][0][0], None], rows[0])
        assert (1 in bad) == bool(alone[number][1])


def test_one_bad_row_in_a_hundred_costs_little() -> None:
    """Halving the batch until bad rows stand alone made it 50 times as long."""
    kind = pa.struct([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
    good = [b'{"id": %d, "name": "ann", "price": %d.5}' % (number, number) for number in range(10_000)]
    bad = [b"no json" if number % 100 == 50 else value for number, value in enumerate(good)]
    assert _cpu_s(bad, kind) < 8 * _cpu_s(good, kind)


def _cpu_s(values: list[bytes], kind: Any) -> float:
    """The least of several, since a busy machine only adds to it."""
    array = pa.array(values, pa.binary())
    found = []
    for _ in range(5):
        begun = time.process_time()
        json_parsing.parse(array, kind)
        found.append(time.process_time() - begun)
    return min(found)


def test_type_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="use another type"):
        json_parsing.check_kind(pa.struct([("m", pa.month_day_nano_interval())]))
    with pytest.raises(ConfigurationError, match="the keys of a map are strings, not int64"):
        json_parsing.check_kind(pa.struct([("m", pa.list_(pa.map_(pa.int64(), pa.int64())))]))
    with pytest.raises(ConfigurationError, match="must be a struct"):
        json_parsing.check_kind(pa.string())


LINE = pa.struct(
    [("n", pa.int64()), ("more", pa.map_(pa.string(), pa.list_(pa.field("element", pa.string()))))]
)
MAPS = pa.struct(
    [
        ("id", pa.int64()),
        ("days", pa.map_(pa.string(), pa.date32())),
        ("lines", pa.map_(pa.string(), LINE)),
        ("list", pa.list_(pa.field("element", pa.map_(pa.string(), pa.float64())))),
    ]
)
NO_MAPS = {
    b'{"days": [{"key": "a", "value": "2024-05-01"}]}': "field days is of type array, not object",
    b'{"days": 5}': "field days is of type number, not object",
    b'{"days": {"a": "soon"}}': "soon",
    b'{"days": {"a": "2024-05-01"}, "days": {}}': "field days",
    b'{"lines": {"a": {"n": "x"}}}': "is of type string, not number",
    b'{"lines": {"a": {"more": []}}}': "field lines/[]/value/more is of type array, not object",
    b'{"list": [{}, []]}': "field list/[] is of type array, not object",
    b'{"days": {"a": "2024-05-01"}': "truncated",
    b'{"days": {}}]],"v":[[{"id": 2}': "trailing characters",
    b'{"days": {"\xff": null}}': "UTF8",
    b'{"list": ' + b"[" * 5000 + b"]" * 5000 + b"}": "",
}


def with_maps(*values: bytes | None) -> tuple[list[Any], dict[int, str]]:
    array, bad = json_parsing.parse(pa.array(values, pa.binary()), MAPS)
    array.validate(full=True)
    assert array.type == MAPS
    return array.to_pylist(), bad


def test_maps_are_read_in_structs_arrays_and_maps() -> None:
    value = b"""{"id": 1, "days": {"a": "2024-05-01", "b": null}, "list": [{"x": 1}, null, {}],
        "lines": {"p": {"n": 1, "more": {"k": ["v", null]}}, "\\u00fc": null}}"""
    rows, bad = with_maps(value, None, b"{}", b'{"days": null, "lines": {}}')
    assert bad == {}
    assert rows[0] == {
        "id": 1,
        "days": [("a", datetime.date(2024, 5, 1)), ("b", None)],
        "lines": [("p", {"n": 1, "more": [("k", ["v", None])]}), ("ü", None)],
        "list": [[("x", 1.0)], None, []],
    }
    assert rows[1:3] == [None, dict.fromkeys(field.name for field in MAPS)]
    assert (rows[3]["days"], rows[3]["lines"]) == (None, [])


def test_of_a_key_that_is_there_twice_the_last_value_counts() -> None:
    assert with_maps(b'{"list": [{"a": 1, "b": 2, "a": 3}]}')[0][0]["list"] == [[("a", 3.0), ("b", 2.0)]]


def test_what_is_no_map_is_bad_and_changes_none_of_its_neighbours() -> None:
    good = b'{"id": 1, "days": {"a": "2024-05-01"}}'
    alone = [with_maps(value) for value in (*NO_MAPS, *ODD)]
    values = [each for value in (*NO_MAPS, *ODD) for each in (good, value)]
    rows, bad = with_maps(*values)
    assert all(row["days"] == [("a", datetime.date(2024, 5, 1))] for row in rows[::2])
    assert rows[1::2] == [found for (found,), _ in alone]
    assert set(bad) == {2 * number + 1 for number, (_, why) in enumerate(alone) if why}
    for number, reason in enumerate(NO_MAPS.values()):
        assert reason in bad[2 * number + 1]


# --- inferring -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([b'{"a": 1}', b'{"b": "x"}'], "struct<`a`: bigint, `b`: string>"),
        ([b'{"a": 1}', b'{"a": 1.5}'], "struct<`a`: double>"),
        ([b'{"a": null}', b'{"a": true}'], "struct<`a`: boolean>"),
        ([b'{"a": null}'], "struct<`a`: string>"),
        ([b'{"a": [1, null]}', b'{"a": []}'], "struct<`a`: array<bigint>>"),
        ([b'{"a": {"b": 1}}', b'{"a": {"c": "x"}}'], "struct<`a`: struct<`b`: bigint, `c`: string>>"),
        ([b'{"a": {}, "b": 1}'], "struct<`b`: bigint>"),
        ([b'{"odd `name`": 1}'], "struct<`odd ``name```: bigint>"),
        ([b"no json", None, b"[1]", b'{"a": "\xff"}', b"[" * 10_000, b'{"a": 1}'], "struct<`a`: bigint>"),
        ([b'{"a": 99999999999999999999}'], "struct<`a`: double>"),
    ],
)
def test_fields_are_learnt_from_values(values: list[bytes | None], expected: str) -> None:
    assert json_schema.ddl(json_schema.of_values(values)) == expected


def test_field_of_two_types_asks_for_a_schema() -> None:
    with pytest.raises(ConfigurationError, match=r"field a\.b is bigint in some values and string in others"):
        json_schema.of_values([b'{"a": {"b": 1}}', b'{"a": {"b": "x"}}'])


# --- in Spark ------------------------------------------------------------------------------------


@pytest.fixture
def load(spark: SparkSession, node: Node) -> Callable[..., DataFrame]:
    def load(schema: str | None = None, **options: Any) -> DataFrame:
        reader = spark.read.format("postroad").option("kafka.bootstrap.servers", node.bootstrap)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.option("valueFormat", "json").options(**options).load()

    return load


@pytest.fixture(scope="module")
def mixed(node: Node) -> str:
    """Good, null and bad values in turn."""
    create(node.bootstrap, "mixed", 2)
    values: list[bytes | None] = [b'{"id": %d, "name": "n"}' % number for number in range(20)]
    values += [None, b"no json", b'{"id": "x"}']
    send(
        node.bootstrap,
        "mixed",
        [Message(value, b"k", n % 2, [("h", b"1")]) for n, value in enumerate(values)],
    )
    return "mixed"


def test_values_become_structs_by_option_or_schema(
    load: Callable[..., DataFrame], node: Node, topic: str
) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, [Message(GOOD), Message(b'{"id": 2, "name": null, "more": []}')])
    by_option = load(subscribe=topic, valueSchema="id bigint, name string")
    by_schema = load("offset bigint, value struct<id bigint, name string>", subscribe=topic)
    for frame in (by_option, by_schema):
        rows = frame.orderBy("offset").select("value.id", "value.name").collect()
        assert [tuple(row) for row in rows] == [(1, "a"), (2, None)]
    assert by_schema.columns == ["offset", "value"]


def test_fields_are_found_in_the_topic(load: Callable[..., DataFrame], node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    with pytest.raises(Exception, match="no JSON object in the topic to learn the fields from"):
        load(subscribe=topic)
    send(node.bootstrap, topic, [Message(b'{"id": 1}'), Message(b'{"id": 2, "o": {"x": [1.5]}}')])
    frame = load(subscribe=topic)
    assert dict(frame.dtypes)["value"] == "struct<id:bigint,o:struct<x:array<double>>>"
    assert [tuple(row) for row in frame.orderBy("offset").select("value.id", "value.o.x").collect()] == [
        (1, None),
        (2, [1.5]),
    ]


def test_bad_row_ends_the_query_and_is_named(load: Callable[..., DataFrame], mixed: str) -> None:
    with pytest.raises(Exception) as caught:
        load(subscribe=mixed, valueSchema="id bigint, name string").collect()
    text = str(caught.value)
    assert "The value of mixed/" in text
    assert "doesn't fit" in text
    assert "badRows=deadletter" in text


def test_bad_rows_are_dropped(load: Callable[..., DataFrame], mixed: str) -> None:
    rows = load(subscribe=mixed, valueSchema="id bigint, name string", badRows="drop").collect()
    ids = sorted(row["value"]["id"] for row in rows if row["value"] is not None)
    assert ids == list(range(20))
    assert sum(row["value"] is None for row in rows) == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"valueSchema": "id bigint, tags map<int, int>"}, "the keys of a map are strings"),
        ({"schema": "offset bigint"}, "the schema has no column value"),
        ({"schema": "value string"}, "must be a struct"),
        ({"schema": "value struct<id int>, topic int"}, "column topic is of type string, not int"),
        ({"valueSchema": "id bigintt"}, "bigintt"),
    ],
)
def test_schema_that_can_not_be_is_one_clear_error(
    load: Callable[..., DataFrame], mixed: str, options: dict[str, str], says: str
) -> None:
    with pytest.raises(Exception) as caught:
        load(subscribe=mixed, **options).collect()
    assert says.lower() in str(caught.value).lower()


def test_dead_letters_of_a_stream_are_written_once_over_a_replay(
    spark: SparkSession, node: Node, tmp_path: Path, topic: str, mixed: str
) -> None:
    stream = Stream(
        spark,
        tmp_path,
        node.bootstrap,
        subscribe=mixed,
        valueFormat="json",
        valueSchema="id bigint, name string",
        badRows="deadletter",
        deadLetterTopic=topic,
    )
    stream.run()
    for forgotten in (tmp_path / "checkpoint" / "commits").iterdir():  # as if it had died in mid-batch
        forgotten.unlink()
    stream.run()
    frame = spark.read.parquet(str(tmp_path / "rows"))
    assert frame.where("value is not null").count() == 20
    letters = read_all(node.bootstrap, topic)
    assert sorted(letter.value or b"" for letter in letters) == [b"no json", b'{"id": "x"}']
    assert {letter.key for letter in letters} == {b"k"}
    reasons = sorted(dict(letter.headers)["postroad-dead-reason"] or b"" for letter in letters)
    assert reasons == [b"Invalid value", b"field id is of type string, not number"]
