"""The query protocol of SDKs from before late 2023: a form in, XML out.

    Action=SendMessage&QueueUrl=…&MessageBody=…&MessageAttribute.1.Name=a&MessageAttribute.1.Value.DataType=…

Lists and maps are flat: members are numbered from 1, and have names in the singular. `_MEMBERS` says which
JSON members they are, so that the requests are those of the JSON protocol.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from postroad.gateway.exchange import Head, Reply
from postroad.gateway.sqs import xml
from postroad.gateway.sqs.actions import ACTIONS, Action
from postroad.gateway.sqs.answers import Nothing, SqsAnswer
from postroad.gateway.sqs.errors import SqsError, missing
from postroad.gateway.sqs.protocol import Call, missing_in

CONTENT_TYPE: Final = "text/xml"
UNKNOWN_OPERATION: Final = "UnknownOperationException"
FIELDS_MAX: Final = 2000  # ten entries with ten attributes of four fields are 450
DEPTH_MAX: Final = 8
INDEX_DIGITS_MAX: Final = 5

_HEADERS: Final = (("Content-Type", CONTENT_TYPE),)
_NOT_OF_A_QUEUE: Final = frozenset({"CreateQueue", "ListQueues"})
_QUEUE_PATH: Final = re.compile(r"/[0-9]{12}/[^/]+$")


class Member(NamedTuple):
    """Where a numbered member belongs; with `key` it is a map's entry, and `value` is where its value is."""

    field: str
    key: str = ""
    value: str = ""


_MEMBERS: Final[Mapping[str, Member]] = {
    "Attribute": Member("Attributes", "Name", "Value"),
    "Tag": Member("Tags", "Key", "Value"),
    "MessageAttribute": Member("MessageAttributes", "Name", "Value"),
    "MessageSystemAttribute": Member("MessageSystemAttributes", "Name", "Value"),
    "AttributeName": Member("AttributeNames"),
    "MessageAttributeName": Member("MessageAttributeNames"),
    "MessageSystemAttributeName": Member("MessageSystemAttributeNames"),
    "TagKey": Member("TagKeys"),
    "AWSAccountId": Member("AWSAccountIds"),
    "ActionName": Member("Actions"),
    "SendMessageBatchRequestEntry": Member("Entries"),
    "DeleteMessageBatchRequestEntry": Member("Entries"),
    "ChangeMessageVisibilityBatchRequestEntry": Member("Entries"),
}

_EMPTY: Final = {
    **_MEMBERS,
    **{member.field: member for member in _MEMBERS.values()},
}
"""What an empty list or map may be called: SDKs write `MessageAttributeNames=`, the JSON member's name."""

Tree = dict[str, Any]


def read(head: Head, body: bytes) -> Call:
    """Raises SqsError."""
    path, _, query = head.target.partition("?")
    form = _form(query, body if head.method == "POST" else b"")
    name = form.pop("Action", "")
    is_queue = _QUEUE_PATH.search(path) is not None
    if not name and is_queue and head.method == "GET":
        raise SqsError(UNKNOWN_OPERATION, "The request must contain the parameter Action.", 404)
    if not name:
        raise SqsError("MissingAction", "The request must contain the parameter Action.")
    action = ACTIONS.get(name)
    if action is None or (is_queue and name in _NOT_OF_A_QUEUE):
        raise SqsError("InvalidAction", f"The action {name[:100]} is not valid for this endpoint.")
    if is_queue:  # SDKs of old addressed the queue itself, and did not say it again
        form.setdefault("QueueUrl", path)
    members = _members(_tree(form))
    if action.name == "CreateQueue" and "Tags" in members:
        members["tags"] = members.pop("Tags")
    try:
        return Call(action, msgspec.convert(members, action.request, strict=False))
    except (msgspec.ValidationError, RecursionError) as error:
        raise missing_in(action, members) or _wrong_value(error) from None


def answer(action: Action, answered: SqsAnswer, request_id: str) -> Reply:
    body = xml.answer(action.name, result_of(answered), request_id)
    return Reply(200, _HEADERS, body, action.name)


def refuse(error: SqsError, request_id: str) -> Reply:
    if error.name == UNKNOWN_OPERATION:
        return Reply(error.status, _HEADERS, b"<UnknownOperationException/>\n")
    return Reply(error.status, _HEADERS, xml.error(error.fault, error.code, text_of(error), request_id))


def result_of(answered: SqsAnswer) -> Tree | None:
    return None if isinstance(answered, Nothing) else msgspec.to_builtins(answered)


def text_of(error: SqsError) -> str:
    if error.name == "QueueDoesNotExist":
        return "The specified queue does not exist for this wsdl version."
    return error.text


def _form(query: str, body: bytes) -> dict[str, str]:
    """The fields of URL and body. A field that is given twice is refused: two readers might differ."""
    try:
        fields = _fields(query.encode())  # what was no UTF-8 came with surrogates, and is refused
        fields += _fields(body)
    except ValueError as error:
        raise _malformed(f"The form can't be read: {error}.") from None
    form: dict[str, str] = {}
    for name, value in fields:
        if name in form:
            raise _malformed(f"The parameter {name[:100]!r} is given twice.")
        form[name] = value
    return form


def _fields(form: bytes) -> list[tuple[str, str]]:
    """Raises ValueError, also for what is no UTF-8: a message must not be changed on its way."""
    return parse_qsl(form.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")


def _tree(form: Mapping[str, str]) -> Tree:
    """`A.1.Name=x` as {"A": {"1": {"Name": "x"}}}."""
    tree: Tree = {}
    for path, value in form.items():
        steps = path.split(".")
        if len(steps) > DEPTH_MAX:
            raise _malformed(f"The parameter {path[:100]} is too deep.")
        branch = tree
        for step in steps[:-1]:
            branch = branch.setdefault(step, {})
            if not isinstance(branch, dict):
                raise _malformed(f"The parameter {path[:100]} contradicts another one.")
        if isinstance(branch.get(steps[-1]), dict):
            raise _malformed(f"The parameter {path[:100]} contradicts another one.")
        branch[steps[-1]] = value
    return tree


def _members(tree: Tree) -> Tree:
    members: Tree = {}
    for name, value in tree.items():
        member = _MEMBERS.get(name)
        if value == "" and name in _EMPTY:
            members[_EMPTY[name].field] = {} if _EMPTY[name].key else []
        elif member is None or not isinstance(value, dict):
            members[name] = value
        elif member.key:
            members[member.field] = dict(_entry(member, each) for each in _numbered(name, value))
        else:
            members[member.field] = [
                _members(each) if isinstance(each, dict) else each for each in _numbered(name, value)
            ]
    return members


def _numbered(name: str, tree: Tree) -> list[Any]:
    for index in tree:
        if not (index.isascii() and index.isdecimal() and len(index) <= INDEX_DIGITS_MAX):
            raise _malformed(f"The parameter {name}.{index[:100]} has no number.")
    return [tree[index] for index in sorted(tree, key=int)]


def _entry(member: Member, tree: Any) -> tuple[str, Any]:
    if not isinstance(tree, dict) or not isinstance(tree.get(member.key), str):
        raise missing(f"{member.field}.{member.key}")
    return tree[member.key], tree.get(member.value, "")


def _malformed(text: str) -> SqsError:
    return SqsError("MalformedQueryString", text)


def _wrong_value(error: Exception) -> SqsError:
    return SqsError("InvalidParameterValueException", f"The value of a parameter is invalid: {error}.")
