"""What the checks of one subscription look at, when all is over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from simulator.workloads.queue_history import NEVER, Delivery, Move, Outcome, Position, QueueHistory
from simulator.workloads.queue_topic import QueueTopic, SentMessage


@dataclass(frozen=True)
class QueueCase:
    history: QueueHistory
    topics: Mapping[str, QueueTopic]  # those of the subscription, by name
    # The power cuts that may have taken what was acknowledged before them: none where logs are synced.
    cuts: Sequence[float] = ()
    crashes: Sequence[float] = ()  # kill -9, power cuts, failing and full disks, before the heal
    calm_at: float = inf

    @property
    def name(self) -> str:
        return self.history.plan.name

    @property
    def lost_until(self) -> float:
        """What was acknowledged by then may be gone."""
        return self.cuts[-1] if self.cuts else NEVER

    def lost_between(self, since: float, until: float) -> bool:
        """Whether a power cut between these moments may have taken what was acknowledged before."""
        return any(since <= cut <= until for cut in self.cuts)

    def crashed_since(self, moment: float) -> bool:
        """Whether something may have ended what a node was about to do."""
        return any(moment <= crash <= self.calm_at for crash in self.crashes)

    def messages(self) -> Iterator[tuple[Position, SentMessage]]:
        """Each message that the subscription must have brought to its end."""
        for topic in self.topics.values():
            yield from topic.messages(self.lost_until)

    @property
    def last_move(self) -> Move | None:
        """The last one that an operator was told of; in the calm there is one, and none after it."""
        done = [move for move in self.history.moves if move.outcome is Outcome.DONE]
        return done[-1] if done else None

    def pairs(self) -> Iterator[tuple[Delivery, Delivery]]:
        """Any two deliveries of one message, the first one to come first, that no operator came between."""
        for noted in self.history.deliveries.values():
            deliveries = sorted(noted, key=_came_at)  # noted once all nodes have answered
            for number, first in enumerate(deliveries):
                for second in deliveries[number + 1 :]:
                    if first.value == second.value and not self.history.was_moved(
                        first.asked_at, second.came_at
                    ):
                        yield first, second


def _came_at(delivery: Delivery) -> float:
    return delivery.came_at
