"""The same messages for SQS and for Kafka: confluent-kafka on one side, boto3 on the other."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer, ShareConsumer

from tests.gateway.conftest import RunningGateway
from tests.gateway.sqs.conftest import attributes_of, delete, receive_all

TYPED = {
    "kind": {"DataType": "String", "StringValue": "order"},
    "size": {"DataType": "Number", "StringValue": "42"},
}


def test_what_confluent_kafka_produced_boto3_receives_and_deletes(
    sqs: Any, gateway: RunningGateway, queue: str, name: str
) -> None:
    producer = Producer({"bootstrap.servers": gateway.bootstrap})
    for number in range(20):
        producer.produce(name, f"m{number}".encode(), key=b"k", headers={"trace": f"t{number}"})
    assert producer.flush(10) == 0
    messages = receive_all(sqs, queue, 20, MessageAttributeNames=["All"], AttributeNames=["All"])
    assert {message["Body"] for message in messages} == {f"m{number}" for number in range(20)}
    for message in messages:
        assert message["Attributes"]["MessageGroupId"] == "k"
        assert message["MessageAttributes"]["trace"]["StringValue"] == message["Body"].replace("m", "t")
        delete(sqs, queue, message)
    found = attributes_of(sqs, queue)
    assert found["ApproximateNumberOfMessages"] == found["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_what_boto3_sent_a_share_consumer_gets(
    sqs: Any, gateway: RunningGateway, queue: str, name: str
) -> None:
    for number in range(20):
        sqs.send_message(
            QueueUrl=queue, MessageBody=f"m{number}", MessageGroupId="tenant", MessageAttributes=TYPED
        )
    consumer = ShareConsumer({"bootstrap.servers": gateway.bootstrap, "group.id": name})
    consumer.subscribe([name])
    got: list[Any] = []
    while len(got) < 20:
        got += [message for message in consumer.poll(timeout=10) if message.error() is None]
    consumer.commit_sync(timeout=10)
    consumer.close()
    assert {message.value().decode() for message in got} == {f"m{number}" for number in range(20)}
    headers = dict(got[0].headers())
    assert (headers["kind"], headers["size"]) == (b"order", b"42")
    assert got[0].key() == b"tenant"
    assert attributes_of(sqs, queue)["ApproximateNumberOfMessages"] == "0"
