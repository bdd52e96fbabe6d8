"""AWS JSON 1.0: the action in the header `X-Amz-Target`, everything else as JSON in the body."""

from __future__ import annotations

from typing import Final

import msgspec

from postroad.gateway.exchange import Head, Reply
from postroad.gateway.sqs.actions import ACTIONS, Action
from postroad.gateway.sqs.answers import SqsAnswer
from postroad.gateway.sqs.errors import SqsError
from postroad.gateway.sqs.protocol import Call, missing_in

TARGET: Final = "x-amz-target"
TARGET_PREFIX: Final = "AmazonSQS."
CONTENT_TYPE: Final = "application/x-amz-json-1.0"
REQUEST_ID: Final = "x-amzn-RequestId"
QUERY_ERROR: Final = "x-amzn-query-error"
TYPE_PREFIX: Final = "com.amazonaws.sqs#"

_encoder: Final = msgspec.json.Encoder()


def read(head: Head, body: bytes) -> Call:
    """Raises SqsError."""
    target = head.headers.get(TARGET, "")
    action = ACTIONS.get(target.removeprefix(TARGET_PREFIX))
    if action is None or not target.startswith(TARGET_PREFIX):
        raise SqsError("UnknownOperationException", f"There is no action {target[:100]!r}.", 404)
    try:
        return Call(action, action.decoder.decode(body))
    except (msgspec.ValidationError, UnicodeError) as error:
        raise _wrong(action, body, error) from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _unreadable(f"The request's body can't be read as JSON: {error}.") from None


def answer(action: Action, answered: SqsAnswer, request_id: str) -> Reply:
    headers = (("Content-Type", CONTENT_TYPE), (REQUEST_ID, request_id))
    return Reply(200, headers, _encoder.encode(answered), action.name)


def refuse(error: SqsError, request_id: str) -> Reply:
    headers = (
        ("Content-Type", CONTENT_TYPE),
        (REQUEST_ID, request_id),
        (QUERY_ERROR, f"{error.code};{error.fault}"),
    )
    body = _encoder.encode({"__type": TYPE_PREFIX + error.name, "message": error.text})
    return Reply(error.status, headers, body)


def _unreadable(text: str) -> SqsError:
    return SqsError("SerializationException", text)


def _wrong(action: Action, body: bytes, error: Exception) -> SqsError:
    """The body is read once more, without types, to find what is wrong with it."""
    try:
        members = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as unread:
        return _unreadable(f"The request's body can't be read as JSON: {unread}.")
    if not isinstance(members, dict):
        return _unreadable("The request's body is not a JSON object.")
    return missing_in(action, members) or _unreadable(str(error))
