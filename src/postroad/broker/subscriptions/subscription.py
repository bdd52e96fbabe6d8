"""One subscription: its settings, what its members hold in all, and a queue for each partition."""

from __future__ import annotations

from postroad.broker.partitions import TopicPartition
from postroad.broker.subscriptions.queue import Queue
from postroad.cluster.group_config import GroupSettings
from postroad.now import Now
from postroad.queues.holdings import Holdings
from postroad.queues.settings import Backoff, Order, QueueSettings
from postroad.queues.tally import Tally
from postroad.wire.subscription_names import default_dead_letter_topic


class Subscription:
    def __init__(self, group_id: str, settings: GroupSettings) -> None:
        self.group_id = group_id
        self.settings = settings
        self.holdings = Holdings()
        self.tally = Tally()
        self.queues: dict[TopicPartition, Queue] = {}  # those that somebody has asked for
        self.waiting: dict[Queue, None] = {}  # those at which somebody waits

    def configure(self, settings: GroupSettings, now: Now) -> None:
        """New settings hold from now on; locks that were given keep their end."""
        if settings == self.settings:
            return
        before, self.settings = self.settings, settings
        learn_anew = _known_by(before) != _known_by(settings)
        for queue in list(self.queues.values()):
            queue.configure(queue_settings(settings), now, learn_anew)

    def something_settled(self, where: Queue) -> None:
        """Messages may be available again, or a limit may have been what kept others from theirs."""
        where.wake()
        for queue in list(self.waiting):
            if queue is not where:
                queue.wake()

    def release_member(self, member: str) -> None:
        if self.holdings.by_member.get(member):
            for queue in list(self.queues.values()):
                queue.release_member(member)

    @property
    def dead_letter_topic(self) -> str:
        return self.settings.dead_letter_topic or default_dead_letter_topic(self.group_id)


def _known_by(settings: GroupSettings) -> tuple[str, int, bool]:
    """What of the settings says which messages there are for the queues, and what is known of them."""
    return settings.fair_by, settings.deduplicate_ms, settings.committed_only


def queue_settings(settings: GroupSettings) -> QueueSettings:
    return QueueSettings(
        lock_ms=settings.lock_ms,
        delivery_limit=settings.delivery_limit,
        backoff=Backoff(
            settings.backoff_initial_ms,
            settings.backoff_factor,
            settings.backoff_max_ms,
            settings.backoff_jitter,
        ),
        order=Order(settings.order),
        fair=bool(settings.fair_by),
        at_most_once=settings.at_most_once,
        dead_letters=settings.dead_letters,
        partition_locks_max=settings.partition_locks_max,
        member_locks_max=settings.member_locks_max,
        locks_max=settings.locks_max,
    )
