"""Code that was written for SQS, unchanged: where the queue is comes from the environment.

AWS_ENDPOINT_URL_SQS=http://127.0.0.1:8080 python aws_code.py
"""

import json
import os
import sys
import uuid

import boto3

if len(sys.argv) > 2:  # what the environment of a service says
    os.environ["AWS_ENDPOINT_URL_SQS"] = sys.argv[2]
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
os.environ.setdefault("AWS_ACCESS_KEY_ID", "any")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "any")

# --- from here on it is what ran on AWS

sqs = boto3.resource("sqs")
name = f"orders-{uuid.uuid4().hex[:8]}"
dead = sqs.create_queue(QueueName=f"{name}-dead")
queue = sqs.create_queue(
    QueueName=name,
    Attributes={
        "VisibilityTimeout": "0",
        "RedrivePolicy": json.dumps(
            {"deadLetterTargetArn": dead.attributes["QueueArn"], "maxReceiveCount": "2"}
        ),
    },
)
queue.send_messages(Entries=[{"Id": str(number), "MessageBody": f"order {number}"} for number in range(3)])
handled = set()
while len(handled) < 3:
    for message in queue.receive_messages(MaxNumberOfMessages=10, WaitTimeSeconds=5):
        handled.add(message.body)
        if message.body != "order 1":  # which fails: it stays, and after two receives it is a dead letter
            message.delete()
while not (letters := dead.receive_messages(WaitTimeSeconds=2)):
    queue.receive_messages(WaitTimeSeconds=1)
print("handled", ", ".join(sorted(handled)))
print("dead letter:", letters[0].body)
letters[0].delete()
