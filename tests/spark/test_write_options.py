"""What a writer is told wrongly is refused before anything is written, with the option's or column's name."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from postroad.errors import ConfigurationError, InvalidRecord, InvalidTimestamp
from postroad.spark.rows import cast, check_columns
from postroad.spark.write_options import BATCH_BYTES, REQUEST_BYTES, WriteOptions, parse_write

BOOTSTRAP = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def parsed(streaming: bool = False, **options: str) -> WriteOptions:
    return parse_write({**BOOTSTRAP, **options}, streaming=streaming)


def test_nothing_but_the_broker_has_to_be_said() -> None:
    options = parsed()
    assert (options.topic, options.write_id, options.write_batch) == (None, "", 0)
    assert (options.compression, options.batch_bytes) == ("none", BATCH_BYTES)
    assert options.record_bytes_max == REQUEST_BYTES


def test_options_of_a_kafka_producer_are_taken() -> None:
    settings: dict[str, Any] = {
        "kafka.acks": "all",
        "kafka.compression.type": "zstd",
        "kafka.max.request.size": "5000",
    }
    settings |= {"kafka.linger.ms": "5", "kafka.batch.size": "900000"}
    options = parsed(topic="orders", **settings)
    assert (options.topic, options.compression) == ("orders", "zstd")
    assert (options.batch_bytes, options.record_bytes_max) == (5_000, 5_000)


def test_options_of_spark_itself_are_let_through() -> None:
    assert parsed(streaming=True, checkpointLocation="/tmp/x", queryName="q").topic is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kafka.acks": "1"}, "Option kafka.acks = '1': it must be all"),
        (
            {"kafka.key.serializer": "x"},
            "Option kafka.key.serializer can't be set: keys are strings or bytes",
        ),
        ({"kafka.transactional.id": "x"}, "Option kafka.transactional.id can't be set"),
        ({"kafka.compression.type": "rar"}, "Option kafka.compression.type = 'rar'"),
        ({"topik": "x"}, "Option topik is not known; did you mean topic?"),
        ({"topic": "a,b"}, "Option topic = 'a,b': it names one topic"),
        ({"topic": ""}, "Option topic is empty"),
        ({"subscribe": "x"}, "Option subscribe: is for reading; say where to write by topic"),
        ({"valueFormat": "json"}, "binary or avro"),
        ({"valueFormat": "avro", "topic": "t"}, "schemaRegistry = http://HOST:PORT"),
        ({"valueFormat": "avro", "schemaRegistry": "http://c"}, "Set the option schemaSubject, or topic"),
        ({"valueSchema": '"int"', "topic": "t"}, "with valueFormat=avro, json-schema or protobuf only"),
        ({"valueFormat": "avro", "topic": "t", "schemaMessage": "M", "valueSchema": "x"}, "set both"),
        ({"valueFormat": "protobuf", "topic": "t", "schemaMessage": "M"}, "set both"),
        ({"writeBatch": "3"}, "Option writeBatch means something with writeId only"),
        ({"writeBatch": "-3", "writeId": "x"}, "Option writeBatch = '-3': it must be a whole number from 0"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        parsed(**options)


def test_a_stream_counts_its_batches_itself() -> None:
    with pytest.raises(ConfigurationError, match="a stream counts its own"):
        parsed(streaming=True, writeId="x", writeBatch="1")


@pytest.mark.parametrize(
    ("fields", "topic", "said"),
    [
        ([("key", "string")], "t", "There is no column 'value', only key"),
        ([("value", "string")], None, "Set the option 'topic', or add a column 'topic'"),
        ([("value", "int")], "t", "Column value is of type int; it must be string or binary"),
        ([("value", "string"), ("topic", "int")], None, "Column topic is of type int; it must be string"),
        ([("value", "string"), ("partition", "bigint")], "t", "Column partition is of type bigint"),
        ([("value", "string"), ("timestamp", "bigint")], "t", "Column timestamp is of type bigint"),
        ([("value", "string"), ("headers", "map<string,binary>")], "t", "Column headers is of type map"),
    ],
)
def test_a_wrong_column_is_named(fields: list[tuple[str, str]], topic: str | None, said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        check_columns(fields, topic)


def test_other_columns_are_left_aside() -> None:
    check_columns([("value", "binary"), ("offset", "bigint"), ("more", "array<int>")], "t")


def test_rows_that_no_record_can_be_are_refused() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    nameless = pa.array([[{"key": None, "value": b"x"}]], kind)
    early = pa.array([-1], pa.timestamp("us", tz="UTC"))
    with pytest.raises(InvalidRecord, match="header without a key"):
        cast(pa.record_batch([pa.array([b"v"]), nameless], ["value", "headers"]))
    with pytest.raises(InvalidTimestamp, match="before 1970"):
        cast(pa.record_batch([pa.array([b"v"]), early], ["value", "timestamp"]))
    with pytest.raises(InvalidRecord, match="A row has no topic"):
        cast(pa.record_batch([pa.array([b"v"]), pa.array([None], pa.string())], ["value", "topic"]))
