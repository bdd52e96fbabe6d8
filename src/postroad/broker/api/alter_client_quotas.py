"""AlterClientQuotas (49), versions 0–1: quotas are set and removed, each entity's in one commit.

A quota holds on a node as soon as it has followed the coordination store, also for connections that are open.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.api.describe_client_quotas import CLIENT_ID, TYPES, USER, unknown_type
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasSecurity, HasTopics
from postroad.cluster.keys import QuotaEntity
from postroad.cluster.quotas import DEFAULT, alter_quota
from postroad.errors import ApiError, ClusterAuthorizationFailed, InvalidRequest
from postroad.security.resources import Operation
from postroad.wire.messages import alter_client_quotas as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.ALTER_CONFIGS)


class Uses(HasImage, HasSecurity, HasTopics, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    return _alter_all(node, call, codec.decode_request(call.body, call.version), call.version)


async def _alter_all(node: Uses, call: Call, request: codec.AlterClientQuotasRequest, version: int) -> bytes:
    results = []
    for entry in request.entries:
        result = _result(entry)
        try:
            await _alter(node, entry, request.validate_only)
        except ApiError as error:
            result.error_code, result.error_message = error.code, str(error)
        else:
            if not request.validate_only:
                node.security.note("quota altered", call.connection, **_facts(entry))
        results.append(result)
    return codec.encode_response(codec.AlterClientQuotasResponse(entries=results), version)


async def _alter(node: Uses, entry: codec.RequestEntryData, validate_only: bool) -> None:
    entity, changes = _entity(entry), _changes(entry)
    if validate_only:
        alter_quota(node.image, entity, changes)
        return
    await node.topics.decide(partial(alter_quota, entity=entity, changes=changes))


def _entity(entry: codec.RequestEntryData) -> QuotaEntity:
    parts: dict[str, str] = {}
    for each in entry.entity:
        if each.entity_type not in TYPES:
            raise unknown_type(each.entity_type)
        if each.entity_type in parts or each.entity_name == DEFAULT:
            raise InvalidRequest("An entity has one user and one client id at most, by name or default.")
        parts[each.entity_type] = DEFAULT if each.entity_name is None else each.entity_name
    return QuotaEntity(parts.get(USER), parts.get(CLIENT_ID))


def _changes(entry: codec.RequestEntryData) -> dict[str, float | None]:
    changes: dict[str, float | None] = {}
    for op in entry.ops:
        if op.key in changes:
            raise InvalidRequest(f"{op.key} is named twice.")
        changes[op.key] = None if op.remove else op.value
    return changes


def _facts(entry: codec.RequestEntryData) -> dict[str, object]:
    named = {each.entity_type: each.entity_name or "default" for each in entry.entity}
    return {"entity": named, "quotas": {op.key: None if op.remove else op.value for op in entry.ops}}


def _result(entry: codec.RequestEntryData) -> codec.ResponseEntryData:
    named = [codec.ResponseEntityData(each.entity_type, each.entity_name) for each in entry.entity]
    return codec.ResponseEntryData(entity=named)


def refuse(_: object, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    error, results = ClusterAuthorizationFailed(), []
    for entry in request.entries:
        result = _result(entry)
        result.error_code, result.error_message = error.code, str(error)
        results.append(result)
    return codec.encode_response(codec.AlterClientQuotasResponse(entries=results), call.version)
