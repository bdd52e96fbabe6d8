"""What each action is asked with: the members that SQS documents, by its names for them.

What must be there has no default; `protocol_json` and `protocol_query` tell callers what is missing. Members
that SQS does not know are passed over.
"""

from __future__ import annotations

from msgspec import Struct, field

Attributes = dict[str, str]


class MessageAttribute(Struct, rename="pascal", omit_defaults=True):
    """Also in answers. Lists are reserved by SQS and not supported there either."""

    data_type: str
    string_value: str | None = None
    binary_value: bytes | None = None


MessageAttributes = dict[str, MessageAttribute]


class OfQueue(Struct, rename="pascal", kw_only=True):
    """A request about one queue."""

    queue_url: str


# --- queues


class CreateQueue(Struct, rename="pascal"):
    queue_name: str
    attributes: Attributes | None = None
    tags: dict[str, str] | None = field(default=None, name="tags")


class DeleteQueue(OfQueue):
    pass


class PurgeQueue(OfQueue):
    pass


class GetQueueUrl(Struct, rename="pascal"):
    queue_name: str
    queue_owner_account: str | None = field(default=None, name="QueueOwnerAWSAccountId")


class ListQueues(Struct, rename="pascal"):
    queue_name_prefix: str | None = None
    max_results: int | None = None
    next_token: str | None = None


class GetQueueAttributes(OfQueue):
    attribute_names: list[str] | None = None


class SetQueueAttributes(OfQueue):
    attributes: Attributes


# --- tags and permissions


class ListQueueTags(OfQueue):
    pass


class TagQueue(OfQueue):
    tags: dict[str, str]


class UntagQueue(OfQueue):
    tag_keys: list[str]


class AddPermission(OfQueue):
    label: str
    accounts: list[str] = field(name="AWSAccountIds")
    actions: list[str]


class RemovePermission(OfQueue):
    label: str


# --- messages in


class Outgoing(Struct, rename="pascal", kw_only=True):
    """A message to be sent, alone or in a batch."""

    message_body: str
    delay_seconds: int | None = None
    message_attributes: MessageAttributes | None = None
    message_system_attributes: MessageAttributes | None = None
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessage(Outgoing):
    queue_url: str


class SendMessageEntry(Outgoing):
    id: str


class SendMessageBatch(OfQueue):
    entries: list[SendMessageEntry]


# --- messages out


class ReceiveMessage(OfQueue):
    attribute_names: list[str] | None = None
    message_system_attribute_names: list[str] | None = None
    message_attribute_names: list[str] | None = None
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None


class DeleteMessage(OfQueue):
    receipt_handle: str


class DeleteMessageEntry(Struct, rename="pascal"):
    id: str
    receipt_handle: str


class DeleteMessageBatch(OfQueue):
    entries: list[DeleteMessageEntry]


class ChangeMessageVisibility(OfQueue):
    receipt_handle: str
    visibility_timeout: int


class ChangeVisibilityEntry(Struct, rename="pascal"):
    id: str
    receipt_handle: str
    visibility_timeout: int | None = None


class ChangeMessageVisibilityBatch(OfQueue):
    entries: list[ChangeVisibilityEntry]


# --- dead letters


class ListDeadLetterSourceQueues(OfQueue):
    max_results: int | None = None
    next_token: str | None = None


class StartMessageMoveTask(Struct, rename="pascal"):
    source_arn: str
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None


class CancelMessageMoveTask(Struct, rename="pascal"):
    task_handle: str


class ListMessageMoveTasks(Struct, rename="pascal"):
    source_arn: str
    max_results: int | None = None
