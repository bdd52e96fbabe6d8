"""Transactions in binary frames; `binary_frames` has their layout."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from struct import Struct
from typing import Final

import msgspec

from postroad.gateway.push.frames import TAKEN_MAX, BadFrame, NewTransaction
from postroad.gateway.rest.content import Base64, Bytes
from postroad.gateway.rest.problems import Problem
from postroad.gateway.rest.publish import MESSAGES_MAX, Published
from postroad.gateway.rest.transactions import MessageToTopic

TRANSACTION: Final = 6
COMMITTED: Final = 0x14
REFUSED: Final = 0x15

_HEAD: Final = Struct(">BI")
_COUNT: Final = Struct(">I")
_ID: Final = Struct(">Q")
_SHORT: Final = Struct(">H")
_INT: Final = Struct(">i")
_WHERE: Final = Struct(">iq")
_STATUS: Final = Struct(">BIH")
_NOWHERE: Final = -1
_HEADERS_MAX: Final = 10_000


class _Reader:
    """Reads one frame from its beginning on. What is not there raises struct.error, or BadFrame."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._at = 0

    def number(self, layout: Struct) -> int:
        (value,) = layout.unpack_from(self._frame, self._at)
        self._at += layout.size
        return int(value)

    def count(self, most: int) -> int:
        value = self.number(_COUNT)
        if value > most:
            raise BadFrame(f"A transaction names at most {most:,} of these, not {value:,}.")
        return value

    def data(self, length: int) -> bytes:
        end = self._at + length
        if end > len(self._frame):
            raise BadFrame("The frame ends within a field.")
        self._at, found = end, self._frame[self._at : end]
        return found

    def nullable(self) -> Bytes:
        length = self.number(_INT)
        if length < _NOWHERE:
            raise BadFrame(f"{length} is no length.")
        return None if length == _NOWHERE else Base64(base64.b64encode(self.data(length)).decode())

    def text(self, length: int) -> str:
        try:
            return self.data(length).decode()
        except UnicodeDecodeError:
            raise BadFrame("A name or a receipt is not UTF-8.") from None

    def end(self) -> None:
        if self._at != len(self._frame):
            raise BadFrame("The frame goes on behind its last message.")


def read_transaction(frame: bytes) -> NewTransaction:
    """Raises BadFrame, and struct.error for one that is too short."""
    reader = _Reader(frame)
    reader.data(1)
    request = reader.number(_COUNT)
    ids = [reader.number(_ID) for _ in range(reader.count(TAKEN_MAX))]
    receipts = [reader.text(reader.number(_SHORT)) for _ in range(reader.count(TAKEN_MAX))]
    publish = [_read_message(reader) for _ in range(reader.count(MESSAGES_MAX))]
    reader.end()
    return NewTransaction(request, ids, receipts, publish)


def _read_message(reader: _Reader) -> MessageToTopic:
    topic, partition = reader.text(reader.number(_SHORT)), reader.number(_INT)
    key, value = reader.nullable(), reader.nullable()
    headers = [
        (reader.text(reader.number(_COUNT)), reader.nullable()) for _ in range(reader.count(_HEADERS_MAX))
    ]
    given = {
        "topic": topic,
        "value": msgspec.Raw(msgspec.json.encode(value)),
        "key": msgspec.to_builtins(key),
        "headers": msgspec.to_builtins(headers),
    }
    if partition != _NOWHERE:
        given["partition"] = partition
    try:
        return msgspec.convert(given, MessageToTopic)
    except msgspec.ValidationError as error:
        raise BadFrame(f"A message can't be published: {error}") from None


def write_committed(request: int, published: Sequence[Published]) -> bytes:
    parts = [_HEAD.pack(COMMITTED, request)]
    for each in published:
        offset = _NOWHERE if each.offset is None else each.offset
        parts.append(_WHERE.pack(each.partition or 0, offset))
    return b"".join(parts)


def write_refused(request: int, problem: Problem) -> bytes:
    text = problem.detail or problem.title
    return _STATUS.pack(REFUSED, request, problem.status) + text.encode()
