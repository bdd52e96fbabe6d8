"""Access keys of a cluster's users, as an administrator sees them."""

from __future__ import annotations

from postroad.client.client import Client
from postroad.errors import by_code
from postroad.wire import access_keys as api
from postroad.wire.access_keys import AccessKey


async def list_keys(client: Client, user: str | None = None) -> list[AccessKey]:
    return await _order(client, api.ListKeys(user))


async def create(client: Client, user: str) -> AccessKey:
    """A new key of the user, with its secret. One try: a second would make a second key."""
    (made,) = await _order(client, api.CreateKey(user), once=True)
    return made


async def enable(client: Client, key_id: str, *, enabled: bool) -> None:
    await _order(client, api.EnableKey(key_id, enabled))


async def delete(client: Client, key_id: str) -> None:
    await _order(client, api.DeleteKey(key_id), once=True)


async def _order(client: Client, order: api.AnyOrder, once: bool = False) -> list[AccessKey]:
    async def attempt() -> list[AccessKey]:
        answer = await client.call(api, order, version=api.MAX_VERSION)
        if answer.error_code:
            raise by_code(answer.error_code, answer.error_message)
        return list(answer.keys)

    return await attempt() if once else await client.retry(attempt)
