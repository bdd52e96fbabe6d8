"""A coordination store in front of another one, to be inherited by those that fail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from postroad.cluster.store import Compare, Events, Operation, Snapshot, Store, StoreEntry


class StoreBehind:
    """The Store port, on a real store; tests change what they need."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def get(self, key: str) -> StoreEntry | None:
        return await self.store.get(key)

    async def list(self, prefix: str) -> Snapshot:
        return await self.store.list(prefix)

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        return await self.store.commit(compares, operations)

    def watch(self, prefix: str, after: int) -> AsyncIterator[Events]:
        return self.store.watch(prefix, after)

    async def grant(self, ttl_ms: int) -> int:
        return await self.store.grant(ttl_ms)

    async def keep_alive(self, lease: int) -> None:
        await self.store.keep_alive(lease)

    async def revoke(self, lease: int) -> None:
        await self.store.revoke(lease)

    async def close(self) -> None:
        await self.store.close()
