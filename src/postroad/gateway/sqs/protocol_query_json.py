"""The query protocol for those who say `Accept: application/json`: a form in, and what would be XML as JSON.

Amazon's servers do it, though no SDK asks for it. Maps are lists of pairs, and two lists begin in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from postroad.gateway.exchange import Head, Reply
from postroad.gateway.sqs import protocol_query
from postroad.gateway.sqs.actions import Action
from postroad.gateway.sqs.answers import SqsAnswer
from postroad.gateway.sqs.errors import SqsError
from postroad.gateway.sqs.xml import MAPS

CONTENT_TYPE: Final = "application/json"

_HEADERS: Final = (("Content-Type", CONTENT_TYPE),)
_LISTS: Final = {"Messages": "messages", "QueueUrls": "queueUrls"}

read = protocol_query.read


def is_wanted(head: Head) -> bool:
    """JSON and nothing else: browsers accept anything."""
    return head.headers.get("accept", "").strip() == CONTENT_TYPE


def answer(action: Action, answered: SqsAnswer, request_id: str) -> Reply:
    said: dict[str, Any] = {"ResponseMetadata": {"RequestId": request_id}}
    members = protocol_query.result_of(answered)
    if members is not None:
        said[f"{action.name}Result"] = _listed(members)
    return Reply(200, _HEADERS, msgspec.json.encode({f"{action.name}Response": said}), action.name)


def refuse(error: SqsError, request_id: str) -> Reply:
    if error.name == protocol_query.UNKNOWN_OPERATION:
        return protocol_query.refuse(error, request_id)
    text = protocol_query.text_of(error)
    said = {"Type": error.fault, "Code": error.code, "Message": text, "Detail": None}
    return Reply(error.status, _HEADERS, msgspec.json.encode({"Error": said, "RequestId": request_id}))


def _listed(members: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in members.items():
        if name in MAPS and isinstance(value, dict):
            _, key, content = MAPS[name]
            found[name] = [{key: each, content: given} for each, given in value.items()]
        elif isinstance(value, list):
            entries = [_listed(each) if isinstance(each, dict) else each for each in value]
            found[_LISTS.get(name, name)] = entries
        else:
            found[name] = value
    return found
