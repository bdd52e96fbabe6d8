"""Mutants: each takes one rule away, by name."""

from __future__ import annotations

from postroad.replication.follower import Follower, Step
from postroad.replication.in_sync import IsrChange
from postroad.replication.leader import Leader
from postroad.replication.progress import FollowerProgress
from tests.replication.model_node import Rules


class CommittedIsr(Leader):
    """The watermark counts the committed ISR, not the maximal one."""

    def _counted_nodes(self) -> set[int]:
        return {self.node_id, *self.isr}


class ShrinkCountsEarly(Leader):
    """A leaver no longer counts when its leaving is proposed."""

    def _counted_nodes(self) -> set[int]:
        proposed = self._change.isr if self._change is not None and not self._change.joiners else self.isr
        return {self.node_id, *proposed, *self._joining}


class JoinBelowStart(Leader):
    """Who joins need not have reached the epoch's start."""

    def _may_join(self, follower: FollowerProgress) -> bool:
        pairs = zip(self.logs, follower.positions, strict=True)
        return all(position.offset >= progress.watermark for progress, position in pairs)


class JoinBelowWatermark(Leader):
    """Who joins need not have reached the watermark."""

    def _may_join(self, follower: FollowerProgress) -> bool:
        pairs = zip(self.logs, follower.positions, strict=True)
        return all(position.offset >= progress.start_offset for progress, position in pairs)

    def fetched(
        self, replica: int, broker_epoch: int, log: int, offset: int, end_offset: int, now_ms: int
    ) -> bool:
        moved = super().fetched(replica, broker_epoch, log, offset, end_offset, now_ms)
        self.wants_change = True
        return moved


class JoinByMessagesOnly(Leader):
    """Who joins need not have caught up in the ledger."""

    def _may_join(self, follower: FollowerProgress) -> bool:
        progress, position = self.logs[0], follower.positions[0]
        return position.offset >= max(progress.watermark, progress.start_offset)


class MinimumOfMaximal(Leader):
    """Proposed joiners are enough replicas before the store has confirmed them."""

    def _has_enough(self) -> bool:
        return len(self._counted_nodes()) >= self.minimum


class NoMinimum(Leader):
    """The watermark moves with however few replicas."""

    def _has_enough(self) -> bool:
        return True


class ElrIgnored(Leader):
    """The watermark moves although the ELR is not empty."""

    def _has_enough(self) -> bool:
        return len(self.isr) >= self.minimum


class UnknownIsRefused(Leader):
    """A proposal without an answer is taken for one that failed."""

    def unknown(self, change: IsrChange, now_ms: int) -> None:
        self.refused(change, now_ms)


class AnyAnswer(Follower):
    """Answers of another epoch, or at another offset, are applied."""

    def answered(self, epoch: int, offset: int, watermark: int, log_start: int, purged: int = 0) -> Step:
        return super().answered(self.epoch, self.offset, watermark, log_start)


class AnswerOfAnyOffset(Follower):
    """Answers at another offset are applied."""

    def answered(self, epoch: int, offset: int, watermark: int, log_start: int, purged: int = 0) -> Step:
        return super().answered(epoch, self.offset, watermark, log_start)


# (what is taken away, the transcript in which it does harm, what is violated)
MUTANTS: dict[str, tuple[Rules, str, str]] = {
    "committed ISR": (Rules(leader=CommittedIsr), "join-counts-when-proposed", "L1"),
    "shrink counts early": (Rules(leader=ShrinkCountsEarly), "kip-497-shrink-confirmed-late", "L1"),
    "join below the epoch's start": (Rules(leader=JoinBelowStart), "join-below-the-epochs-start", "L1"),
    "join below the watermark": (Rules(leader=JoinBelowWatermark), "join-below-the-watermark", "L1"),
    "join by the messages only": (Rules(leader=JoinByMessagesOnly), "two-logs", "L1"),
    "no broker epoch": (Rules(compares_broker_epochs=False), "kip-903-restarted-empty-follower", "L1"),
    "diverging counts": (Rules(diverging_is_no_promise=False), "diverging-fetch-is-no-promise", "L1"),
    "minimum of the maximal ISR": (
        Rules(leader=MinimumOfMaximal),
        "joiner-is-not-enough-while-proposed",
        "L1",
    ),
    "no minimum": (Rules(leader=NoMinimum), "kip-966-last-replica-standing", "L1"),
    "truncate to the watermark": (
        Rules(truncates_by_epoch=False),
        "kip-101-no-truncation-to-the-watermark",
        "L1",
    ),
    "unknown is refused": (Rules(leader=UnknownIsRefused), "unknown-outcome", "L1"),
    "no epoch check": (Rules(checks_epoch_of_fetch=False), "fetch-of-an-older-epoch", "L1"),
    "promise before the sync": (Rules(syncs_before_promise=False), "promise-is-synced", "L1"),
    "promise of what is read ahead": (Rules(promises_what_is_safe=False), "reading-ahead", "L1"),
    "ELR ignored": (Rules(leader=ElrIgnored, empties_elr=False), "lowered-minimum", "L1"),
    "answers of any epoch": (Rules(follower=AnyAnswer), "answer-from-before-a-truncation", "L2"),
    "answers of any offset": (Rules(follower=AnswerOfAnyOffset), "answer-that-comes-twice", "L2"),
}
