"""Frames as JSON: subprotocol `postroad.v1.json`, in frames of text.

From the client:

    {"type": "credit", "messages": 100}
    {"type": "accept", "ids": [1, 2]}
    {"type": "release", "ids": [3], "delay_ms": 5000}
    {"type": "reject", "ids": [4], "reason": "no such customer"}
    {"type": "extend", "ids": [5], "lock_ms": 60000, "request": 17}
    {"type": "transaction", "ids": [6], "publish": [{"topic": …, "value": …}], "request": 18}

`receipts` may stand in place of `ids` or beside them. To the client:

    {"type": "message", "id": 1, "topic": …}                 as in `message_json`
    {"type": "messages", "messages": [{"id": 1, …}, …]}      if batches were asked for
    {"type": "settled", "request": 17, "failed": [{"error": …, "ids": […], "receipts": […]}]}
    {"type": "committed", "request": 18, "messages": [{"id": …, "topic": …, "partition": …, "offset": …}]}
    {"type": "refused", "request": 18, "problem": {"type": …, "title": …, "status": …, "detail": …}}
    {"type": "expired", "ids": [6]}
    {"type": "error", "code": 4000, "error": …}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from postroad.client.share_message import AckType
from postroad.gateway.push.frames import (
    CREDIT_MAX,
    IDS_MAX,
    MS_MAX,
    REASON_MAX,
    TAKEN_MAX,
    BadFrame,
    Credit,
    Failures,
    NewTransaction,
    Outgoing,
    Settlement,
)
from postroad.gateway.push.message_json import MessageJson, fields_of
from postroad.gateway.rest.problems import Problem
from postroad.gateway.rest.publish import MESSAGES_MAX, Published
from postroad.gateway.rest.transactions import MessageToTopic

SUBPROTOCOL: Final = "postroad.v1.json"

_Ids = Annotated[list[int], Meta(max_length=IDS_MAX)]
_Taken = Annotated[list[int], Meta(max_length=TAKEN_MAX)]
_Texts = Annotated[list[str], Meta(max_length=IDS_MAX)]
_Request = Annotated[int, Meta(ge=0, lt=1 << 32)]
_Ms = Annotated[int, Meta(ge=0, le=MS_MAX)]
_Reason = Annotated[str, Meta(max_length=REASON_MAX)]


class _Credit(Struct, tag_field="type", tag="credit", forbid_unknown_fields=True):
    messages: Annotated[int, Meta(ge=1, le=CREDIT_MAX)]


class _Said(Struct, forbid_unknown_fields=True):
    ids: _Ids = []
    receipts: _Texts = []
    request: _Request | None = None


class _Accept(_Said, tag_field="type", tag="accept"):
    pass


class _Reject(_Said, tag_field="type", tag="reject"):
    reason: _Reason = ""


class _Release(_Said, tag_field="type", tag="release"):
    delay_ms: _Ms | None = None


class _Extend(_Said, tag_field="type", tag="extend"):
    lock_ms: _Ms | None = None


class _Transaction(Struct, tag_field="type", tag="transaction", forbid_unknown_fields=True):
    request: _Request
    ids: _Taken = []
    receipts: Annotated[list[str], Meta(max_length=TAKEN_MAX)] = []
    publish: Annotated[list[MessageToTopic], Meta(max_length=MESSAGES_MAX)] = []


class _Failed(Struct, omit_defaults=True):
    error: str
    ids: Sequence[int] = ()
    receipts: Sequence[str] = ()


_ACKNOWLEDGEMENTS: Final[dict[type[_Said], AckType]] = {
    _Accept: AckType.ACCEPT,
    _Reject: AckType.REJECT,
    _Release: AckType.RELEASE,
    _Extend: AckType.RENEW,
}


class Message(MessageJson, tag_field="type", tag="message"):
    """One message in a frame of its own."""


class JsonFormat:
    """`batch`: the most messages in one frame; with 1 each has a frame of its own kind."""

    subprotocol = SUBPROTOCOL
    is_text = True

    def __init__(self, batch: int) -> None:
        self._batched = batch > 1
        self._encode = msgspec.json.Encoder().encode
        self._decode = msgspec.json.Decoder(
            _Credit | _Accept | _Reject | _Release | _Extend | _Transaction
        ).decode

    def read(self, frame: str | bytes) -> Credit | Settlement | NewTransaction:
        if not isinstance(frame, str):
            raise BadFrame(f"Frames of {SUBPROTOCOL} are text; this one is binary.")
        try:
            said = self._decode(frame)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadFrame(f"The frame can't be read: {error}") from None
        if isinstance(said, _Credit):
            return Credit(said.messages)
        if isinstance(said, _Transaction):
            return NewTransaction(said.request, said.ids, said.receipts, said.publish)
        delay_ms = said.delay_ms if isinstance(said, _Release) else None
        lock_ms = said.lock_ms if isinstance(said, _Extend) else None
        reason = said.reason if isinstance(said, _Reject) else ""
        type_ = _ACKNOWLEDGEMENTS[type(said)]
        return Settlement(type_, said.ids, said.receipts, said.request, lock_ms, delay_ms, reason)

    def messages(self, outgoing: Sequence[Outgoing]) -> bytes:
        if not self._batched:
            (only,) = outgoing
            return self._encode(Message(*fields_of(only.message), only.id, only.receipt))
        written = [MessageJson(*fields_of(each.message), each.id, each.receipt) for each in outgoing]
        return self._encode({"type": "messages", "messages": written})

    def settled(self, request: int | None, failures: Failures) -> bytes:
        said: dict[str, Any] = {"type": "settled"}
        if request is not None:
            said["request"] = request
        said["failed"] = [_Failed(text, ids, receipts) for text, (ids, receipts) in failures.items()]
        return self._encode(said)

    def committed(self, request: int, published: Sequence[Published]) -> bytes:
        messages = [
            {"id": each.id, "topic": each.topic, "partition": each.partition, "offset": each.offset}
            for each in published
        ]
        return self._encode({"type": "committed", "request": request, "messages": messages})

    def refused(self, request: int, problem: Problem) -> bytes:
        return self._encode({"type": "refused", "request": request, "problem": problem})

    def expired(self, ids: Sequence[int]) -> bytes:
        return self._encode({"type": "expired", "ids": ids})

    def error(self, code: int, text: str) -> bytes:
        return self._encode({"type": "error", "code": code, "error": text})
