"""Quotas of users and client ids, as an administrator sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from postroad.client.client import Client
from postroad.errors import by_code
from postroad.wire.messages import alter_client_quotas, describe_client_quotas

PRODUCE: Final = "producer_byte_rate"
FETCH: Final = "consumer_byte_rate"
REQUESTS: Final = "request_percentage"
USER, CLIENT_ID = "user", "client-id"


class Quota(NamedTuple):
    """None: the quota does not say; "": whoever has none of his own."""

    user: str | None
    client_id: str | None
    limits: Mapping[str, float]


async def list_quotas(client: Client) -> list[Quota]:
    answer = await client.ask(describe_client_quotas, describe_client_quotas.DescribeClientQuotasRequest())
    if answer.error_code:
        raise by_code(answer.error_code, answer.error_message)
    found = []
    for entry in answer.entries or ():
        named = {each.entity_type: each.entity_name or "" for each in entry.entity}
        limits = {each.key: each.value for each in entry.values}
        found.append(Quota(named.get(USER), named.get(CLIENT_ID), limits))
    return found


async def set_quota(client: Client, quota: Quota, removed: tuple[str, ...] = ()) -> None:
    """These limits hold from now on, and those that are removed no more; others stay."""
    codec = alter_client_quotas
    entity = [
        codec.RequestEntityData(kind, name or None)
        for kind, name in ((USER, quota.user), (CLIENT_ID, quota.client_id))
        if name is not None
    ]
    operations = [codec.OpData(name, value) for name, value in quota.limits.items()]
    operations += [codec.OpData(name, remove=True) for name in removed]
    request = codec.AlterClientQuotasRequest([codec.RequestEntryData(entity, operations)])
    answer = await client.ask(codec, request)
    for result in answer.entries:
        if result.error_code:
            raise by_code(result.error_code, result.error_message)
