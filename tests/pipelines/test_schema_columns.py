"""Values that have a registered schema become columns, which grow with what producers register."""

from __future__ import annotations

import datetime
import decimal
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from postroad.cli.pipeline_archive import archive as archive_command
from postroad.cli.sql import sql as sql_command
from postroad.errors import PostroadError
from postroad.gateway.dialects import DIALECTS
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.history import Sources, history, read_archive
from postroad.pipelines.tables import TableAddress, create_table, find_table
from postroad.pipelines.tables.bad_rows import BadRows
from postroad.pipelines.tables.files import Files, archived
from postroad.pipelines.tables.json_columns import JsonColumns
from postroad.pipelines.tables.schema import BAD, RECORD, json_kinds
from postroad.pipelines.tables.schema_columns import SchemaColumns
from postroad.pipelines.tables.table import Batch
from postroad.schemas.schema import AVRO, JSON, PROTOBUF
from postroad.spark.own_schemas import OwnSchemas
from postroad.spark.schema_registry import RegistryUnavailable, SchemaRegistry
from postroad.testing import Node
from tests.gateway.conftest import gateway_in_thread
from tests.pipelines.archives import FORMATS, offsets_of, read_plainly, run, written
from tests.pipelines.batches import record_batch
from tests.spark.plain import Message, create, read_all, send
from tests.spark.registered import PROTO, Writer
from tests.spark.test_proto_reading import classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def registry(node: Node) -> Iterator[str]:
    with gateway_in_thread(node.bootstrap, DIALECTS) as running:
        yield running.url


def record(*fields: Any) -> dict[str, Any]:
    """An Avro record; a field is (name, type), or (name, type, default)."""
    names = ("name", "type", "default")
    return {
        "type": "record",
        "name": "Order",
        "fields": [dict(zip(names, each, strict=False)) for each in fields],
    }


PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
FIVE = decimal.Decimal(5)
V1 = record(("id", "long"), ("name", "string"))
V2 = record(("id", "long"), ("name", "string"), ("price", PRICE, "\u0000"))
V3 = record(("id", "long"), ("full_name", "string", "?"), ("price", PRICE, "\u0000"))


# --- without Spark -------------------------------------------------------------------------------


def columns(url: str, kind: str, known: dict[str, str] | None = None) -> SchemaColumns:
    return SchemaColumns(known or {}, OwnSchemas(SchemaRegistry(url), kind))


def extended(made: SchemaColumns, *values: bytes | None) -> list[dict[str, Any]]:
    """Rows without the columns of every archive."""
    batch = made.extend(archived(record_batch(0, len(values), values=list(values))))
    batch.validate(full=True)
    return batch.drop_columns(RECORD.names).to_pylist()


def test_avro_types_become_columns_of_the_types_that_tables_have(registry: str, topic: str) -> None:
    schema = record(
        ("flag", "boolean"), ("small", "int"), ("half", "float"), ("raw", "bytes"), ("price", PRICE),
        ("day", {"type": "int", "logicalType": "date"}),
        ("at", {"type": "long", "logicalType": "timestamp-millis"}),
        ("there", {"type": "long", "logicalType": "local-timestamp-micros"}),
        ("kind", {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}), ("nothing", "null"),
        ("maybe", ["null", "long"]), ("either", ["string", "long"]),
        ("lines", {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "n", "type": "double"}, {"name": "at", "type": {"type": "map", "values": "int"}},
        ]}}),
    )  # fmt: skip
    at = datetime.datetime(2024, 5, 1, 12, 0, 0, 5000, tzinfo=datetime.UTC)
    row = {
        "flag": True, "small": 5, "half": 0.5, "raw": b"\xff", "price": decimal.Decimal("1.25"),
        "day": datetime.date(2024, 5, 1), "at": at, "there": datetime.datetime(2024, 5, 1, 12), "kind": "B",
        "nothing": None, "maybe": None, "either": 7,
        "lines": [{"n": float("nan"), "at": {"x": 1}}, {"n": 0.5, "at": {}}],
    }  # fmt: skip
    made = columns(registry, AVRO)
    (found,) = extended(made, Writer(registry, topic).avro(schema, row))
    assert found == {name: cell for name, cell in row.items() if name != "nothing"} | {
        BAD: None, "there": "2024-05-01 12:00:00.000000", "either": '{"member0":null,"member1":7}',
        "lines": '[{"n":"NaN","at":{"x":1}},{"n":0.5,"at":{}}]',
    }  # fmt: skip
    assert "nothing" not in made.kinds
    assert made.kinds["price"] == "decimal(9,2)"


def test_rows_of_several_schemas_in_a_batch_keep_their_order(registry: str, topic: str) -> None:
    writer = Writer(registry, topic)
    one, two = (
        writer.avro(V1, {"id": 1, "name": "a"}),
        writer.avro(V2, {"id": 2, "name": "b", "price": FIVE}),
    )
    found = extended(columns(registry, AVRO), one, None, two, b"bad", one, two[:-1])
    assert [(row["id"], row["price"]) for row in found] == [
        (1, None), (None, None), (2, 5), (None, None), (1, None), (None, None),
    ]  # fmt: skip
    assert [row[BAD] for row in found] == [
        None, None, None, "it does not begin with the id of a schema", None, "it is cut short",
    ]  # fmt: skip


def test_field_of_another_type_than_its_column_makes_bad_rows_where_it_has_a_value(
    registry: str, topic: str
) -> None:
    other = record(("id", ["null", "string"]), ("more", "int"))
    writer = Writer(registry, topic)
    made = columns(registry, AVRO, {"id": "bigint"})
    rows = [writer.avro(other, {"id": "x", "more": 1}), writer.avro(other, {"id": None, "more": 2})]
    assert extended(made, rows[0]) == [{BAD: "field id is string, and its column bigint", "id": None}]
    assert "more" not in made.kinds, "a bad row makes no column"
    assert extended(made, *rows)[1] == {BAD: None, "id": None, "more": 2}


def test_whole_numbers_fit_a_column_of_fractions_and_wider_schemas_their_old_columns(
    registry: str, topic: str
) -> None:
    made = columns(registry, AVRO, {"a": "double", "c": "decimal(12,4)"})
    narrow = record(("a", "int"), ("b", "int"), ("c", PRICE))
    wide = record(("a", "double"), ("b", "long"), ("c", PRICE))
    writer = Writer(registry, topic)
    rows = [
        writer.avro(narrow, {"a": 1, "b": 2, "c": decimal.Decimal("0.25")}),
        writer.avro(wide, {"a": 0.5, "b": 2**40, "c": decimal.Decimal("0.25")}),
    ]
    found = extended(made, *rows)
    assert [(row["a"], row["b"], str(row["c"])) for row in found] == [
        (1.0, 2, "0.2500"),
        (0.5, 2**40, "0.2500"),
    ]


def test_names_that_only_case_tells_apart_or_that_an_archive_has_are_dealt_with(
    registry: str, topic: str
) -> None:
    twice = record(("a", "int"), ("A", "int"))
    own = record(("offset", "int"), ("Bad", "int"))
    writer = Writer(registry, topic)
    made = columns(registry, AVRO)
    assert extended(made, writer.avro(twice, {"a": 1, "A": 2})) == [{BAD: "two fields are for column A"}]
    (found,) = extended(made, Writer(registry, f"{topic}-own").avro(own, {"offset": 1, "Bad": 2}))
    assert found == {BAD: None, "json_offset": 1, "json_Bad": 2}


def test_protobuf_messages_are_each_what_they_say(registry: str, topic: str) -> None:
    order, note = classes(PROTO, "shop.Order"), classes(PROTO, "shop.Order.Note")
    writer = Writer(registry, topic)
    rows = [writer.protobuf(order(id=7, notes=[{"text": "x"}])), writer.protobuf(note(text="y"))]
    unknown = rows[0][:5] + b"\x02\x0a" + rows[0][6:]  # the path to a message that is not there
    found = extended(columns(registry, PROTOBUF), *rows, unknown)
    assert [(row["id"], row["notes"], row["text"]) for row in found] == [
        (7, '[{"text":"x"}]', None), (None, None, "y"), (None, None, None),
    ]  # fmt: skip
    assert found[2][BAD] == "it is a message that its schema does not have"


def test_json_with_a_schema_has_its_types_and_other_kinds_of_schema_are_bad(
    registry: str, topic: str
) -> None:
    schema = {"title": "T", "type": "object", "properties": {
        "id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"},
        "tags": {"type": "array", "items": {"type": "string"}},
    }}  # fmt: skip
    writer = Writer(registry, topic)
    good = writer.json({"id": 1, "at": "2024-05-01T12:00:00Z", "tags": ["a"]}, schema)
    wrong = good[:5] + b'{"id": "x"}'
    other = Writer(registry, f"{topic}-a").avro(V1, {"id": 1, "name": "a"})
    found = extended(columns(registry, JSON), good, wrong, other)
    assert (found[0]["id"], found[0]["tags"]) == (1, '["a"]')
    assert found[0]["at"] == datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    assert found[1][BAD] == "field id is of type string, not number"
    assert found[2][BAD].endswith("is of type AVRO, not JSON")


def test_schema_that_is_no_record_has_no_columns(registry: str, topic: str) -> None:
    rows = [
        Writer(registry, topic).avro("string", "x"),
        Writer(registry, f"{topic}-u").avro(["string", "long"], 5),
    ]
    for row in extended(columns(registry, AVRO), *rows):
        assert "is no record: it has no fields" in row[BAD]


def test_registry_that_is_away_makes_no_row_bad(registry: str, topic: str) -> None:
    row = Writer(registry, topic).avro(V1, {"id": 1, "name": "a"})
    with pytest.raises(RegistryUnavailable):
        extended(columns("http://127.0.0.1:9", AVRO), row)


@pytest.mark.parametrize("format_", FORMATS)
def test_table_of_every_format_gains_columns_of_every_type(
    registry: str, topic: str, tmp_path: Path, format_: str
) -> None:
    typed = record(
        ("id", "long"), ("name", "string"), ("price", PRICE, "\u0000"), ("flag", "boolean"), ("raw", "bytes"),
        ("half", "double"), ("day", {"type": "int", "logicalType": "date"}),
        ("at", {"type": "long", "logicalType": "timestamp-micros"}),
    )  # fmt: skip
    row = {
        "id": 2, "name": "b", "price": decimal.Decimal("1.25"), "flag": True, "raw": b"\xff", "half": 0.5,
        "day": datetime.date(2024, 5, 1), "at": datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC),
    }  # fmt: skip
    one = Writer(registry, topic).avro(V1, {"id": 1, "name": "a"})
    two = Writer(registry, f"{topic}-typed").avro(typed, row)
    table = create_table(TableAddress(str(tmp_path), format_))
    for number, message in enumerate((one, two)):
        made = columns(registry, AVRO, json_kinds(table.schema()))
        files = written(table, record_batch(number, 1, values=[message]), json=made)
        table.append(Batch("q", number, files), made.kinds)
    older, newer = sorted(read_plainly(tmp_path, format_), key=lambda each: int(each["offset"]))
    assert {name: newer[name] for name in row} == row
    assert {name: older[name] for name in row} == {**dict.fromkeys(row), "id": 1, "name": "a"}
    assert json_kinds(find_table(str(tmp_path)).schema()) == made.kinds


@pytest.mark.parametrize("choice", ["keep", "drop", "fail"])
def test_bad_rows_of_json_are_kept_left_out_or_an_error(tmp_path: Path, choice: str) -> None:
    files = Files(create_table(TableAddress(str(tmp_path), "parquet")), JsonColumns({}), BadRows(choice))
    batch = record_batch(0, 3, values=[b'{"id": 1}', b"bad", None])
    if choice == "fail":
        with pytest.raises(PipelineError, match="orders/0 offset 1: not JSON"):
            files.write(batch)
        return
    files.write(batch)
    files.write(record_batch(3, 1, values=[b"bad"]))
    (file,) = files.finish()
    assert file.rows == (4 if choice == "keep" else 2)


def test_commands_want_kind_and_registry_together() -> None:
    for command, arguments in ((archive_command, ["-t", "a", "--to", "lake"]), (sql_command, ["select 1"])):
        said = CliRunner().invoke(command, [*arguments, "--values", "avro"])
        assert (said.exit_code, "--schema-registry belong together" in said.output) == (2, True)


# --- in Spark ------------------------------------------------------------------------------------


def source(registry: str, **more: str) -> dict[str, str]:
    return {"valueFormat": "avro", "schemaRegistry": registry, **more}


def test_archive_gains_columns_with_new_versions_over_restarts_and_repeated_batches(
    spark: SparkSession, node: Node, registry: str, topic: str, tmp_path: Path
) -> None:
    create(node.bootstrap, topic)
    writer = Writer(registry, topic)
    send(node.bootstrap, topic, [Message(writer.avro(V1, {"id": 1, "name": "a"}))])
    run(spark, node.bootstrap, topic, tmp_path, source=source(registry))
    send(node.bootstrap, topic, [Message(writer.avro(V2, {"id": 2, "name": "b", "price": FIVE}))])
    run(spark, node.bootstrap, topic, tmp_path, source=source(registry))
    for note in (tmp_path / "_postroad" / "checkpoint" / "commits").glob("*1*"):
        note.unlink()  # as if the driver had died between the table's commit and Spark's note of it
    last = [
        writer.avro(V3, {"id": 3, "full_name": "c", "price": decimal.Decimal(7)}),
        b"bad",
        writer.avro(V1, {"id": 4, "name": "d"}),
    ]
    send(node.bootstrap, topic, [Message(each) for each in last])
    run(spark, node.bootstrap, topic, tmp_path, source=source(registry))

    expected = [
        (0, 1, "a", None, None, None),
        (1, 2, "b", FIVE, None, None),
        (2, 3, None, decimal.Decimal(7), "c", None),
        (3, None, None, None, None, "it does not begin with the id of a schema"),
        (4, 4, "d", None, None, None),
    ]
    names = ("offset", "id", "name", "price", "full_name", BAD)
    found = read_plainly(tmp_path, "delta")
    assert sorted(tuple(row[name] for name in names) for row in found) == expected
    assert [row["value"] for row in found if row["offset"] == 3] == [b"bad"]
    by_spark = read_archive(spark, str(tmp_path))
    assert dict(by_spark.dtypes)["price"] == "decimal(9,2)"
    assert sorted(tuple(row) for row in by_spark.select(*names).collect()) == expected
    send(
        node.bootstrap,
        topic,
        [Message(writer.avro(V3, {"id": 5, "full_name": "e", "price": FIVE}))],
    )
    for spooled in (None, tmp_path):
        live = Sources(node.bootstrap, str(tmp_path), options=source(registry), spool=spooled)
        rows = history(spark, topic, live).where("offset > 3").select(*names).orderBy("offset").collect()
        assert [tuple(row) for row in rows] == [expected[4], (5, 5, None, FIVE, "e", None)]


@pytest.mark.spark_slow
def test_tasks_that_meet_a_field_of_two_types_are_reconciled_and_no_letter_is_missing(
    spark: SparkSession, node: Node, registry: str, topic: str, tmp_path: Path
) -> None:
    create(node.bootstrap, topic, partitions=2)
    schemas = record(("a", "string")), record(("a", "boolean"))
    rows = [
        Writer(registry, f"{topic}-{n}").avro(each, {"a": ("x", True)[n]}) for n, each in enumerate(schemas)
    ]
    send(node.bootstrap, topic, [Message(row, partition=number) for number, row in enumerate(rows)])
    letters_to = {"bad_rows": "deadletter", "dead_letter_topic": f"{topic}.bad"}
    tasks = source(registry, minPartitions="2")
    done = run(spark, node.bootstrap, topic, tmp_path, source=tasks, **letters_to)
    assert done.ends == {topic: {0: 1, 1: 1}}
    (row,) = read_plainly(tmp_path, "delta")
    letters = read_all(node.bootstrap, f"{topic}.bad")
    assert {row["value"], *(letter.value for letter in letters)} == {*rows}


def test_dead_letters_are_written_once_over_a_repeated_batch(
    spark: SparkSession, node: Node, registry: str, topic: str, tmp_path: Path
) -> None:
    create(node.bootstrap, topic)
    good = Writer(registry, topic).avro(V1, {"id": 1, "name": "a"})
    send(node.bootstrap, topic, [Message(each, b"k") for each in (good, b"bad", good, None)])
    aside = {"bad_rows": "deadletter", "dead_letter_topic": f"{topic}.bad"}
    for _ in range(2):
        done = run(spark, node.bootstrap, topic, tmp_path, source=source(registry), **aside)
        assert done.ends == {topic: {0: 4}}
        shutil.rmtree(tmp_path / "_postroad" / "checkpoint" / "commits")
    assert [offset for _, _, offset in offsets_of(read_plainly(tmp_path, "delta"))] == [0, 2, 3]
    (letter,) = read_all(node.bootstrap, f"{topic}.bad")
    assert (letter.key, letter.value) == (b"k", b"bad")
    assert dict(letter.headers)["postroad-dead-offset"] == b"1"


NOWHERE = {"valueFormat": "avro", "schemaRegistry": "http://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"source": {"valueFormat": "json"}}, "--json-columns"),
        ({"source": {"valueFormat": "avro"}}, "schemaRegistry"),
        ({"source": {**NOWHERE, "valueSchema": "{}"}}, "valueSchema"),
        ({"source": {**NOWHERE, "badRows": "drop"}}, "--bad-rows"),
        ({"source": NOWHERE, "json_columns": True}, "one of them"),
        ({"bad_rows": "drop"}, "no row is bad"),
        ({"bad_rows": "deadletter", "json_columns": True}, "give both"),
        ({"bad_rows": "deadletter", "json_columns": True, "dead_letter_topic": "t"}, "archived itself"),
    ],
)
def test_settings_that_can_not_be_are_refused(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(PostroadError, match=says):
        run(spark, "127.0.0.1:1", "t", tmp_path, **settings)
