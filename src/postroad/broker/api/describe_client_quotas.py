"""DescribeClientQuotas (48), versions 0–1: what users and client ids may take in a second."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage
from postroad.cluster.keys import QuotaEntity
from postroad.cluster.quotas import DEFAULT
from postroad.errors import ApiError, ClusterAuthorizationFailed, InvalidRequest
from postroad.security.resources import Operation
from postroad.wire.messages import describe_client_quotas as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.DESCRIBE_CONFIGS)

EXACT, OF_DEFAULT, ANY = 0, 1, 2  # Kafka's match types
USER, CLIENT_ID = "user", "client-id"
TYPES: Final = (USER, CLIENT_ID)


class Uses(HasImage, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    try:
        _check(request.components)
    except InvalidRequest as error:
        return _refusal(error, call.version)
    entries = [
        codec.EntryData(_named(entity), [codec.ValueData(*each) for each in sorted(limits.items())])
        for entity, limits in sorted(node.image.quotas.items(), key=lambda item: str(item[0]))
        if _matches(entity, request.components, request.strict)
    ]
    return codec.encode_response(codec.DescribeClientQuotasResponse(entries=entries), call.version)


def _check(components: list[codec.ComponentData]) -> None:
    types = [each.entity_type for each in components]
    if len(set(types)) < len(types):
        raise InvalidRequest("An entity has one user and one client id at most.")
    for each in components:
        if each.entity_type not in TYPES:
            raise unknown_type(each.entity_type)
        is_named = each.match is not None
        if each.match_type not in (EXACT, OF_DEFAULT, ANY) or is_named != (each.match_type == EXACT):
            raise InvalidRequest("A component is matched by a name (0), by default (1) or by any (2).")


def unknown_type(name: str) -> InvalidRequest:
    return InvalidRequest(f"Quotas are of {' and '.join(TYPES)}; there are none by {name!r}.")


def _matches(entity: QuotaEntity, components: list[codec.ComponentData], strict: bool) -> bool:
    parts = {USER: entity.user, CLIENT_ID: entity.client}
    for each in components:
        part = parts.pop(each.entity_type)
        if part is None:
            return False
        if each.match_type != ANY and part != (DEFAULT if each.match_type == OF_DEFAULT else each.match):
            return False
    return not strict or not any(part is not None for part in parts.values())


def _named(entity: QuotaEntity) -> list[codec.EntityData]:
    """The default has no name."""
    parts = zip(TYPES, entity, strict=True)
    return [codec.EntityData(kind, part or None) for kind, part in parts if part is not None]


def refuse(_: object, call: Call) -> Result:
    return _refusal(ClusterAuthorizationFailed(), call.version)


def _refusal(error: ApiError, version: int) -> bytes:
    response = codec.DescribeClientQuotasResponse(error_code=error.code, error_message=str(error))
    return codec.encode_response(response, version)
