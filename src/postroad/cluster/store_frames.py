"""What a store server and its clients say to each other, as frames over a Unix socket.

A frame is the length of what follows (4 bytes, big endian) and a message in MessagePack. Clients send calls:

    [id, method, [arguments …]]      the methods of the Store port; operations are [key, value or nil, lease]

The server answers each call with one reply, in any order; only a watch is answered by many, all with its id,
and has its connection to itself.

    [id, "", "", result]             the result of the method; for a watch, the events of one revision
    [id, error, text, nil]           the name of the error that the method raised, and its text

Both sides are of the same version: they are processes of one `postroad serve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec.msgpack import Decoder

from postroad.cluster.store import Delete, Operation, Put
from postroad.errors import HistoryCompacted, LeaseLost, PostroadError, StorageFailed, StoreUnavailable

T = TypeVar("T")

LENGTH_BYTES: Final = 4
FRAME_BYTES_MAX: Final = 256 * 1024 * 1024  # a list of a whole store; ten thousand topics are a few MiB

ERRORS: Final = {error.__name__: error for error in (HistoryCompacted, LeaseLost, StorageFailed)}

SentOperation: TypeAlias = tuple[str, bytes | None, int]


class Call(msgspec.Struct, array_like=True):
    id: int
    method: str
    arguments: msgspec.Raw


class Reply(msgspec.Struct, array_like=True):
    id: int
    error: str  # the name of its class; empty: there is a result
    text: str
    result: msgspec.Raw


def frame_of_call(number: int, method: str, arguments: Sequence[Any]) -> bytes:
    return _frame(Call(number, method, _raw(arguments)))


def frame_of_result(number: int, result: Any) -> bytes:
    return _frame(Reply(number, "", "", _raw(result)))


def frame_of_error(number: int, error: PostroadError) -> bytes:
    return _frame(Reply(number, type(error).__name__, str(error), _raw(None)))


def decode(data: bytes, message: type[T]) -> T:
    return msgspec.msgpack.decode(data, type=message)


def result_of(reply: Reply, decoder: Decoder[T]) -> T:
    """The result of a call. Raises what the call raised."""
    if reply.error:
        raise ERRORS.get(reply.error, StoreUnavailable)(reply.text)
    return decoder.decode(reply.result)


def length_of(head: bytes) -> int:
    """The length that a frame's head tells of the rest."""
    length = int.from_bytes(head, "big")
    assert length <= FRAME_BYTES_MAX, f"a frame of {length} bytes"
    return length


def sent_operations(operations: Sequence[Operation]) -> list[SentOperation]:
    return [
        (operation.key, operation.value, operation.lease)
        if isinstance(operation, Put)
        else (operation.key, None, 0)
        for operation in operations
    ]


def received_operations(sent: Sequence[SentOperation]) -> list[Operation]:
    return [Delete(key) if value is None else Put(key, value, lease) for key, value, lease in sent]


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(value))


def _frame(message: Call | Reply) -> bytes:
    body = msgspec.msgpack.encode(message)
    assert len(body) <= FRAME_BYTES_MAX, f"a frame of {len(body)} bytes"
    return len(body).to_bytes(LENGTH_BYTES, "big") + body
