"""From AWS SQS to Postroad while everything runs: what is in the old queue is carried over, one batch at a
time.

    python move_from_sqs.py 127.0.0.1:9092 http://127.0.0.1:8080

The old queue is at OLD_SQS, such as https://sqs.eu-central-1.amazonaws.com; without it at a node that is
started here.
"""

import os
import sys
import uuid
from contextlib import ExitStack
from typing import Any

import boto3

from postroad.testing import node

WORDS = {"region_name": "us-east-1", "aws_access_key_id": "any", "aws_secret_access_key": "any"}


def carry_over(old: Any, old_queue: str, new: Any, new_queue: str) -> int:
    """Until the old queue is empty. It may die at any line: then some messages are there twice, none is
    lost."""
    count = 0
    while True:
        found = old.receive_message(
            QueueUrl=old_queue, MaxNumberOfMessages=10, WaitTimeSeconds=1, MessageAttributeNames=["All"]
        )
        messages = found.get("Messages", [])
        if not messages:
            return count
        entries = [
            {
                "Id": str(number),
                "MessageBody": message["Body"],
                "MessageAttributes": message.get("MessageAttributes", {}),
            }
            for number, message in enumerate(messages)
        ]
        stored = new.send_message_batch(QueueUrl=new_queue, Entries=entries)["Successful"]
        for entry in stored:  # what was not stored stays where it is, and comes again
            receipt = messages[int(entry["Id"])]["ReceiptHandle"]
            old.delete_message(QueueUrl=old_queue, ReceiptHandle=receipt)
        count += len(stored)


with ExitStack() as stack:
    aws = os.environ.get("OLD_SQS") or stack.enter_context(node({"http.enabled": True})).http
    old = boto3.client("sqs", endpoint_url=aws, **WORDS)
    old_queue = old.create_queue(QueueName="orders")["QueueUrl"]
    for number in range(25):
        old.send_message(
            QueueUrl=old_queue,
            MessageBody=f"order {number}",
            MessageAttributes={"shop": {"DataType": "String", "StringValue": "berlin"}},
        )

    # Publishers first: they send to the new queue from now on. Then this, as long as anything comes:
    new = boto3.client("sqs", endpoint_url=sys.argv[2], **WORDS)
    new_queue = new.create_queue(QueueName=f"orders-{uuid.uuid4().hex[:8]}")["QueueUrl"]
    print("carried over", carry_over(old, old_queue, new, new_queue))

    # Then the consumers.
    bodies = []
    while len(bodies) < 25:
        found = new.receive_message(
            QueueUrl=new_queue, MaxNumberOfMessages=10, WaitTimeSeconds=2, MessageAttributeNames=["All"]
        )
        for message in found.get("Messages", []):
            bodies.append(message["Body"])
            assert message["MessageAttributes"]["shop"]["StringValue"] == "berlin"
            new.delete_message(QueueUrl=new_queue, ReceiptHandle=message["ReceiptHandle"])
    print("consumed", len(set(bodies)), "here")
