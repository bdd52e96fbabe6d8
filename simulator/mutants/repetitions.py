"""Mutants of what must happen once: duplicates, named requests, letters that are sent back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from postroad.broker.partition import Partition
from postroad.broker.subscriptions import scanner
from postroad.broker.subscriptions.duplicates import Duplicates
from postroad.broker.subscriptions.lookback import Lookback
from postroad.client.producer import Producer
from postroad.client.redrive import Redrive
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_message import ShareMessage
from postroad.log.producers import Producers
from postroad.wire.batch import NAMED_PRODUCERS
from simulator.mutants.mutant import Mutant


def _always_near(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda duplicates, one_ms, other_ms: True


def _look_nowhere(_: Callable[..., Any]) -> Callable[..., Any]:
    def begin_here(partition: Partition, frontier: int, window_ms: int, now_ms: int) -> Lookback:
        return Lookback(frontier, None)

    return begin_here


def _forget_names(expire: Callable[..., Any]) -> Callable[..., Any]:
    def forget(self: Producers, now_ms: int, expiry_ms: int) -> None:
        expire(self, now_ms, expiry_ms)
        for producer_id in [each for each in self._states if each >= NAMED_PRODUCERS]:
            del self._states[producer_id]

    return forget


def _strike_off_first(send_back: Callable[..., Any]) -> Callable[..., Any]:
    async def strike_off(
        self: Redrive, consumer: ShareConsumer, producer: Producer, letters: Sequence[ShareMessage]
    ) -> None:
        await consumer.settle(letters)
        await send_back(self, consumer, producer, letters)

    return strike_off


def _address_nobody(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda redrive, letter, target: None


ALL: Final = (
    Mutant(
        "duplicates-for-ever",
        "a message is left out however long ago its id was used",
        Duplicates,
        "_is_near",
        _always_near,
    ),
    Mutant(
        "no-lookback",
        "a node that starts does not look which ids were used shortly before",
        scanner,
        "lookback",
        _look_nowhere,
    ),
    Mutant(
        "names-forgotten",
        "what was published under a name is soon forgotten",
        Producers,
        "expire",
        _forget_names,
    ),
    Mutant(
        "struck-off-first",
        "a dead letter is struck off before its message was sent back",
        Redrive,
        "_send_back",
        _strike_off_first,
    ),
    Mutant(
        "redriven-to-all",
        "what is sent back comes to all subscriptions",
        Redrive,
        "_addressee",
        _address_nobody,
    ),
)
