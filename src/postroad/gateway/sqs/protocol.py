"""What the two protocols have in common: a request is read, an answer or an error is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from postroad.gateway.exchange import Head, Reply
from postroad.gateway.sqs.actions import Action
from postroad.gateway.sqs.answers import SqsAnswer
from postroad.gateway.sqs.errors import SqsError, missing


class Call(NamedTuple):
    action: Action
    request: Struct


class Dialect(Protocol):
    """The modules `protocol_json` and `protocol_query`."""

    def read(self, head: Head, body: bytes, /) -> Call:
        """Raises SqsError."""

    def answer(self, action: Action, answered: SqsAnswer, request_id: str, /) -> Reply: ...

    def refuse(self, error: SqsError, request_id: str, /) -> Reply: ...


def missing_in(action: Action, members: Mapping[str, Any]) -> SqsError | None:
    """What is missing in a request that could not be read: SQS says that first."""
    for member in msgspec.structs.fields(action.request):
        if member.required and members.get(member.encode_name) is None:
            return missing(member.encode_name)
    return None
