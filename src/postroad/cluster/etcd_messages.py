"""What etcd's JSON gateway says: the fields that we read, and the requests that we make.

Bytes are base64 and 64-bit numbers are text, in both directions. A field that is zero, false or empty is
left out of an answer, so each has a default here. Fields that we don't read are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from postroad.cluster.store import Compare, Operation, Put

A = TypeVar("A")

Request: TypeAlias = dict[str, Any]

# Codes of gRPC.
NOT_FOUND: Final = 5
RESOURCE_EXHAUSTED: Final = 8
OUT_OF_RANGE: Final = 11
FINAL_CODES: Final = frozenset({3, NOT_FOUND, 7, RESOURCE_EXHAUSTED, OUT_OF_RANGE, 16})  # others may pass


class Header(msgspec.Struct):
    revision: int = 0


class KeyValue(msgspec.Struct):
    key: bytes = b""
    value: bytes = b""
    mod_revision: int = 0


class RangeAnswer(msgspec.Struct):
    header: Header
    kvs: list[KeyValue] = []
    more: bool = False


class DeletedRange(msgspec.Struct):
    deleted: int = 0


class OperationAnswer(msgspec.Struct):
    response_put: dict[str, Any] | None = None
    response_delete_range: DeletedRange | None = None

    @property
    def changed(self) -> bool:
        """True if the operation had an effect."""
        deleted = self.response_delete_range
        return self.response_put is not None or (deleted is not None and deleted.deleted > 0)


class CommitAnswer(msgspec.Struct):
    header: Header
    succeeded: bool = False
    responses: list[OperationAnswer] = []


class GrantAnswer(msgspec.Struct):
    header: Header
    id: int = msgspec.field(name="ID", default=0)


class RevokeAnswer(msgspec.Struct):
    header: Header


class KeptAlive(msgspec.Struct):
    header: Header
    ttl: int = msgspec.field(name="TTL", default=0)  # 0: there is no such lease


class KeepAliveAnswer(msgspec.Struct):
    result: KeptAlive


class WatchedEvent(msgspec.Struct):
    kv: KeyValue
    type: str = "PUT"


class Watched(msgspec.Struct):
    header: Header
    created: bool = False
    canceled: bool = False
    cancel_reason: str = ""
    compact_revision: int = 0
    events: list[WatchedEvent] = []


class WatchAnswer(msgspec.Struct):
    result: Watched


class Refusal(msgspec.Struct):
    message: str
    code: int = 2


def decode(data: bytes, answer: type[A]) -> A:
    """Read one answer. Raises msgspec.MsgspecError if it is something else."""
    return msgspec.json.decode(data, type=answer, strict=False)


# --- requests


def get(key: bytes) -> Request:
    return {"key": key}


def page(start: bytes, end: bytes, limit: int, revision: int) -> Request:
    """The first keys from `start` on and before `end`, as they stood at the revision (0: as they are now)."""
    return {"key": start, "range_end": end, "limit": limit, "revision": str(revision)}


def commit(prefix: bytes, compares: Sequence[Compare], operations: Sequence[Operation]) -> Request:
    return {
        "compare": [
            {
                "key": prefix + key.encode(),
                "target": "MOD",
                "result": "EQUAL",
                "mod_revision": str(revision),  # 0 is what an absent key has
            }
            for key, revision in compares
        ],
        "success": [_operation(prefix, operation) for operation in operations],
    }


def _operation(prefix: bytes, operation: Operation) -> Request:
    key = prefix + operation.key.encode()
    if isinstance(operation, Put):
        return {"request_put": {"key": key, "value": operation.value, "lease": str(operation.lease)}}
    return {"request_delete_range": {"key": key}}


def grant(seconds: int) -> Request:
    return {"TTL": str(seconds)}


def lease(number: int) -> Request:
    return {"ID": str(number)}


def watch(start: bytes, end: bytes, revision: int) -> Request:
    """Everything that happens to keys from `start` on and before `end`, from this revision on.

    It does not ask for fragments, so events of one revision come in one answer.
    """
    return {"create_request": {"key": start, "range_end": end, "start_revision": str(revision)}}
