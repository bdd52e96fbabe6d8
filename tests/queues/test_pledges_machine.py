"""The share partition against the model, with acknowledgements inside of transactions as well."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from postroad.errors import ConcurrentTransactions, InvalidProducerEpoch, InvalidRecordState
from postroad.queues.acknowledgement import PLEDGE
from postroad.queues.settings import Order
from tests.queues.model import Held, Outcome
from tests.queues.shell import batches_of
from tests.queues.test_share_partition_machine import SharePartitionMachine

PRODUCERS = st.sampled_from([7, 8])


class PledgingMachine(SharePartitionMachine):
    """A producer's transactions have the epochs 0, 1, 2 …, and each one's end the epoch that follows. An end
    that was not recorded comes again, with the same verdict, as coordinators send it."""

    def __init__(self) -> None:
        super().__init__()
        self.verdicts: dict[tuple[int, int], bool] = {}
        self.model.count_pledged = lambda: self.partition.ledger.pledges.messages

    def teardown(self) -> None:
        while self.pending:
            self.commit()
        for producer in (7, 8):
            self.end(producer, self.epoch(producer) + 2)
            while self.pending:
                self.commit()
        super().teardown()

    def epoch(self, producer: int) -> int:
        """The epoch of the producer's transaction that is open, as far as the ledger knows."""
        return self.model.ended.get(producer, 0)

    def ends_under_way(self, producer: int) -> list[int]:
        return [outcome.ended[producer] for _, outcome in self.pending if producer in outcome.ended]

    def is_under_way(self, producer: int) -> bool:
        marks = [mark for _, outcome in self.pending for mark in outcome.pledged.values()]
        return bool(self.ends_under_way(producer)) or any(mark[0] == producer for mark in marks)

    # -- transactions ----------------------------------------------------------------------------------

    @precondition(lambda self: self.model.held)
    @rule(data=st.data(), producer=PRODUCERS, late=st.sampled_from([0, 0, 0, 1]), at_once=st.booleans())
    def pledge(self, data: Any, producer: int, late: int, at_once: bool) -> None:
        member = data.draw(st.sampled_from(sorted({held.member for held in self.model.held.values()})))
        mine = sorted(o for o, held in self.model.held.items() if held.member == member)
        offsets = sorted(data.draw(st.sets(st.sampled_from(mine), min_size=1)))
        ended = max([self.epoch(producer), *self.ends_under_way(producer)])
        epoch = data.draw(st.sampled_from([self.epoch(producer), ended])) - late
        how = (member, batches_of(offsets, [PLEDGE] * len(offsets)), producer, epoch, self.now)
        if any(self.model.held[offset].until <= self.now.ms for offset in offsets):
            with pytest.raises(InvalidRecordState):
                self.partition.pledge(*how)
            return
        if epoch < ended:
            with pytest.raises(InvalidProducerEpoch):
                self.partition.pledge(*how)
            return
        self._decided(self.partition.pledge(*how), Outcome(pledged=dict.fromkeys(offsets, (producer, epoch))))
        if at_once:
            self.commit_some(len(self.pending))

    @rule(producer=PRODUCERS, commit=st.booleans(), at_once=st.booleans())
    def end_transaction(self, producer: int, commit: bool, at_once: bool) -> None:
        epoch = self.epoch(producer) + 1
        if self.is_under_way(producer):
            with pytest.raises(ConcurrentTransactions):
                self.partition.end_transactions(producer, epoch, commit, self.now)
            return
        self.end(producer, epoch, self.verdicts.setdefault((producer, epoch), commit))
        if at_once:
            self.commit_some(len(self.pending))

    def end(self, producer: int, epoch: int, commit: bool = False) -> None:
        model, outcome = self.model, Outcome(ended={producer: epoch})
        low = max(model.start, model.log_start)
        pledged = [
            o for o, mark in model.pledged.items() if mark[0] == producer and mark[1] < epoch and o >= low
        ]
        before = dict(model.held)
        for offset in pledged:
            model.held[offset] = Held("nobody", 0, model.deliveries[offset])  # as a delivery that has failed
            if commit and model.pledged[offset][1] == epoch - 1:
                outcome.done.add(offset)
            else:
                model.release(outcome, offset, self.now, None)
        model.held = before
        settlement = self.partition.end_transactions(producer, epoch, commit, self.now)
        assert settlement.update is not None, "it is recorded, whatever it ends"
        self.decisions += 1
        self.pending.append((settlement, outcome))

    # -- what always holds -----------------------------------------------------------------------------

    @invariant()
    def pledges_are_what_the_model_says(self) -> None:
        ledger, low = self.partition.ledger, self.partition.start
        assert ledger.pledges.ended == self.model.ended
        found = {
            offset: (each.producer_id, each.epoch)
            for each in ledger.pledges
            for offset in range(max(each.first, low), each.last + 1)
        }
        assert found == {offset: mark for offset, mark in self.model.pledged.items() if offset >= low}


class PledgingInOrderMachine(PledgingMachine):
    order = Order.KEY


pytestmark = pytest.mark.usefixtures("small_chunks")

PledgingMachine.TestCase.settings = hypothesis_settings(
    max_examples=120, stateful_step_count=60, deadline=None
)
PledgingInOrderMachine.TestCase.settings = hypothesis_settings(
    max_examples=60, stateful_step_count=60, deadline=None
)

TestPledges = PledgingMachine.TestCase
TestPledgesInOrder = PledgingInOrderMachine.TestCase
