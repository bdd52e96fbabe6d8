"""What a WebSocket client says of its messages, gathered while the last of it is under way."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, NamedTuple

from postroad.client.share_message import AckType
from postroad.errors import InvalidRecordState, PostroadError
from postroad.gateway.gateway import Gateway
from postroad.gateway.push.frames import Failures, Format, Settlement
from postroad.gateway.push.held import Held, Holding
from postroad.gateway.receipts import Receipt, WrongReceipt

WAITING_MAX: Final = 50_000  # messages; who says more waits until some are settled

NOT_HELD: Final = "Not held: its lock has ended, or it was settled before."
WRONG_RECEIPT: Final = "The receipt does not belong to this subscription."


class SettlementKind(NamedTuple):
    type: AckType
    lock_ms: int | None
    delay_ms: int | None
    reason: str


class Said(NamedTuple):
    """One frame: what it names and is held here, by id; what it names by receipts only; what is in vain."""

    kind: SettlementKind
    request: int | None
    holdings: dict[int, Holding]
    receipts: dict[str, Receipt]
    failures: dict[str, tuple[list[int], list[str]]]

    @property
    def all_receipts(self) -> list[Receipt]:
        return [*(holding.receipt for holding in self.holdings.values()), *self.receipts.values()]


class Settlements:
    """Answers go out by `send`; `changed` is called when there may be room for more messages.

    `lock_ms`: of extensions that don't say how long; None: as the subscription says.
    """

    def __init__(
        self,
        gateway: Gateway,
        subscription: str,
        lock_ms: int | None,
        held: Held,
        format_: Format,
        send: Callable[[bytes], Awaitable[None]],
        changed: Callable[[], None],
    ) -> None:
        self._gateway = gateway
        self._subscription = subscription
        self._lock_ms = lock_ms
        self._held = held
        self._format = format_
        self._send = send
        self._changed = changed
        self._waiting: list[Said] = []
        self._waiting_messages = 0
        self._said = asyncio.Event()
        self._room = asyncio.Event()
        self._under_way: asyncio.Task[list[bytes]] | None = None

    async def say(self, settlement: Settlement) -> None:
        """It will be settled; waits while too much is waiting."""
        while self._waiting_messages >= WAITING_MAX:
            self._room.clear()
            await self._room.wait()
        said = self._resolve(settlement)
        self._waiting.append(said)
        self._waiting_messages += len(settlement.ids) + len(settlement.receipts)
        self._said.set()

    async def run(self) -> None:
        while True:
            await self._said.wait()
            self._said.clear()
            self._under_way = asyncio.create_task(self._round())
            for answer in await asyncio.shield(self._under_way):
                await self._send(answer)
            self._room.set()

    async def finish(self) -> None:
        """All that was said is settled; nobody is there to be answered."""
        if self._under_way is not None:
            await asyncio.gather(self._under_way, return_exceptions=True)
        await self._round()

    async def _round(self) -> list[bytes]:
        """Settles what waits; the answers to it."""
        said, self._waiting, self._waiting_messages = self._waiting, [], 0
        kinds: dict[SettlementKind, list[Said]] = defaultdict(list)
        for each in said:
            kinds[each.kind].append(each)
        answers = await asyncio.gather(*(self._settle(kind, those) for kind, those in kinds.items()))
        self._changed()
        return [answer for those in answers for answer in those]

    async def _settle(self, kind: SettlementKind, said: Sequence[Said]) -> list[bytes]:
        receipts = [receipt for each in said for receipt in each.all_receipts]
        errors = iter(await self._gateway.settle(receipts, *kind)) if receipts else iter(())
        answers = [self._conclude(each, errors) for each in said]
        return [answer for answer in answers if answer]

    def _conclude(self, said: Said, errors: Iterator[PostroadError | None]) -> bytes:
        """What is said to the client, if anything; the next of the `errors` are about this frame."""
        still_held: dict[int, Holding] = {}
        now = asyncio.get_running_loop().time()
        for id_, holding in said.holdings.items():
            error = next(errors)
            if error is not None:
                _add_id(said.failures, _reason(error), id_)
            if error is not None and not isinstance(error, InvalidRecordState):
                still_held[id_] = holding  # nobody knows: it may be said again
            elif error is None and said.kind.type is AckType.RENEW:
                lock_ms = holding.lock_ms if said.kind.lock_ms is None else said.kind.lock_ms
                still_held[id_] = holding._replace(ends_at=now + lock_ms / 1000)
        for text in said.receipts:
            error = next(errors)
            if error is not None:
                _add_receipt(said.failures, _reason(error), text)
        self._held.end(len(said.holdings), still_held)
        if said.request is None and not said.failures:
            return b""
        failures: Failures = said.failures
        return self._format.settled(said.request, failures)

    def _resolve(self, settlement: Settlement) -> Said:
        lock_ms = settlement.lock_ms
        if lock_ms is None and settlement.type is AckType.RENEW:
            lock_ms = self._lock_ms
        kind = SettlementKind(settlement.type, lock_ms, settlement.delay_ms, settlement.reason)
        failures: dict[str, tuple[list[int], list[str]]] = {}
        ids = list(settlement.ids)
        receipts: dict[str, Receipt] = {}
        for text in settlement.receipts:
            receipt = self._read(text)
            if receipt is None:
                _add_receipt(failures, WRONG_RECEIPT, text)
            elif (id_ := self._held.id_of(receipt)) is None:
                receipts[text] = receipt
            else:
                ids.append(id_)
        holdings, unknown = self._held.begin(ids)
        if unknown:
            failures[NOT_HELD] = unknown, []
        return Said(kind, settlement.request, holdings, receipts, failures)

    def _read(self, text: str) -> Receipt | None:
        try:
            receipt = self._gateway.receipts.read(text)
        except WrongReceipt:
            return None
        return receipt if receipt.subscription == self._subscription else None


def _reason(error: PostroadError) -> str:
    return NOT_HELD if isinstance(error, InvalidRecordState) else str(error)


def _add_id(failures: dict[str, tuple[list[int], list[str]]], reason: str, id_: int) -> None:
    failures.setdefault(reason, ([], []))[0].append(id_)


def _add_receipt(failures: dict[str, tuple[list[int], list[str]]], reason: str, receipt: str) -> None:
    failures.setdefault(reason, ([], []))[1].append(receipt)
