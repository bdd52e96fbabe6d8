"""How many messages a subscription has handed out, and what became of them, since the node was started."""

from __future__ import annotations

from postroad.queues.settlement import Settlement


class Tally:
    """Plain integers: they are counted with every delivery and every settlement."""

    __slots__ = ("accepted", "dead", "delivered", "expired", "rejected", "released", "returned")

    def __init__(self) -> None:
        self.delivered = 0
        self.accepted = 0
        self.released = 0
        self.rejected = 0
        self.returned = 0
        self.expired = 0
        self.dead = 0

    def add(self, settlement: Settlement) -> None:
        """It has taken effect."""
        self.accepted += settlement.accepted
        self.released += settlement.given_back
        self.rejected += settlement.rejected
        self.returned += settlement.returned
        self.expired += settlement.expired
        self.dead += settlement.dead
