"""The coordination store of a cluster: etcd, over its JSON gateway.

Keys of the port lie below a prefix, so that several clusters can share an etcd. Its revision then also
counts what others write. A revision that we were told of and that no watch of ours has brought may
therefore be somebody else's, or the member that serves the watch may be behind. Both are found out in the
same way: after a moment we write a mark of progress (the empty key below our prefix), which every watch must
bring after all that came before it. If it comes, whoever waited for the revision goes on (R6). If it does
not, the watch moves to another member.

    ask, commit ─▶ EtcdGateway ─▶ a member, or the next one      etcd_gateway.py
    watch ───────▶ EtcdWatch ──▶ one stream after another        etcd_watch.py
                   what both of them say                         etcd_messages.py
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Final, TypeVar

from postroad.cluster import etcd_messages as messages
from postroad.cluster.etcd_gateway import COMMIT_S, KEEP_ALIVE_S, READ_S, EtcdGateway, Refused
from postroad.cluster.etcd_messages import (
    CommitAnswer,
    GrantAnswer,
    KeepAliveAnswer,
    KeyValue,
    RangeAnswer,
    RevokeAnswer,
)
from postroad.cluster.etcd_watch import EtcdWatch, end_of
from postroad.cluster.store import (
    OPERATIONS_MAX,
    PROGRESS,
    VALUE_BYTES_MAX,
    Compare,
    Event,
    Events,
    Operation,
    Put,
    Snapshot,
    StoreEntry,
)
from postroad.cluster.store_address import EtcdAddress
from postroad.errors import CoordinationError, LeaseLost, StorageFailed, StoreUnavailable

T = TypeVar("T")

PAGE_KEYS: Final = 500  # a list asks for so many at a time: no answer is larger than a few MiB
LISTS_MAX: Final = 3  # a list that compaction overtook begins anew, as often as this
# A revision that no watch has brought for so long is checked with a mark of progress …
CHECK_S: Final = 0.25
# … and a member that has not brought one of ours for so long is left: about a second in all.
BEHIND_S: Final = 0.75

logger = logging.getLogger(__name__)


class EtcdStore:
    """The Store port on etcd. Make it within the loop that will use it; the first request connects."""

    def __init__(self, address: EtcdAddress, tls: ssl.SSLContext | None = None) -> None:
        """`tls` is made of the files that the address names."""
        assert (tls is None) == (address.tls is None), "TLS is as the address says"
        self._gateway = EtcdGateway(address.endpoints, tls)
        self._prefix = address.prefix.encode()
        self._loop = asyncio.get_running_loop()
        self._newest = 0  # the newest revision that we were told of
        self._ours = 0  # the newest that is known to have changed a key below our prefix
        self._watches: dict[EtcdWatch, None] = {}
        self._check_timer: asyncio.TimerHandle | None = None
        self._marking: asyncio.Task[None] | None = None

    async def get(self, key: str) -> StoreEntry | None:
        answer = await self._ask("kv/range", messages.get(self._prefix + key.encode()), RangeAnswer, READ_S)
        self._note(answer.header.revision)
        return self._entry(answer.kvs[0]) if answer.kvs else None

    async def list(self, prefix: str) -> Snapshot:
        for _ in range(LISTS_MAX):
            try:
                return await self._list(self._prefix + prefix.encode())
            except Refused as error:
                if error.code != messages.OUT_OF_RANGE:
                    raise _translated(error) from error
        raise StoreUnavailable("etcd compacts its history faster than it can be listed.")

    async def commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int | None:
        _check(compares, operations)
        request = messages.commit(self._prefix, compares, operations)
        try:
            answer = await self._gateway.ask_once("kv/txn", request, CommitAnswer, COMMIT_S)
        except Refused as error:
            raise _translated(error) from error
        changed = any(response.changed for response in answer.responses)
        self._note(answer.header.revision, ours=changed)
        return answer.header.revision if answer.succeeded else None

    async def watch(self, prefix: str, after: int) -> AsyncIterator[Events]:
        watch = EtcdWatch(self._gateway, self._prefix, after)
        self._watches[watch] = None
        self._note(self._newest)
        try:
            async with aclosing(watch.events()) as revisions:
                async for events in revisions:
                    wanted = [event for event in events if _concerns(event, prefix)]
                    if wanted:
                        yield wanted
        finally:
            del self._watches[watch]

    async def grant(self, ttl_ms: int) -> int:
        assert ttl_ms > 0
        # It may be repeated: a lease that nobody knows of holds no key, and ends.
        request = messages.grant(-(-ttl_ms // 1000))
        answer = await self._ask("lease/grant", request, GrantAnswer, READ_S)
        self._note(answer.header.revision)
        return answer.id

    async def keep_alive(self, lease: int) -> None:
        answer = await self._ask("lease/keepalive", messages.lease(lease), KeepAliveAnswer, KEEP_ALIVE_S)
        self._note(answer.result.header.revision)
        if not answer.result.ttl:
            raise LeaseLost(f"Lease {lease} has ended.")

    async def revoke(self, lease: int) -> None:
        try:
            answer = await self._gateway.ask("lease/revoke", messages.lease(lease), RevokeAnswer, READ_S)
        except Refused as error:
            if error.code != messages.NOT_FOUND:
                raise _translated(error) from error
        else:
            self._note(answer.header.revision)

    async def close(self) -> None:
        if self._check_timer is not None:
            self._check_timer.cancel()
        await self._gateway.close()
        if self._marking is not None:
            await asyncio.gather(self._marking, return_exceptions=True)

    # --- requests

    async def _ask(self, path: str, request: messages.Request, answer: type[T], within_s: float) -> T:
        try:
            return await self._gateway.ask(path, request, answer, within_s)
        except Refused as error:
            raise _translated(error) from error

    async def _list(self, prefix: bytes) -> Snapshot:
        """Read page after page as of the first one's revision. Raises Refused if that was compacted."""
        entries: list[StoreEntry] = []
        start, revision, more = prefix, 0, True
        while more:
            request = messages.page(start, end_of(prefix), PAGE_KEYS, revision)
            page = await self._gateway.ask("kv/range", request, RangeAnswer, READ_S)
            revision = revision or page.header.revision
            entries += [self._entry(found) for found in page.kvs]
            more = page.more
            start = page.kvs[-1].key + b"\0" if page.kvs else end_of(prefix)
        self._note(revision)
        return Snapshot([entry for entry in entries if entry.key != PROGRESS], revision)

    def _entry(self, found: KeyValue) -> StoreEntry:
        return StoreEntry(found.key[len(self._prefix) :].decode(), found.value, found.mod_revision)

    # --- watches that should have brought more

    def _note(self, revision: int, *, ours: bool = False) -> None:
        """Etcd has reached this revision, so watches should soon; `ours` says that it has events for them."""
        self._newest = max(self._newest, revision)
        if ours:
            self._ours = max(self._ours, revision)
        if self._check_timer is None and self._is_ahead():
            self._check_timer = self._loop.call_later(CHECK_S, self._check_watches)

    def _is_ahead(self) -> bool:
        return any(watch.arrived < self._newest for watch in self._watches)

    def _check_watches(self) -> None:
        self._check_timer = None
        if self._gateway.closed.is_set() or not self._is_ahead():
            return
        for watch in self._watches:
            watch.check(self._ours, self._loop.time(), BEHIND_S)
        if self._newest > self._ours and self._marking is None:
            self._marking = self._loop.create_task(self._mark(), name="etcd-progress")
        self._check_timer = self._loop.call_later(CHECK_S, self._check_watches)

    async def _mark(self) -> None:
        try:
            await self.commit([], [Put(PROGRESS, b"")])
        except CoordinationError as error:
            logger.debug("etcd took no mark of progress: %s", error)  # the next check tries again
        finally:
            self._marking = None


def _concerns(event: Event, prefix: str) -> bool:
    return event.key == PROGRESS or event.key.startswith(prefix)


def _check(compares: Sequence[Compare], operations: Sequence[Operation]) -> None:
    """What etcd would refuse is our own mistake."""
    keys = [operation.key for operation in operations]
    assert len(set(keys)) == len(keys), f"a key stands in a commit once: {keys}"
    assert len(operations) <= OPERATIONS_MAX, f"{len(operations)} operations in a commit"
    assert len(compares) <= OPERATIONS_MAX, f"{len(compares)} compares in a commit"
    size = sum(len(operation.value) for operation in operations if isinstance(operation, Put))
    assert size <= VALUE_BYTES_MAX, f"{size} bytes of values in a commit"


def _translated(error: Refused) -> CoordinationError | StorageFailed:
    if error.code == messages.NOT_FOUND:
        return LeaseLost(f"etcd says: {error.text}.")
    if error.code == messages.RESOURCE_EXHAUSTED and "space" in error.text:
        return StorageFailed(f"etcd is full and changed nothing ({error.text}). Compact and defragment it.")
    return StoreUnavailable(f"etcd refuses the request: {error.text}.")
