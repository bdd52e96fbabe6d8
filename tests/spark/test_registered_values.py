"""Values with the id of a registered schema: written by confluent-kafka's serializers, read by Spark."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from postroad.gateway.dialects import DIALECTS
from postroad.spark.registered_parsing import RegisteredParser, kind_of
from postroad.spark.schema_registry import RegistryUnavailable, SchemaRegistry
from postroad.testing import Node
from tests.gateway.conftest import gateway_in_thread
from tests.spark.plain import Message, create, read_all, send
from tests.spark.registered import PROTO, V1, V2, Writer
from tests.spark.test_proto_reading import classes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def registry(node: Node) -> Iterator[str]:
    with gateway_in_thread(node.bootstrap, DIALECTS) as running:
        yield running.url


def load(spark: SparkSession, node: Node, topic: str, registry: str, **options: str) -> DataFrame:
    return (
        spark.read.format("postroad")
        .options(**{"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, "valueFormat": "avro"})
        .options(**{"schemaRegistry": registry, **options})
        .load()
    )


def test_messages_of_all_versions_are_read_as_the_newest_and_bad_ones_dropped(
    spark: SparkSession, node: Node, registry: str, topic: str
) -> None:
    create(node.bootstrap, topic)
    writer = Writer(registry, topic)
    first = writer.avro(V1, {"id": 1, "lines": ["a", "b"]})
    second = writer.avro(V2, {"id": 2, "lines": [], "at": 5000, "prices": {"a": 1.5}})
    send(
        node.bootstrap,
        topic,
        [Message(each) for each in (first, second, b"no schema", first[:-2], None, first)],
    )
    frame = load(spark, node, topic, registry, badRows="drop")
    assert (
        dict(frame.dtypes)["value"]
        == "struct<id:bigint,lines:array<string>,at:timestamp,prices:map<string,double>>"
    )
    found = frame.selectExpr(
        "offset", "value.id", "value.lines", "cast(value.at as bigint)", "value.prices"
    ).collect()
    assert [tuple(row) for row in found] == [
        (0, 1, ["a", "b"], None, {}),
        (1, 2, [], 5, {"a": 1.5}),
        (4, None, None, None, None),
        (5, 1, ["a", "b"], None, {}),
    ]
    older = load(spark, node, topic, registry, badRows="drop", valueSchema=json.dumps(V1))
    assert dict(older.dtypes)["value"] == "struct<id:bigint,lines:array<string>>"
    assert [row.id for row in older.selectExpr("value.id").collect()] == [1, 2, None, 1]
    with pytest.raises(Exception, match="offset 2 doesn't fit: it does not begin with the id of a schema"):
        load(spark, node, topic, registry).collect()


def test_json_with_a_registered_schema_is_read(
    spark: SparkSession, node: Node, registry: str, topic: str
) -> None:
    create(node.bootstrap, topic)
    writer = Writer(registry, topic)
    rows = [{"id": 1, "note": None, "lines": [{"n": 0.5}]}, {"id": 2, "note": "x", "lines": []}]
    send(node.bootstrap, topic, [Message(writer.json(row)) for row in rows])
    frame = load(spark, node, topic, registry, valueFormat="json-schema")
    found = [row.value.asDict(recursive=True) for row in frame.select("value").collect()]
    assert found == rows


def test_protobuf_is_read_and_messages_of_another_name_are_bad(
    spark: SparkSession, node: Node, registry: str, topic: str
) -> None:
    create(node.bootstrap, topic)
    order, note = classes(PROTO, "shop.Order"), classes(PROTO, "shop.Order.Note")
    writer = Writer(registry, topic)
    rows = [writer.protobuf(order(id=7, notes=[{"text": "x"}])), writer.protobuf(note(text="y")), None]
    send(node.bootstrap, topic, [Message(row) for row in rows])
    options = {"valueFormat": "protobuf", "badRows": "drop"}
    frame = load(spark, node, topic, registry, **options)
    assert dict(frame.dtypes)["value"] == "struct<id:bigint,notes:array<struct<text:string>>,at:timestamp>"
    found = [(row.offset, row.value and row.value.asDict(recursive=True)) for row in frame.collect()]
    assert found == [(0, {"id": 7, "notes": [{"text": "x"}], "at": None}), (2, None)]
    others = load(spark, node, topic, registry, schemaMessage="Note", **options).select(
        "offset", "value.text"
    )
    assert [tuple(row) for row in others.collect()] == [(1, "y"), (2, None)]
    with pytest.raises(Exception, match=r"it is a message Order\.Note, not Order"):
        load(spark, node, topic, registry, valueFormat="protobuf").collect()


def test_what_spark_writes_others_read_and_a_repeated_write_registers_nothing_new(
    spark: SparkSession, node: Node, registry: str, topic: str
) -> None:
    create(node.bootstrap, topic)
    made = spark.range(0, 3, 1, 1).selectExpr(
        "if(id = 1, null, struct(id, array(string(id)) as lines, map('a', 0.5D) as prices, "
        "timestamp_millis(5000) as at, cast(1.25 as decimal(9, 2)) as total)) as value"
    )
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "valueFormat": "avro"}
    for _ in range(2):
        made.write.format("postroad").options(**options, schemaRegistry=registry).mode("append").save()
    client = SchemaRegistryClient({"url": registry})
    assert client.get_versions(f"{topic}-value") == [1]
    read = AvroDeserializer(client, conf={"subject.name.strategy": topic_subject_name_strategy})
    found = [
        read(row.value, SerializationContext(topic, MessageField.VALUE))
        for row in read_all(node.bootstrap, topic)
    ]
    assert found[1] is found[4] is None
    assert found[2] == found[5] == {
        "id": 2, "lines": ["2"], "prices": {"a": 0.5}, "total": decimal.Decimal("1.25"),
        "at": datetime.datetime(1970, 1, 1, 0, 0, 5, tzinfo=datetime.UTC),
    }  # fmt: skip
    frame = load(spark, node, topic, registry).where("value is not null")
    assert [row.id for row in frame.selectExpr("value.id").collect()] == [0, 2, 0, 2]
    other = made.selectExpr("struct('x' as id) as value").write.format("postroad").options(**options)
    with pytest.raises(Exception, match="incompatible with an earlier schema"):
        other.options(schemaRegistry=registry).mode("append").save()


def test_protobuf_that_spark_writes_others_read_and_numbers_are_kept(
    spark: SparkSession, node: Node, registry: str, topic: str
) -> None:
    create(node.bootstrap, topic)
    made = spark.range(0, 3, 1, 1).selectExpr(
        "if(id = 1, null, struct(id, array(struct(string(id) as text)) as lines, map('a', 0.5D) as prices, "
        "timestamp_millis(5000) as at)) as value"
    )
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "valueFormat": "protobuf"}
    options["schemaRegistry"] = registry
    made.write.format("postroad").options(**options).mode("append").save()
    client = SchemaRegistryClient({"url": registry})
    value = classes(client.get_latest_version(f"{topic}-value").schema.schema_str, "Value")
    read = ProtobufDeserializer(value, {"use.deprecated.format": False}, client)
    context = SerializationContext(topic, MessageField.VALUE)
    found = [read(row.value, context) for row in read_all(node.bootstrap, topic)]
    assert found[1] is None
    assert found[2] == value(id=2, lines=[{"text": "2"}], prices={"a": 0.5}, at={"seconds": 5})
    frame = load(spark, node, topic, registry, valueFormat="protobuf").where("value is not null")
    assert [row.id for row in frame.selectExpr("value.id").collect()] == [0, 2]
    moved = made.selectExpr("struct(value.prices as prices, value.id as id) as value")
    with pytest.raises(Exception, match=r"Value\.prices would have another number than in schema"):
        moved.write.format("postroad").options(**options).mode("append").save()
    given = {"valueSchema": PROTO, "schemaMessage": "Note", "schemaSubject": f"{topic}-note"}
    note = made.selectExpr("struct('x' as text) as value")
    note.write.format("postroad").options(**options, **given).mode("append").save()
    read_note = ProtobufDeserializer(
        classes(PROTO, "shop.Order.Note"), {"use.deprecated.format": False}, client
    )
    assert read_note(read_all(node.bootstrap, topic)[-1].value, context).text == "x"


def test_json_stream_with_maps_becomes_documents_of_a_schema_that_others_read(
    spark: SparkSession, node: Node, registry: str, topic: str, tmp_path: Path
) -> None:
    target = f"{topic}.typed"
    create(node.bootstrap, topic)
    create(node.bootstrap, target)
    values = [b'{"id": 1, "prices": {"a": 0.5, "b": null}}', b'{"prices": []}', None, b'{"id": 2}']
    send(node.bootstrap, topic, [Message(each) for each in values])
    orders = (
        spark.readStream.format("postroad")
        .options(**{"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, "badRows": "drop"})
        .options(
            startingOffsets="earliest",
            valueFormat="json",
            valueSchema="id bigint, prices map<string, double>",
        )
        .load()
    )
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": target, "valueFormat": "json-schema"}
    orders.select("value").writeStream.format("postroad").options(**options, schemaRegistry=registry).option(
        "checkpointLocation", str(tmp_path)
    ).trigger(availableNow=True).start().awaitTermination()
    client = SchemaRegistryClient({"url": registry})
    read = JSONDeserializer(
        None, schema_registry_client=client, conf={"subject.name.strategy": topic_subject_name_strategy}
    )
    context = SerializationContext(target, MessageField.VALUE)
    found = [read(row.value, context) for row in read_all(node.bootstrap, target)]
    assert found == [{"id": 1, "prices": {"a": 0.5, "b": None}}, None, {"id": 2}]
    frame = load(spark, node, target, registry, valueFormat="json-schema")
    assert dict(frame.dtypes)["value"] == "struct<id:bigint,prices:map<string,double>>"


# --- without Spark


def parser(url: str, subject: str) -> RegisteredParser:
    asked = SchemaRegistry(url)
    wanted = asked.latest(subject)
    return RegisteredParser(asked, wanted, kind_of(wanted))


def test_why_a_row_is_bad_is_said(registry: str, topic: str) -> None:
    writer = Writer(registry, topic)
    good = writer.avro(V1, {"id": 1, "lines": []})
    other = Writer(registry, f"{topic}-x").avro(
        {"type": "fixed", "name": topic.replace("-", "_"), "size": 1}, b"x"
    )
    rows = [good, None, b"", b"\1" + good[1:], good + b"x", other, b"\0\x7f\xff\xff\xff" + good[5:], good]
    values, bad = parser(registry, f"{topic}-value").parse(pa.array(rows, pa.binary()))
    assert [row is not None for row in values.to_pylist()] == [True] + [False] * 6 + [True]
    headless = "it does not begin with the id of a schema"
    assert (bad[2], bad[3], bad[4]) == (headless, headless, "it is longer than its schema says")
    assert "can't be read as this one" in bad[5]
    assert "Schema 2147483647 not found" in bad[6]
    assert [*bad] == [2, 3, 4, 5, 6]


def test_a_slice_of_an_array_is_read_as_well_as_a_whole_one(registry: str, topic: str) -> None:
    writer = Writer(registry, topic)
    rows = [writer.avro(V1, {"id": number, "lines": [str(number)]}) for number in range(10)]
    values = pa.array([*rows, None, b"bad"], pa.binary())
    of_topic = parser(registry, f"{topic}-value")
    whole, _ = of_topic.parse(values)
    for start in range(12):
        part, bad = of_topic.parse(values.slice(start, 3))
        assert part.to_pylist() == whole.to_pylist()[start : start + 3]
        assert [*bad] == [11 - start] * (start >= 9)


def test_a_registry_that_is_away_is_no_bad_row(registry: str, topic: str) -> None:
    good = Writer(registry, topic).avro(V1, {"id": 1, "lines": []})
    away = parser(registry, f"{topic}-value")._replace(registry=SchemaRegistry("http://127.0.0.1:9"))
    with pytest.raises(RegistryUnavailable, match="does not answer"):
        away.parse(pa.array([good], pa.binary()))
