"""One topic, clients of three kinds: Kafka's (confluent-kafka), SQS's (boto3) and WebSocket (websockets)."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_socket

from postroad.gateway import push
from postroad.gateway import sqs as dialect
from tests.clients.confluent import producer, send_all
from tests.clients.conftest import Broker
from tests.clients.share import answer, configure, member, poll, take
from tests.clients.wait import until
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.sqs.conftest import attributes_of, connect, delete, receive, receive_all

SOON_S = 60.0


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([dialect.routes, push.routes])


@pytest.fixture(scope="module")
def sqs(gateway: RunningGateway) -> Any:
    return connect(gateway.url)


@pytest.fixture
def queue(gateway: RunningGateway, sqs: Any, name: str) -> str:
    """The URL of a queue: a topic and a subscription, both called `name`."""
    make_lively(gateway, name)
    url: str = sqs.create_queue(QueueName=name)["QueueUrl"]
    return url


def make_lively(gateway: RunningGateway, group: str) -> None:
    """A share consumer that joins it reads soon, from the beginning."""
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap})
    configure(admin, Broker(gateway.bootstrap, ours=True), group)


def stream_url(gateway: RunningGateway, name: str) -> str:
    return f"ws{gateway.url.removeprefix('http')}/v1/subscriptions/{name}/stream?credit=100"


def assert_empty(sqs: Any, queue: str) -> None:
    """Nobody holds anything, and nothing waits."""

    def left() -> int:
        found = attributes_of(sqs, queue)
        return sum(int(found[f"ApproximateNumberOfMessages{kind}"]) for kind in ("", "NotVisible"))

    until(lambda: left() == 0, "everything is settled")
    assert receive(sqs, queue, wait_s=0) == []


def test_what_kafka_clients_produce_boto3_receives_and_deletes(
    gateway: RunningGateway, sqs: Any, queue: str, name: str
) -> None:
    headers = {"trace": b"a1", "raw": b"\xff\x00"}
    sent = send_all(
        producer(gateway.bootstrap),
        name,
        [
            {"key": "customer-7", "value": "grüße", "headers": headers},
            {"value": b"\xff\xfe"},
        ],
    )
    got = receive_all(sqs, queue, 2, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"])
    (text,) = (message for message in got if message["Body"] == "grüße")
    (binary,) = (message for message in got if message is not text)
    assert text["MessageAttributes"] == {
        "trace": {"DataType": "String", "StringValue": "a1"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\xff\x00"},
    }
    assert text["Attributes"]["MessageGroupId"] == "customer-7"
    assert int(text["Attributes"]["SentTimestamp"]) == sent[0].timestamp()[1]
    assert binary["Body"] == "//4="
    assert binary["MessageAttributes"]["postroad-body-encoding"]["StringValue"] == "base64"
    for message in got:
        delete(sqs, queue, message)
    assert_empty(sqs, queue)


def send_order(sqs: Any, queue: str) -> str:
    """A message with all that a message can have; its id."""
    sent = sqs.send_message(
        QueueUrl=queue,
        MessageBody='{"order": 41}',
        MessageGroupId="customer-7",
        MessageAttributes={
            "kind": {"DataType": "String", "StringValue": "new"},
            "weight": {"DataType": "Number", "StringValue": "12.50"},
            "seal": {"DataType": "Binary", "BinaryValue": b"\xff\x00"},
        },
    )
    message_id: str = sent["MessageId"]
    return message_id


def test_what_boto3_sends_a_share_consumer_takes_and_accepts(
    gateway: RunningGateway, sqs: Any, queue: str, name: str
) -> None:
    send_order(sqs, queue)
    with member(gateway.bootstrap, name, name) as worker:
        (message,) = take(worker, 1)
        headers = dict(message.headers())
        answer(worker, [message])
    assert message.value() == b'{"order": 41}'
    assert message.key() == b"customer-7"
    assert (headers["kind"], headers["weight"], headers["seal"]) == (b"new", b"12.50", b"\xff\x00")
    assert_empty(sqs, queue)


async def test_what_boto3_sends_a_websocket_client_gets_and_accepts(
    gateway: RunningGateway, sqs: Any, queue: str, name: str
) -> None:
    async with connect_socket(stream_url(gateway, name)) as socket, asyncio.timeout(SOON_S):
        await asyncio.to_thread(send_order, sqs, queue)
        message = json.loads(await socket.recv())
        await accept(socket, message["id"])
        assert json.loads(await socket.recv()) == {"type": "settled", "request": 1, "failed": []}
    headers = dict(message["headers"])
    assert (message["type"], message["value"], message["key"]) == ("message", '{"order": 41}', "customer-7")
    assert (headers["kind"], headers["weight"], headers["seal"]) == ("new", "12.50", {"base64": "/wA="})
    await asyncio.to_thread(assert_empty, sqs, queue)


async def accept(socket: ClientConnection, id_: int) -> None:
    await socket.send(json.dumps({"type": "accept", "ids": [id_], "request": 1}))


def test_what_a_share_consumer_releases_comes_to_boto3_as_a_second_receive(
    gateway: RunningGateway, sqs: Any, queue: str, name: str
) -> None:
    message_id = send_order(sqs, queue)
    with member(gateway.bootstrap, name, name) as worker:
        take(worker, 1)  # it leaves without an answer
    (again,) = receive(
        sqs, queue, wait_s=20, MessageAttributeNames=["All"], MessageSystemAttributeNames=["All"]
    )
    assert again["MessageId"] == message_id
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"
    assert again["MessageAttributes"]["weight"] == {"DataType": "Number", "StringValue": "12.50"}
    delete(sqs, queue, again)
    assert_empty(sqs, queue)


def test_two_subscriptions_of_a_topic_get_all_of_it_each_by_clients_of_its_own_kind(
    gateway: RunningGateway, sqs: Any, queue: str, name: str
) -> None:
    audit = f"{name}-audit"
    make_lively(gateway, audit)
    produced = {b"produced %d" % number for number in range(20)}
    sent = {b"sent %d" % number for number in range(20)}
    send_all(producer(gateway.bootstrap), name, ({"value": value} for value in produced))
    for value in sent:
        sqs.send_message(QueueUrl=queue, MessageBody=value.decode())
    with member(gateway.bootstrap, audit, name) as auditor:
        audited: list[Message] = []
        while len(audited) < 40:
            some = take(auditor)
            answer(auditor, some)
            audited += some
    received = receive_all(sqs, queue, 40)
    for message in received:
        delete(sqs, queue, message)
    assert Counter(message.value() for message in audited) == Counter(produced | sent)
    assert Counter(message["Body"].encode() for message in received) == Counter(produced | sent)
    assert_empty(sqs, queue)
    assert_empty(sqs, sqs.get_queue_url(QueueName=audit)["QueueUrl"])


class Crew:
    """A worker of each kind at one queue, and what each of them got, until they have got all there is."""

    def __init__(self, gateway: RunningGateway, sqs: Any, name: str) -> None:
        self.got: dict[str, list[str]] = {"sqs": [], "kafka": [], "websocket": []}
        self.all_sent = False
        self.sent: list[str] = []
        self._gateway, self._sqs, self._name = gateway, sqs, name
        self._deadline = time.monotonic() + SOON_S

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self._deadline

    @property
    def is_done(self) -> bool:
        return self.is_late or (self.all_sent and sum(map(len, self.got.values())) >= len(self.sent))

    def send(self, at_least: int) -> None:
        """On and on, until each of them has got something."""
        through = producer(self._gateway.bootstrap, linger_ms=0)
        while (len(self.sent) < at_least or not all(self.got.values())) and not self.is_late:
            values = [str(len(self.sent) + number) for number in range(10)]
            send_all(through, self._name, ({"value": value} for value in values))
            self.sent += values
            time.sleep(0.01 if len(self.sent) < at_least else 0.1)
        self.all_sent = True

    def work_with_boto3(self) -> None:
        queue = self._sqs.get_queue_url(QueueName=self._name)["QueueUrl"]
        while not self.is_done:
            for message in receive(self._sqs, queue, 10, wait_s=1):
                delete(self._sqs, queue, message)
                self.got["sqs"].append(message["Body"])

    def work_with_kafka(self) -> None:
        with member(self._gateway.bootstrap, self._name, self._name, max_poll_records=20) as worker:
            while not self.is_done:
                messages = poll(worker)
                answer(worker, messages)
                self.got["kafka"] += [message.value().decode() for message in messages]

    async def work_with_websocket(self) -> None:
        async with connect_socket(stream_url(self._gateway, self._name)) as socket:
            while not self.is_done:
                try:
                    frame = json.loads(await asyncio.wait_for(socket.recv(), 0.5))
                except TimeoutError:
                    continue
                if frame["type"] == "message":
                    self.got["websocket"].append(frame["value"])
                    await accept(socket, frame["id"])
                    await socket.send(json.dumps({"type": "credit", "messages": 1}))


@pytest.mark.slow
def test_workers_of_all_kinds_share_one_queue_and_nothing_comes_to_two(
    gateway: RunningGateway, sqs: Any, queue: str, name: str
) -> None:
    crew = Crew(gateway, sqs, name)
    with ThreadPoolExecutor() as threads:
        working = [
            threads.submit(crew.work_with_boto3),
            threads.submit(crew.work_with_kafka),
            threads.submit(lambda: asyncio.run(crew.work_with_websocket())),
        ]
        crew.send(at_least=1000)
        for each in working:
            each.result()
    assert Counter(value for share in crew.got.values() for value in share) == Counter(crew.sent)
    assert all(crew.got.values()), {kind: len(share) for kind, share in crew.got.items()}
    assert_empty(sqs, queue)
