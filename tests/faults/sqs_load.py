"""Load through SQS, with a record of what was answered, to be held against what comes after a fault."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

VISIBILITY_S = 2
GROUPS = 8  # of each sender, in FIFO queues
ABANDONED = 40  # one of so many is not deleted when it is first received
PAUSE_S = 0.05  # after a failure
EXPIRED = "The receipt handle has expired"  # the message is somebody else's by now, or comes again


class SecuredUrl(str):
    """A gateway's URL, and what boto3 has to show there."""

    client: Mapping[str, str]

    def __new__(cls, url: str, client: Mapping[str, str]) -> SecuredUrl:
        made = super().__new__(cls, url)
        made.client = client
        return made


def client(url: str) -> Any:
    """It gives up at the first failure: whoever calls decides, and knows what was answered."""
    config = Config(retries={"max_attempts": 0}, read_timeout=20, connect_timeout=20, max_pool_connections=20)
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    if isinstance(url, SecuredUrl):
        keys |= url.client
    return boto3.client("sqs", endpoint_url=str(url), region_name="eu-west-1", config=config, **keys)


def attempt(call: Callable[..., Any], **parameters: Any) -> Any:
    """The answer; None if there was none, or one that says that the server is at fault."""
    try:
        return call(**parameters)
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
            raise
    except BotoCoreError:
        pass
    time.sleep(PAUSE_S)
    return None


class Body(NamedTuple):
    sender: str
    number: int

    @property
    def group(self) -> str:
        return f"{self.sender}-{self.number % GROUPS}"

    def __str__(self) -> str:
        return f"{self.sender} {self.number}"

    @staticmethod
    def read(text: str) -> Body:
        sender, number = text.split()
        return Body(sender, int(number))


class Ledger:
    """What clients were told. Times are those of one clock."""

    def __init__(self) -> None:
        self.sent: set[Body] = set()
        self.deleted: dict[str, float] = {}  # message id → when that was answered; nobody else had it
        self.deliveries: dict[str, int] = defaultdict(int)  # by message id
        self.worked_on: set[Body] = set()  # to the end; whether its deletion was answered or not
        self.ids: dict[Body, set[str]] = defaultdict(set)
        self.came_back: list[Body] = []  # received though it was deleted before it was asked for
        self.overtook: list[Body] = []  # first received after one of its group that was sent later
        self._last: dict[str, int] = {}
        self._lock = threading.Lock()

    def note_delivery(self, body: Body, message_id: str, asked_at: float) -> int:
        """How often it was delivered by now."""
        with self._lock:
            self.deliveries[message_id] += 1
            if asked_at > self.deleted.get(message_id, asked_at):
                self.came_back.append(body)
            if body not in self.ids:
                if body.number < self._last.get(body.group, -1):
                    self.overtook.append(body)
                self._last[body.group] = body.number
            self.ids[body].add(message_id)
            return self.deliveries[message_id]

    def note_deletion(self, message_id: str, delivery: int, asked_at: float) -> None:
        """Whoever comes too late may delete nothing: somebody else may have been given it by then."""
        with self._lock:
            now = time.monotonic()
            if self.deliveries[message_id] == delivery and now < asked_at + VISIBILITY_S:
                self.deleted[message_id] = now


class Sender:
    """Numbers its messages. In a FIFO queue it says each until it is answered; else it tries each once."""

    def __init__(self, sqs: Any, queue: str, name: str, ledger: Ledger) -> None:
        self.sqs, self._queue, self._name, self._ledger = sqs, queue, name, ledger
        self._fifo = queue.endswith(".fifo")

    def run(self, done: threading.Event) -> None:
        number = 0
        while not done.is_set():
            number += self.send(number)

    def send(self, number: int) -> bool:
        """Returns whether the next one's turn has come."""
        body = Body(self._name, number)
        answered = attempt(self.sqs.send_message, **self._parameters(body))
        if answered:
            self._ledger.sent.add(body)
        return bool(answered or not self._fifo)

    def _parameters(self, body: Body) -> dict[str, str]:
        found = {"QueueUrl": self._queue, "MessageBody": str(body)}
        if self._fifo:
            found |= {"MessageGroupId": body.group, "MessageDeduplicationId": f"{body.sender}-{body.number}"}
        return found


class Receiver:
    """Receives and deletes; now and then it leaves one to come again."""

    def __init__(self, sqs: Any, queue: str, ledger: Ledger) -> None:
        self.sqs, self._queue, self._ledger = sqs, queue, ledger

    def run(self, done: threading.Event) -> None:
        while not done.is_set():
            self._receive()

    def _receive(self) -> None:
        asked_at = time.monotonic()
        answered = attempt(
            self.sqs.receive_message,
            QueueUrl=self._queue,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=1,
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        messages: list[dict[str, Any]] = (answered or {}).get("Messages", [])
        deliveries = [
            self._ledger.note_delivery(Body.read(message["Body"]), message["MessageId"], asked_at)
            for message in messages
        ]
        for message, delivery in zip(messages, deliveries, strict=True):
            self._work_on(message, delivery, asked_at)

    def _work_on(self, message: dict[str, Any], delivery: int, asked_at: float) -> None:
        body = Body.read(message["Body"])
        is_first = message["Attributes"]["ApproximateReceiveCount"] == "1"
        if is_first and body.number % ABANDONED == 0:
            return
        self._ledger.worked_on.add(body)
        if self._delete(message["ReceiptHandle"]):
            self._ledger.note_deletion(message["MessageId"], delivery, asked_at)

    def _delete(self, handle: str) -> Any:
        """What is answered; None if nothing is, or that a FIFO queue's receipt came too late."""
        try:
            return attempt(self.sqs.delete_message, QueueUrl=self._queue, ReceiptHandle=handle)
        except ClientError as error:
            if EXPIRED not in str(error):
                raise
        return None
