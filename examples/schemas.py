"""Orders in Avro: a newer program reads what an older one wrote, with the gateway as the schema registry.

python examples/schemas.py [NODE [GATEWAY]]
"""

import sys
import uuid

from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext

BOOTSTRAP = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
GATEWAY = sys.argv[2] if len(sys.argv) > 2 else "http://127.0.0.1:8080"
TOPIC = f"avro-orders-{uuid.uuid4().hex[:8]}"

FIRST = """{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}"""
SECOND = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "express", "type": "boolean", "default": false}]}"""
WRONG = """{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}"""

registry = SchemaRegistryClient({"url": GATEWAY})
names = {"subject.name.strategy": topic_subject_name_strategy}
value = SerializationContext(TOPIC, MessageField.VALUE)

producer = Producer({"bootstrap.servers": BOOTSTRAP})
producer.produce(TOPIC, AvroSerializer(registry, FIRST, conf=names)({"id": 1}, value))
producer.produce(TOPIC, AvroSerializer(registry, SECOND, conf=names)({"id": 2, "express": True}, value))
assert producer.flush(10) == 0

try:
    AvroSerializer(registry, WRONG, conf=names)({"id": "three"}, value)
except SchemaRegistryError as refused:
    print("refused:", refused.error_code)

consumer = Consumer(
    {"bootstrap.servers": BOOTSTRAP, "group.id": f"{TOPIC}-readers", "auto.offset.reset": "earliest"}
)
consumer.subscribe([TOPIC])
read = AvroDeserializer(registry, SECOND, conf=names)
seen = 0
while seen < 2:
    message = consumer.poll(10)
    assert message is not None, "nothing came within ten seconds"
    assert message.error() is None, message.error()
    print(read(message.value(), value))
    seen += 1
consumer.close()
