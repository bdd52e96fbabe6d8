"""Answers as XML, for the query protocol.

Lists and maps are flat: each member of `Messages` is an element `Message` of its own, beside the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from xml.sax.saxutils import escape

from postroad.gateway.sqs.text import fit

NAMESPACE: Final = "http://queue.amazonaws.com/doc/2012-11-05/"

_HEAD: Final = '<?xml version="1.0"?>\n'
_LISTS: Final = {
    "Messages": "Message",
    "QueueUrls": "QueueUrl",
    "queueUrls": "QueueUrl",
    "Results": "ListMessageMoveTasksResultEntry",
    "Failed": "BatchResultErrorEntry",
}
MAPS: Final = {
    "Attributes": ("Attribute", "Name", "Value"),
    "MessageAttributes": ("MessageAttribute", "Name", "Value"),
    "Tags": ("Tag", "Key", "Value"),
}


def answer(action: str, members: Mapping[str, Any] | None, request_id: str) -> bytes:
    """With None the action has no result at all; an empty result is an element of its own, without which
    boto3 1.26 raises a KeyError."""
    result = ""
    if members is not None:
        content = "".join(_members(action, members))
        result = f"<{action}Result>{content}</{action}Result>" if content else f"<{action}Result/>"
    return (
        f'{_HEAD}<{action}Response xmlns="{NAMESPACE}">{result}'
        f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{action}Response>"
    ).encode()


def error(fault: str, code: str, text: str, request_id: str) -> bytes:
    return (
        f'{_HEAD}<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>{fault}</Type><Code>{_text(code)}</Code>'
        f"<Message>{_text(text)}</Message><Detail/></Error><RequestId>{request_id}</RequestId></ErrorResponse>"
    ).encode()


def _members(action: str, members: Mapping[str, Any]) -> Iterator[str]:
    for name, value in members.items():
        if name in MAPS and isinstance(value, dict):
            yield from _map(action, *MAPS[name], value)
        elif isinstance(value, list):
            element = f"{action}ResultEntry" if name == "Successful" else _LISTS[name]
            for each in value:
                yield _element(action, element, each)
        else:
            yield _element(action, name, value)


def _map(action: str, element: str, key: str, value: str, entries: Mapping[str, Any]) -> Iterator[str]:
    for name, content in entries.items():
        yield _element(action, element, {key: name, value: content})


def _element(action: str, name: str, value: Any) -> str:
    if isinstance(value, dict):
        content = "".join(_members(action, value))
    elif isinstance(value, bool):
        content = "true" if value else "false"
    else:
        content = _text(str(value))
    return f"<{name}>{content}</{name}>"


def _text(value: str) -> str:
    """A carriage return would be read as a line feed; what XML can't hold at all is replaced."""
    return escape(fit(value), {"\r": "&#13;"})
