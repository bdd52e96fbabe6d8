"""What SQS answers when it can't do what it was asked.

An error has a name (its shape in the service's model, in `__type` of a JSON answer), an older code (in XML
answers and in the header `x-amzn-query-error`, from where SDKs take `Error.Code`) and a text for people.
The JSON protocol came later than the codes, so some differ from the names.
"""

from __future__ import annotations

from typing import Final

from postroad.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    InvalidConfig,
    InvalidGroupId,
    InvalidTopic,
    MessageTooLarge,
    PolicyViolation,
    PostroadError,
    RecordListTooLarge,
    TopicAuthorizationFailed,
    TryAgain,
    UnknownTopicId,
    UnknownTopicOrPartition,
)

_PREFIX: Final = "AWS.SimpleQueueService."
_OLD_CODES: Final = {
    "QueueDoesNotExist": _PREFIX + "NonExistentQueue",
    "QueueNameExists": "QueueAlreadyExists",
    "InvalidParameterValueException": "InvalidParameterValue",
    "MissingRequiredParameterException": "MissingParameter",
    "AccessDeniedException": "AccessDenied",
    **{
        name: _PREFIX + name
        for name in (
            "BatchEntryIdsNotDistinct",
            "BatchRequestTooLong",
            "EmptyBatchRequest",
            "InvalidBatchEntryId",
            "MessageNotInflight",
            "PurgeQueueInProgress",
            "QueueDeletedRecently",
            "TooManyEntriesInBatchRequest",
            "UnsupportedOperation",
        )
    },
}


class SqsError(Exception):
    """Raised by actions, answered by the protocol that the request came in."""

    def __init__(self, name: str, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.name = name
        self.text = text
        self.status = status

    @property
    def code(self) -> str:
        return _OLD_CODES.get(self.name, self.name)

    @property
    def fault(self) -> str:
        return "Sender" if self.status < 500 else "Receiver"


def no_such_queue() -> SqsError:
    return SqsError("QueueDoesNotExist", "The specified queue does not exist.")


def invalid(parameter: str, value: object, reason: str) -> SqsError:
    text = f"Value {value} for parameter {parameter} is invalid. Reason: {reason}"
    return SqsError("InvalidParameterValueException", text)


def missing(parameter: str) -> SqsError:
    return SqsError(
        "MissingRequiredParameterException", f"The request must contain the parameter {parameter}."
    )


def unsupported(text: str) -> SqsError:
    return SqsError("UnsupportedOperation", text)


def wrong_receipt(handle: str) -> SqsError:
    text = f'The input receipt handle "{handle[:100]}" is not a valid receipt handle.'
    return SqsError("ReceiptHandleIsInvalid", text)


def from_postroad(error: PostroadError) -> SqsError:
    """What a node's error is in the words of SQS."""
    if isinstance(error, (GroupIdNotFound, UnknownTopicOrPartition, UnknownTopicId)):
        return no_such_queue()
    if isinstance(error, (MessageTooLarge, RecordListTooLarge)):
        return invalid("MessageBody", "…", "The message is larger than its topic accepts.")
    if isinstance(error, (InvalidConfig, PolicyViolation)):
        return SqsError("InvalidAttributeValue", str(error))
    if isinstance(error, (InvalidTopic, InvalidGroupId)):
        return SqsError("InvalidParameterValueException", str(error))
    if isinstance(error, (TopicAuthorizationFailed, GroupAuthorizationFailed, ClusterAuthorizationFailed)):
        return SqsError("AccessDeniedException", str(error), 403)
    if isinstance(error, TryAgain):
        return SqsError("ServiceUnavailable", str(error), 503)
    return SqsError("InternalFailure", str(error), 500)
