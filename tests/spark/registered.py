"""Programs with confluent-kafka: they write and read messages that have a registered schema."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

V1: dict[str, Any] = {"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "lines", "type": {"type": "array", "items": "string"}},
]}  # fmt: skip
V2 = {"type": "record", "name": "Order", "fields": [
    *V1["fields"],
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
    {"name": "prices", "type": {"type": "map", "values": "double"}, "default": {}},
]}  # fmt: skip
JSON_SCHEMA = {"title": "Order", "type": "object", "properties": {
    "id": {"type": "integer"}, "note": {"oneOf": [{"type": "null"}, {"type": "string"}]},
    "lines": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}},
}}  # fmt: skip


PROTO = """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; repeated Note notes = 2; google.protobuf.Timestamp at = 3;
  message Note { string text = 1; } }"""


class Writer:
    """Messages as a program with confluent-kafka makes them."""

    def __init__(self, url: str, topic: str) -> None:
        self._client = SchemaRegistryClient({"url": url})
        self._context = SerializationContext(topic, MessageField.VALUE)
        self._conf = {"subject.name.strategy": topic_subject_name_strategy}

    def avro(self, schema: Any, row: Any) -> bytes:
        data = AvroSerializer(self._client, json.dumps(schema), conf=self._conf)(row, self._context)
        assert data is not None
        return data

    def protobuf(self, message: Any) -> bytes:
        conf = {**self._conf, "use.deprecated.format": False}
        data = ProtobufSerializer(type(message), self._client, conf)(message, self._context)
        assert data is not None
        return data

    def json(self, row: Any, schema: Any = JSON_SCHEMA) -> bytes:
        data = JSONSerializer(json.dumps(schema), self._client, conf=self._conf)(row, self._context)
        assert data is not None
        return data
