"""What each action answers, by SQS's names. What is None is left out."""

from __future__ import annotations

from msgspec import Struct, field

from postroad.gateway.sqs.requests import MessageAttributes


class SqsAnswer(Struct, rename="pascal", omit_defaults=True):
    pass


class Nothing(SqsAnswer):
    pass


class QueueUrl(SqsAnswer):
    queue_url: str


class QueueUrls(SqsAnswer):
    queue_urls: list[str] | None = None
    next_token: str | None = None


class SourceQueueUrls(SqsAnswer):
    queue_urls: list[str] = field(name="queueUrls")
    next_token: str | None = None


class QueueAttributes(SqsAnswer):
    attributes: dict[str, str] | None = None


class Tags(SqsAnswer):
    tags: dict[str, str] | None = None


class Sent(SqsAnswer):
    message_id: str
    md5_of_body: str = field(name="MD5OfMessageBody")
    md5_of_attributes: str | None = field(default=None, name="MD5OfMessageAttributes")
    md5_of_system_attributes: str | None = field(default=None, name="MD5OfMessageSystemAttributes")
    sequence_number: str | None = None


class SentEntry(Sent, kw_only=True):
    id: str


class FailedEntry(SqsAnswer):
    id: str
    sender_fault: bool
    code: str
    message: str


class DoneEntry(SqsAnswer):
    id: str


class SentBatch(SqsAnswer):
    """A list without entries is left out, as Amazon does; so in the next."""

    successful: list[SentEntry] = field(default_factory=list)
    failed: list[FailedEntry] = field(default_factory=list)


class DoneBatch(SqsAnswer):
    successful: list[DoneEntry] = field(default_factory=list)
    failed: list[FailedEntry] = field(default_factory=list)


class Message(SqsAnswer):
    message_id: str
    receipt_handle: str
    md5_of_body: str = field(name="MD5OfBody")
    body: str
    attributes: dict[str, str] | None = None
    md5_of_attributes: str | None = field(default=None, name="MD5OfMessageAttributes")
    message_attributes: MessageAttributes | None = None


class Messages(SqsAnswer):
    messages: list[Message] | None = None


class TaskStarted(SqsAnswer):
    task_handle: str


class TaskCancelled(SqsAnswer):
    moved: int = field(name="ApproximateNumberOfMessagesMoved")


class Task(SqsAnswer):
    status: str
    source_arn: str
    moved: int = field(name="ApproximateNumberOfMessagesMoved")
    started_timestamp: int
    task_handle: str | None = None
    destination_arn: str | None = None
    per_second: int | None = field(default=None, name="MaxNumberOfMessagesPerSecond")
    to_move: int | None = field(default=None, name="ApproximateNumberOfMessagesToMove")
    failure_reason: str | None = None


class Tasks(SqsAnswer):
    results: list[Task]
