"""One WebSocket connection: a task that reads what the client says, one that pulls messages from the
subscription, one that pushes them to the client, and one that settles.

W1 never more is sent than the credit that was granted, nor more held than `held.HELD_MAX`.
W2 what is held when the connection ends, however it ends, is released, or returned if it was not sent yet;
   what was said before that is done.
W3 nothing grows with a client that doesn't read: at most one receive is ahead of what is being sent;
   settlements wait with their answers, and then the client's own frames are no longer read.
W4 what the client says while settlements are under way gathers, and goes out as one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Final, NamedTuple

from postroad.client.share_message import AckType
from postroad.errors import (
    GroupAuthorizationFailed,
    GroupIdNotFound,
    PostroadError,
    TopicAuthorizationFailed,
    TryAgain,
)
from postroad.gateway import sizes
from postroad.gateway.gateway import Gateway
from postroad.gateway.push.frames import (
    CREDIT_MAX,
    BadFrame,
    Credit,
    Format,
    NewTransaction,
    Outgoing,
    Settlement,
)
from postroad.gateway.push.held import Held
from postroad.gateway.push.settlements import Settlements
from postroad.gateway.push.transactions import StreamTransactions
from postroad.gateway.receiver import Received
from postroad.gateway.security.access import OPEN, Access
from postroad.gateway.security.rights import check_receive
from postroad.gateway.security.sessions import FOR_EVER_S

WAIT_MS: Final = 10_000  # one receive waits so long; there is always one while there is credit
AHEAD_BYTES: Final = 1 << 20  # a receive brings so much, or a single message
FRAME_BYTES: Final = 1 << 18  # a batch's frame is full with so much, or with its one message
SWEEP_S: Final = 1.0  # how often ended locks are looked for
RETRY_S: Final = 0.5

BAD_FRAME: Final = 4000
EXPIRED: Final = 4001
FORBIDDEN: Final = 4003
NOT_FOUND: Final = 4004
FAILED: Final = 1011
GOING_AWAY: Final = 1001

STOPPING: Final = "The gateway is stopping."
TOKEN_EXPIRED: Final = "The token has expired: connect again with a new one."

Send = Callable[[bytes], Awaitable[None]]
CountAhead = Callable[[int], None]

log = logging.getLogger(__name__)


class Options(NamedTuple):
    """`lock_ms` None: as the subscription says."""

    batch: int = 1
    lock_ms: int | None = None
    receipts: bool = False
    credit: int = 0


class Ahead(NamedTuple):
    """What one receive brought."""

    outgoing: list[Outgoing]
    size: int


class Ending(Exception):
    """The connection is to end, with this code and text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Stream:
    """`send` writes one frame; it waits while the client doesn't read. `count_ahead` is told how many
    bytes of messages wait for that."""

    def __init__(
        self,
        gateway: Gateway,
        subscription: str,
        options: Options,
        format_: Format,
        send: Send,
        count_ahead: CountAhead = lambda _: None,
        access: Access = OPEN,
    ) -> None:
        self._gateway = gateway
        self._access = access
        self._subscription = subscription
        self._options = options
        self._format = format_
        self._send = send
        self._credit = options.credit
        self._changed = asyncio.Event()  # there may be room again
        self._ahead: asyncio.Queue[Ahead] = asyncio.Queue(1)
        self._ahead_bytes = 0  # those that are being sent counted
        self._count_ahead = count_ahead
        self._held = Held(by_receipt=options.receipts)
        self._sent_id = 0  # the client may know of what has ids up to this one
        self._settlements = Settlements(
            gateway, subscription, options.lock_ms, self._held, format_, send, self._changed.set
        )
        self._transactions = StreamTransactions(gateway, access, self._held, format_, send, self._changed.set)

    async def run(self, frames: AsyncIterator[str | bytes]) -> None:
        """Until `frames` ends. Raises Ending if it is the gateway that ends it."""
        tasks = [
            asyncio.create_task(self._listen(frames), name=f"listen {self._subscription}"),
            asyncio.create_task(self._pull(), name=f"pull {self._subscription}"),
            asyncio.create_task(self._push(), name=f"push {self._subscription}"),
            asyncio.create_task(self._settlements.run(), name=f"settle {self._subscription}"),
            asyncio.create_task(self._transactions.run(), name=f"transact {self._subscription}"),
            asyncio.create_task(self._sweep(), name=f"expire {self._subscription}"),
            asyncio.create_task(self._until_closing(), name=f"closing {self._subscription}"),
        ]
        if self._access.is_guarded:
            tasks.append(asyncio.create_task(self._until_forbidden(), name=f"rights {self._subscription}"))
        if self._access.left_s < FOR_EVER_S:
            tasks.append(asyncio.create_task(self._until_expired(), name=f"token {self._subscription}"))
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._let_go()
        for task in done:
            task.result()

    async def _let_go(self) -> None:
        """W2"""
        await self._settlements.finish()
        await self._transactions.finish()
        left = self._held.clear()
        sent = [receipt for id_, receipt in left.items() if id_ <= self._sent_id]
        unsent = [receipt for id_, receipt in left.items() if id_ > self._sent_id]
        if sent:
            await self._gateway.settle(sent, AckType.RELEASE, delay_ms=0)
        if unsent:
            await self._gateway.settle(unsent, AckType.RETURN)

    # --- in

    async def _listen(self, frames: AsyncIterator[str | bytes]) -> None:
        async for frame in frames:
            try:
                said = self._format.read(frame)
            except BadFrame as error:
                raise Ending(BAD_FRAME, str(error)) from None
            if isinstance(said, Credit):
                self._grant(said.messages)
            elif isinstance(said, NewTransaction):
                await self._transactions.say(said)
            else:
                await self._settle(said)

    def _grant(self, messages: int) -> None:
        if self._credit + messages > CREDIT_MAX:
            raise Ending(BAD_FRAME, f"The credit would exceed {CREDIT_MAX:,} messages.")
        self._credit += messages
        self._changed.set()

    async def _settle(self, said: Settlement) -> None:
        if not said.ids and not said.receipts:
            raise Ending(BAD_FRAME, "The frame names neither ids nor receipts.")
        await self._settlements.say(said)

    # --- out

    async def _pull(self) -> None:
        while not self._gateway.closing.is_set():  # from then on receives bring nothing, at once
            try:
                wanted = await self._wanted()
                lock_ms = await self._lock_ms()
                received = await self._gateway.receive(
                    self._subscription, wanted, WAIT_MS, lock_ms, max_bytes=AHEAD_BYTES, access=self._access
                )
            except TryAgain as error:
                log.info("stream of %s: %s", self._subscription, error)
                await asyncio.sleep(RETRY_S)
            except GroupIdNotFound:
                raise Ending(NOT_FOUND, f"The subscription {self._subscription} was deleted.") from None
            except (GroupAuthorizationFailed, TopicAuthorizationFailed) as error:
                raise self._forbidden(error) from None
            except PostroadError as error:
                raise Ending(FAILED, str(error)) from None
            else:
                if received:
                    await self._ahead.put(self._hold(received, lock_ms))  # there is room (W3)
        raise Ending(GOING_AWAY, STOPPING)

    async def _wanted(self) -> int:
        """How many may come now, at least one (W1). Nobody receives while a receive waits to be sent (W3)."""
        while True:
            room = min(self._credit, self._held.room)
            if room > 0 and self._ahead.empty():
                return room
            self._changed.clear()
            await self._changed.wait()

    async def _lock_ms(self) -> int:
        if self._options.lock_ms is not None:
            return self._options.lock_ms
        return (await self._gateway.directory.subscription(self._subscription)).lock_ms

    def _hold(self, received: Sequence[Received], lock_ms: int) -> Ahead:
        """From here on they are the client's: they count against its credit."""
        self._credit -= len(received)
        ends_at = asyncio.get_running_loop().time() + lock_ms / 1000
        write = self._gateway.receipts.write if self._options.receipts else _no_receipt
        add = self._held.add
        outgoing = [
            Outgoing(add(receipt, lock_ms, ends_at), message, write(receipt)) for message, receipt in received
        ]
        ahead = Ahead(outgoing, sum(sizes.of_message(each.message) for each in received))
        self._note_ahead(ahead.size)
        return ahead

    def _note_ahead(self, more_bytes: int) -> None:
        self._ahead_bytes += more_bytes
        self._count_ahead(self._ahead_bytes)

    async def _push(self) -> None:
        while True:
            ahead = await self._ahead.get()
            self._changed.set()
            for frame in self._frames(ahead.outgoing):
                self._sent_id = frame[-1].id
                await self._send(self._format.messages(frame))
            self._note_ahead(-ahead.size)

    def _frames(self, outgoing: list[Outgoing]) -> Iterator[list[Outgoing]]:
        """No frame has more messages than the client wants, nor many more bytes than is good for it."""
        first = size = 0
        for index, each in enumerate(outgoing, 1):
            size += len(each.message.value or b"")
            if index - first == self._options.batch or size >= FRAME_BYTES:
                yield outgoing[first:index]
                first, size = index, 0
        if first < len(outgoing):
            yield outgoing[first:]

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            ended = self._held.expire(asyncio.get_running_loop().time())
            if ended:
                self._changed.set()
                await self._send(self._format.expired(ended))

    async def _until_closing(self) -> None:
        await self._gateway.closing.wait()
        raise Ending(GOING_AWAY, STOPPING)

    async def _until_forbidden(self) -> None:
        """Rules change, users go and passwords are changed while streams are open."""
        following = self._gateway.identities.following
        assert following is not None, "only users are asked about"
        while True:
            changed = asyncio.ensure_future(following.changed())
            try:
                await self._check_rights()
                await changed
            finally:
                changed.cancel()

    async def _check_rights(self) -> None:
        """Raises Ending. A subscription that is gone is found by who receives."""
        try:
            await check_receive(self._access, self._gateway.directory, self._subscription)
        except GroupIdNotFound:
            return
        except TryAgain as error:
            log.info("stream of %s: %s", self._subscription, error)
        except PostroadError as error:
            raise self._forbidden(error) from None

    async def _until_expired(self) -> None:
        """Nobody tells that a token ends, and a stream without messages asks for no right."""
        await asyncio.sleep(max(0.0, self._access.left_s))
        raise Ending(EXPIRED, TOKEN_EXPIRED)

    def _forbidden(self, error: PostroadError) -> Ending:
        if self._access.left_s <= 0:
            return Ending(EXPIRED, TOKEN_EXPIRED)
        return Ending(FORBIDDEN, str(error))


def _no_receipt(_: object) -> str:
    return ""
