"""confluent-kafka's serializers and deserializers, with no other registry than the gateway's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    topic_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, timestamp_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from postroad.gateway.dialects import DIALECTS
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.schemas.conftest import Asker

V1 = """{"type": "record", "name": "Order", "namespace": "shop", "fields": [
  {"name": "id", "type": "long"}, {"name": "lines", "type": {"type": "array", "items": "string"}}]}"""
V2 = V1.replace('"fields": [', '"fields": [{"name": "note", "type": ["null", "string"], "default": null},')
JSON_V1 = """{"title": "Order", "type": "object", "required": ["id"], "additionalProperties": false,
  "properties": {"id": {"type": "integer"}}}"""


INT64, TEXT, MESSAGE, ENUM, DOUBLE = (
    getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name}")
    for name in ("INT64", "STRING", "MESSAGE", "ENUM", "DOUBLE")
)
ONE = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
MANY = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED


@pytest.fixture
def registry(gateway: RunningGateway) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": gateway.url})


def value(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def strategy(**more: Any) -> dict[str, Any]:
    """As serializers name subjects by default, where no associations of a stream catalogue are asked for."""
    return {"subject.name.strategy": topic_subject_name_strategy, **more}


def test_avro_goes_there_and_back_and_an_older_message_is_read_by_a_newer_schema(
    registry: SchemaRegistryClient, name: str
) -> None:
    written = AvroSerializer(registry, V1, conf=strategy())({"id": 7, "lines": ["a"]}, value(name))
    assert written is not None
    assert written[0] == 0
    again = AvroSerializer(registry, V2, conf=strategy())({"id": 8, "lines": [], "note": "x"}, value(name))
    reader = AvroDeserializer(registry, V2, conf=strategy())
    assert reader(written, value(name)) == {"note": None, "id": 7, "lines": ["a"]}
    assert reader(again, value(name)) == {"note": "x", "id": 8, "lines": []}
    assert AvroDeserializer(registry, conf=strategy())(written, value(name)) == {"id": 7, "lines": ["a"]}
    latest = AvroSerializer(
        registry, conf=strategy(**{"auto.register.schemas": False, "use.latest.version": True})
    )
    assert latest({"id": 9, "lines": [], "note": None}, value(name))[:5] == again[:5]


def test_an_incompatible_schema_is_refused_to_its_producer(registry: SchemaRegistryClient, name: str) -> None:
    AvroSerializer(registry, V1, conf=strategy())({"id": 7, "lines": []}, value(name))
    changed = AvroSerializer(registry, V1.replace('"long"', '"string"'), conf=strategy())
    with pytest.raises(Exception, match="incompatible") as refused:
        changed({"id": "7", "lines": []}, value(name))
    assert isinstance(refused.value, SchemaRegistryError) or "409" in str(refused.value)


def test_json_schema_goes_there_and_back(registry: SchemaRegistryClient, name: str) -> None:
    write = JSONSerializer(JSON_V1, registry, conf=strategy())
    data = write({"id": 7}, value(name))
    assert JSONDeserializer(None, schema_registry_client=registry, conf=strategy())(data, value(name)) == {
        "id": 7
    }
    with pytest.raises(Exception, match=r"is not of type"):
        write({"id": "x"}, value(name))


def order_class() -> Any:
    """A message with all that a .proto file can have, made without a compiler."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=INT64, label=ONE)
    order.field.add(name="lines", number=2, type=TEXT, label=MANY)
    order.field.add(name="at", number=3, type=MESSAGE, type_name=".google.protobuf.Timestamp", label=ONE)
    order.field.add(name="kind", number=4, type=ENUM, type_name=".shop.Order.Kind", label=ONE)
    order.field.add(name="prices", number=5, type=MESSAGE, type_name=".shop.Order.PricesEntry", label=MANY)
    order.oneof_decl.add(name="paid")
    order.field.add(name="card", number=6, type=TEXT, label=ONE, oneof_index=0)
    order.field.add(name="cash", number=7, type=INT64, label=ONE, oneof_index=0)
    entry = order.nested_type.add(name="PricesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=TEXT, label=ONE)
    entry.field.add(name="value", number=2, type=DOUBLE, label=ONE)
    kind = order.enum_type.add(name="Kind")
    kind.value.add(name="NONE", number=0)
    kind.value.add(name="BOOK", number=3)
    pool = DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf_goes_there_and_back(
    gateway: RunningGateway, registry: SchemaRegistryClient, name: str
) -> None:
    order = order_class()
    message = order(id=7, lines=["a"], kind=3, prices={"a": 1.5}, card="x")
    message.at.seconds = 9
    conf = strategy(**{"use.deprecated.format": False})
    data = ProtobufSerializer(order, registry, conf)(message, value(name))
    fresh = SchemaRegistryClient({"url": gateway.url})  # it has nothing in its memory
    assert ProtobufDeserializer(order, conf, schema_registry_client=fresh)(data, value(name)) == message
    text = registry.get_latest_version(f"{name}-value")
    assert "message Order {" in (text.schema.schema_str or "")
    again = fresh.get_latest_version(f"{name}-value", fmt="serialized")
    assert registry.register_schema(f"{name}-value", again.schema) == text.schema_id


def test_the_client_s_other_calls(registry: SchemaRegistryClient, name: str) -> None:
    colour = Schema('{"type": "enum", "name": "Colour", "symbols": ["RED"]}', "AVRO")
    registry.register_schema(f"{name}-colour", colour)
    wall = Schema(
        '{"type": "record", "name": "Wall", "fields": [{"name": "c", "type": "Colour"}]}',
        "AVRO",
        [SchemaReference("Colour", f"{name}-colour", 1)],
    )
    id_ = registry.register_schema(f"{name}-wall", wall)
    assert registry.register_schema(f"{name}-wall", wall, normalize_schemas=True) == id_
    assert registry.lookup_schema(f"{name}-wall", wall).schema_id == id_
    assert registry.get_schema(id_).references[0].subject == f"{name}-colour"
    assert registry.get_subjects_by_schema_id(id_) == [f"{name}-wall"]
    assert [each.version for each in registry.get_schema_versions(id_)] == [1]
    assert registry.get_referenced_by(f"{name}-colour", 1) == [id_]
    assert registry.get_versions(f"{name}-wall") == [1]
    assert registry.get_version(f"{name}-wall", 1).schema_id == id_
    assert f"{name}-wall" in registry.get_subjects()
    assert registry.get_schema_types() == ["JSON", "PROTOBUF", "AVRO"]
    assert registry.test_compatibility(f"{name}-wall", wall)
    assert registry.set_compatibility(f"{name}-wall", "FULL")["compatibility"] == "FULL"
    assert registry.get_compatibility(f"{name}-wall") == "FULL"
    assert registry.get_config(f"{name}-wall").compatibility_level == "FULL"
    registry.delete_config(f"{name}-wall")
    assert registry.get_global_mode() == "READWRITE"
    assert registry.update_mode(f"{name}-wall", "READONLY") == "READONLY"
    assert registry.get_mode(f"{name}-wall") == "READONLY"
    registry.delete_mode(f"{name}-wall")
    assert registry.get_contexts() == ["."]
    assert registry.delete_version(f"{name}-wall", 1) == 1
    assert registry.delete_version(f"{name}-wall", 1, permanent=True) == 1
    assert registry.delete_subject(f"{name}-colour") == [1]
    with pytest.raises(SchemaRegistryError) as refused:
        registry.get_latest_version(f"{name}-colour")
    assert (refused.value.http_status_code, refused.value.error_code) == (404, 40401)


def test_two_gateways_give_out_each_id_once_and_answer_alike(
    gateway: RunningGateway, start_gateway: StartGateway, name: str
) -> None:
    """Both register in the same subjects, at the same time."""
    other = start_gateway(DIALECTS)
    clients = [SchemaRegistryClient({"url": each.url}) for each in (gateway, other, gateway, other)]
    clients[0].set_compatibility(f"{name}-0", "NONE")
    clients[0].set_compatibility(f"{name}-1", "NONE")

    def register(worker: int) -> dict[str, int]:
        found = {}
        for number in range(12):
            text = f'{{"type": "fixed", "name": "F{number}", "size": {worker // 2 if number % 3 else 7}}}'
            for subject in (f"{name}-0", f"{name}-1"):
                found[text] = clients[worker].register_schema(subject, Schema(text, "AVRO"))
                # Another gateway knows it as soon as this one has answered.
                other_one = Asker((other if worker % 2 == 0 else gateway).url)
                assert other_one("POST", f"/subjects/{subject}", {"schema": text}).body["id"] == found[text]
        return found

    with ThreadPoolExecutor(len(clients)) as pool:
        results = list(pool.map(register, range(len(clients))))
    texts: dict[int, set[str]] = {}
    for result in results:
        for text, id_ in result.items():
            texts.setdefault(id_, set()).add(text)
    assert all(len(same) == 1 for same in texts.values())  # an id is one schema
    assert len(texts) == len({text for same in texts.values() for text in same})  # and a schema has one id
    fresh = [SchemaRegistryClient({"url": each.url}) for each in (gateway, other)]
    for subject in (f"{name}-0", f"{name}-1"):
        assert (
            fresh[0].get_versions(subject) == fresh[1].get_versions(subject) == list(range(1, len(texts) + 1))
        )
        for version in fresh[0].get_versions(subject):
            assert fresh[0].get_version(subject, version) == fresh[1].get_version(subject, version)
