"""A WebSocket client's transactions: messages that it holds are accepted, and others published, at once.

While one is under way its messages are neither held nor expire here. If it is refused they are held again,
for as long as their locks last: what the nodes have released meanwhile is refused when it is settled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from postroad.errors import PostroadError
from postroad.gateway.gateway import Gateway
from postroad.gateway.push.frames import Format, NewTransaction
from postroad.gateway.push.held import Held, Holding
from postroad.gateway.receipts import Receipt, WrongReceipt
from postroad.gateway.rest import problems
from postroad.gateway.rest.problems import Refused
from postroad.gateway.rest.transactions import carry_out
from postroad.gateway.security.access import Access

log = logging.getLogger(__name__)

AT_ONCE_MAX: Final = 4  # of one client; then its frames are no longer read


class StreamTransactions:
    """Answers go out by `send`; `changed` is called when there may be room for more messages."""

    def __init__(
        self,
        gateway: Gateway,
        access: Access,
        held: Held,
        format_: Format,
        send: Callable[[bytes], Awaitable[None]],
        changed: Callable[[], None],
    ) -> None:
        self._gateway = gateway
        self._access = access
        self._held = held
        self._format = format_
        self._send = send
        self._changed = changed
        self._room = asyncio.Semaphore(AT_ONCE_MAX)
        self._under_way: set[asyncio.Task[bytes]] = set()
        self._answers: asyncio.Queue[bytes] = asyncio.Queue()

    async def say(self, wanted: NewTransaction) -> None:
        """It will be carried out; waits while too many are under way."""
        await self._room.acquire()
        task = asyncio.create_task(self._carry_out(wanted), name="transaction")
        self._under_way.add(task)
        task.add_done_callback(self._done)

    async def run(self) -> None:
        """Tell outcomes, for as long as somebody is there to hear them."""
        while True:
            await self._send(await self._answers.get())
            self._room.release()  # a client that does not read is not read, either

    async def finish(self) -> None:
        """All that was said has come to its end; nobody is there to be answered."""
        if self._under_way:
            await asyncio.wait(self._under_way)

    def _done(self, task: asyncio.Task[bytes]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            self._answers.put_nowait(task.result())
        self._changed()

    async def _carry_out(self, wanted: NewTransaction) -> bytes:
        ids = list(dict.fromkeys(wanted.ids))
        receipts: list[Receipt] = []
        holdings: dict[int, Holding] = {}
        still_held: dict[int, Holding] = {}
        try:
            receipts = self._elsewhere(wanted.receipts, ids)
            holdings, unknown = self._held.begin(ids)
            still_held = holdings
            if unknown:
                text = ", ".join(map(str, unknown[:10]))
                raise Refused(problems.LOCK_LOST, f"These ids are not held any more: {text}.")
            mine = [holding.receipt for holding in holdings.values()]
            answer = await carry_out(self._gateway, self._access, [*mine, *receipts], wanted.publish)
            still_held = {}
        except Refused as refused:
            if refused.problem.status == problems.OUTCOME_UNKNOWN.status:
                still_held = {}  # what was not committed comes again when its transaction is over
            return self._format.refused(wanted.request, refused.problem)
        except PostroadError as error:
            return self._format.refused(wanted.request, problems.of(error))
        except Exception:
            log.exception("a transaction over a WebSocket failed")
            return self._format.refused(wanted.request, problems.INTERNAL.says(""))
        finally:
            self._held.end(len(holdings), still_held)
        return self._format.committed(wanted.request, answer.messages)

    def _elsewhere(self, texts: Sequence[str], ids: list[int]) -> list[Receipt]:
        """Receipts of what this connection does not hold; the ids of what it does are added to `ids`."""
        found: dict[Receipt, None] = {}
        for index, text in enumerate(texts):
            try:
                receipt = self._gateway.receipts.read(text)
            except WrongReceipt:
                detail = f"receipts[{index}] is no receipt that a gateway of this cluster has given."
                raise Refused(problems.WRONG_RECEIPT, detail) from None
            id_ = self._held.id_of(receipt)
            if id_ is None:
                found[receipt] = None
            elif id_ not in ids:
                ids.append(id_)
        return list(found)
