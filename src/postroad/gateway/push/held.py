"""What one connection holds: a message from its sending until it is settled, or its lock has ended.

H1 at most `HELD_MAX`, those that are being settled counted: whoever settles nothing gets no more.
H2 ids rise and are never used again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from postroad.gateway.receipts import Receipt

HELD_MAX: Final = 20_000


class Holding(NamedTuple):
    receipt: Receipt
    lock_ms: int
    ends_at: float  # on the loop's clock


class Held:
    """`by_receipt`: the client knows the receipts, and may settle by them too."""

    def __init__(self, *, by_receipt: bool) -> None:
        self._by_receipt = by_receipt
        self._holdings: dict[int, Holding] = {}
        self._ids: dict[Receipt, int] = {}
        self._next_id = 1
        self._settling = 0

    @property
    def room(self) -> int:
        return HELD_MAX - len(self._holdings) - self._settling

    def add(self, receipt: Receipt, lock_ms: int, ends_at: float) -> int:
        """Hold a message; returns the id by which the client settles it."""
        id_ = self._next_id
        self._next_id = id_ + 1
        self._keep(id_, Holding(receipt, lock_ms, ends_at))
        return id_

    def id_of(self, receipt: Receipt) -> int | None:
        """None: it was received elsewhere, or is no longer held."""
        return self._ids.get(receipt)

    def begin(self, ids: Iterable[int]) -> tuple[dict[int, Holding], list[int]]:
        """Those that are being settled from now until `end`, and the ids that mean nothing (any more)."""
        found: dict[int, Holding] = {}
        unknown: list[int] = []
        for id_ in ids:
            holding = self._take(id_)
            if holding is None:
                unknown.append(id_)
            else:
                found[id_] = holding
        self._settling += len(found)
        return found, unknown

    def end(self, count: int, still_held: Mapping[int, Holding]) -> None:
        """A settlement of `count` messages has ended; those in `still_held` were not settled."""
        self._settling -= count
        for id_, holding in still_held.items():
            self._keep(id_, holding)

    def expire(self, now: float) -> list[int]:
        """The ids whose locks have ended; they mean nothing from now on."""
        ended = [id_ for id_, holding in self._holdings.items() if holding.ends_at <= now]
        for id_ in ended:
            self._take(id_)
        return ended

    def clear(self) -> dict[int, Receipt]:
        """All that was still held, by their ids."""
        left = {id_: holding.receipt for id_, holding in self._holdings.items()}
        self._holdings.clear()
        self._ids.clear()
        return left

    def _keep(self, id_: int, holding: Holding) -> None:
        self._holdings[id_] = holding
        if self._by_receipt:
            self._ids[holding.receipt] = id_

    def _take(self, id_: int) -> Holding | None:
        holding = self._holdings.pop(id_, None)
        if holding is not None and self._by_receipt:
            self._ids.pop(holding.receipt, None)
        return holding
