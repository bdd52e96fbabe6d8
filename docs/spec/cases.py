"""The checks of the model: what each lets happen, which rule it takes away, and what must come of it.

`os-…`, `sync-…` and `q-…` are the rules as they are and must pass. `m-…` are mutants, `a-…` and `aq-…` are
plausible readings of the rules that are not safe: for each of these TLC must find a counterexample. Names say
the flush mode, how the case begins, and which faults it allows: `os-one-cut2-heals`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

MESSAGES: Final = ("m",)
BOTH_LOGS: Final = ("m", "q")  # and the queue's ledger

SAFE: Final = ("NoLoss", "OneValue", "LogMatching", "EpochsRise", "OneLeader", "NotBack")
SAFE_QUEUE: Final = (*SAFE, "S4", "LedgerRefers")
# What holds even where more machines lose power than is promised to be survived.
NEVER_TWO_VALUES: Final = ("LogMatching", "EpochsRise", "OneLeader")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One check: the bounds of the model, the mutations, the invariants and the expected result."""

    flush: Literal["os", "sync"] = "os"
    logs: tuple[str, ...] = MESSAGES
    replicas: int = 3
    min_insync: int = 2
    records: int = 2  # messages, those of `base` among them
    base: int = 0  # messages that every replica has from the start
    accepts: int = 0  # records of the ledger
    kills: int = 0  # deaths of a process
    power_cuts: int = 0
    expiries: int = 0  # leases that a live node loses
    shrinks: int = 0  # of the ISR, proposed by a leader
    moves: int = 0  # of a leader that lives
    lowered_minimum: int = 0  # changes of min.insync
    # True: a fetch may be handled at any later time, even after its sender died. False: at once, so that
    # there are fewer states; answers may still be lost.
    late: bool = False
    # All in the ISR; or one outside of it; or an ISR of one and one replica in the ELR.
    start: Literal["whole", "two", "one"] = "whole"
    mutations: tuple[str, ...] = ()
    invariants: tuple[str, ...] | None = None
    properties: tuple[str, ...] = ()
    fails: bool = False  # TLC must find a counterexample
    may_rest: bool | None = None  # rest anywhere; unless said otherwise only where a counterexample is sought

    @property
    def checked(self) -> tuple[str, ...]:
        """The invariants that are checked."""
        if self.invariants is not None:
            return self.invariants
        return SAFE_QUEUE if "q" in self.logs else SAFE

    @property
    def rests_anywhere(self) -> bool:
        """True where a state in which nothing can happen any more is no error."""
        return self.fails if self.may_rest is None else self.may_rest


def _must_fail(cases: dict[str, Case]) -> dict[str, Case]:
    return {name: replace(case, fails=True) for name, case in cases.items()}


REPLICATION: Final = {
    "os-kill1": Case(late=True, kills=1),
    "os-kill2": Case(records=1, kills=2),
    "os-kill1-exp1": Case(records=1, kills=1, expiries=1),
    "os-exp1": Case(late=True, expiries=1),
    "os-shrink1-kill1": Case(late=True, records=1, shrinks=1, kills=1),
    "os-cut1": Case(late=True, power_cuts=1),
    "os-cut1-late": Case(late=True, records=1, power_cuts=1, shrinks=1),
    "os-cut1-kill1": Case(records=1, power_cuts=1, kills=1),
    "os-cut1-shrink1": Case(records=1, power_cuts=1, shrinks=1),
    "os-cut1-exp1": Case(records=1, power_cuts=1, expiries=1),
    "os-min1-kill2": Case(min_insync=1, records=1, kills=2),
    "os-move1-kill1": Case(records=1, moves=1, kills=1),
    # No message is lost if a leader is moved behind its back; only queues suffer (aq-moveByController).
    "os-moveByController1-kill1": Case(records=1, moves=1, kills=1, mutations=("moveByController",)),
    "os-overtaken-move3": Case(records=1, moves=3, mutations=("overtakenFetch",)),
    "os-overtaken-two-cut1": Case(start="two", records=1, power_cuts=1, mutations=("overtakenFetch",)),
    "os-overtaken-cut1-kill1": Case(records=1, power_cuts=1, kills=1, mutations=("overtakenFetch",)),
    "os-watermark-rises": Case(kills=1, expiries=1, properties=("WatermarkRises",)),
    "os-one-kill2": Case(start="one", records=1, kills=2),
    "os-one-cut1-kill1": Case(start="one", base=1, power_cuts=1, kills=1),
    "os-one-lower-kill1": Case(start="one", records=1, kills=1, lowered_minimum=1),
    "sync-cut1": Case(late=True, flush="sync", records=1, power_cuts=1),
    "sync-cut1-kill1": Case(flush="sync", records=1, power_cuts=1, kills=1),
    "sync-cut2": Case(flush="sync", records=1, power_cuts=2),
    "sync-cut3": Case(flush="sync", records=1, power_cuts=3),
    # More cuts than are promised to be survived: data may be lost, but the partition heals, and an epoch
    # never has two values at one offset.
    "os-cut3-heals": Case(records=1, power_cuts=3, invariants=NEVER_TWO_VALUES),
    "os-one-cut2-heals": Case(start="one", records=1, power_cuts=2, invariants=NEVER_TWO_VALUES),
}

MUTANTS: Final = _must_fail(
    {
        "m-truncateToWatermark": Case(mutations=("truncateToWatermark",), kills=2),
        "m-committedIsr": Case(mutations=("committedIsr",), records=1, shrinks=1, kills=1),
        "m-joinBelowStart": Case(mutations=("joinBelowStart",), start="two", records=1, kills=2),
        "m-joinBelowHw": Case(mutations=("joinBelowHw",), records=1, shrinks=1, kills=1),
        "m-keepIsrAfterReboot": Case(mutations=("keepIsrAfterReboot",), records=1, power_cuts=1, kills=1),
        "m-shrinkEarly": Case(mutations=("shrinkEarly",), records=1, shrinks=1, kills=1),
        "m-noBrokerEpoch": Case(mutations=("noBrokerEpoch",), start="two", base=1, power_cuts=1, kills=1),
        "m-ackBeforeSync": Case(mutations=("ackBeforeSync",), flush="sync", records=1, power_cuts=1, kills=1),
        # Without the overtaken fetch it is not caught: every promise that arrives is still true.
        "m-noEpochCheck": Case(mutations=("overtakenFetch", "noEpochCheck"), records=1, moves=3),
        "m-oldLifeCounts": Case(
            mutations=("overtakenFetch", "oldLifeCounts"), start="two", records=1, power_cuts=1, kills=1
        ),
        "m-noResign": Case(mutations=("noResign",), flush="sync", power_cuts=1),
        "m-divergingCounts": Case(mutations=("divergingCounts",), expiries=1, kills=1),
        "m-noMinIsr": Case(mutations=("noMinIsr",), start="one", records=1, kills=1),
    }
)

READINGS: Final = _must_fail(
    {
        "a-minMaximal": Case(mutations=("minMaximal",), start="one", records=1, kills=1),
        "a-elrKept": Case(mutations=("elrKept",), start="one", records=1, kills=2),
        "a-unknownIsFailed": Case(mutations=("unknownIsFailed",), records=1, shrinks=1, kills=1),
        "a-minKeepsElr": Case(mutations=("minKeepsElr",), start="one", records=1, kills=1, lowered_minimum=1),
        "a-bootRecordedFirst": Case(mutations=("bootRecordedFirst",), records=1, power_cuts=1, kills=1),
        # No data is lost here: what is found is a partition that nobody can ever lead again.
        "a-literalOnlyMe": Case(
            mutations=("literalOnlyMe",),
            start="one",
            records=1,
            power_cuts=2,
            invariants=NEVER_TWO_VALUES,
            may_rest=False,
        ),
        "a-literalOnlyMe-cut3": Case(
            mutations=("literalOnlyMe",), records=1, power_cuts=3, invariants=NEVER_TWO_VALUES, may_rest=False
        ),
        # No mutation: a leader that was deposed may have less than what consumers were shown.
        "a-zombieOutOfRange": Case(records=1, expiries=1, invariants=("NoOutOfRange",)),
    }
)

QUEUES: Final = {
    "q-os-kill1": Case(logs=BOTH_LOGS, records=1, accepts=1, kills=1),
    "q-os-exp1": Case(logs=BOTH_LOGS, records=1, accepts=1, expiries=1),
    "q-os-cut1": Case(logs=BOTH_LOGS, records=1, accepts=1, power_cuts=1),
    "q-sync-cut1": Case(logs=BOTH_LOGS, flush="sync", records=1, accepts=1, power_cuts=1),
    "q-two-kill1": Case(logs=BOTH_LOGS, start="two", base=1, records=1, accepts=1, kills=1),
    "q-one-exp1": Case(logs=BOTH_LOGS, start="one", base=1, records=1, accepts=1, expiries=1),
    "q-os-shrink1-kill1": Case(logs=BOTH_LOGS, records=1, accepts=1, shrinks=1, kills=1),
    "q-os-exp1-shrink1": Case(logs=BOTH_LOGS, records=1, accepts=1, expiries=1, shrinks=1),
    "q-os-move1-shrink1": Case(logs=BOTH_LOGS, records=1, accepts=1, moves=1, shrinks=1),
    "q-loadGated": Case(logs=BOTH_LOGS, records=1, accepts=1, kills=1, mutations=("loadToWatermark",)),
    # One replica, flush `os`: a power cut takes the messages' tail and leaves the ledger's.
    "q-rf1-cut1": Case(
        logs=BOTH_LOGS,
        replicas=1,
        min_insync=1,
        accepts=2,
        power_cuts=2,
        invariants=("LedgerRefers", "LogMatching"),
    ),
}

QUEUE_READINGS: Final = _must_fail(
    {
        "aq-loadAtOnce": Case(
            mutations=("loadToWatermark", "loadAtOnce"), logs=BOTH_LOGS, records=1, accepts=1, kills=1
        ),
        "aq-noEvidence": Case(mutations=("noEvidence",), logs=BOTH_LOGS, records=1, accepts=1, expiries=1),
        "aq-fetchIsEvidence": Case(
            mutations=("fetchIsEvidence2",), logs=BOTH_LOGS, base=1, records=1, accepts=1, expiries=1
        ),
        "aq-fetchIsEvidence-alone": Case(
            mutations=("fetchIsEvidence",),
            logs=BOTH_LOGS,
            start="one",
            base=1,
            records=1,
            accepts=1,
            expiries=1,
        ),
        "aq-registerStale": Case(
            mutations=("registerStale",), logs=BOTH_LOGS, records=1, accepts=1, expiries=1
        ),
        "aq-moveByController": Case(
            mutations=("moveByController",), logs=BOTH_LOGS, records=1, accepts=1, moves=1, shrinks=1
        ),
        "aq-joinMessagesOnly": Case(
            mutations=("joinMessagesOnly",),
            logs=BOTH_LOGS,
            start="two",
            base=1,
            records=1,
            accepts=1,
            kills=1,
        ),
        "aq-rf1-cut1": Case(
            mutations=("ledgerKept",),
            logs=BOTH_LOGS,
            replicas=1,
            min_insync=1,
            accepts=1,
            power_cuts=1,
            invariants=("LedgerRefers",),
        ),
        "aq-answerFromMemory": Case(
            mutations=("answerFromMemory",), logs=BOTH_LOGS, base=1, records=1, accepts=1, kills=2
        ),
    }
)

CASES: Final = REPLICATION | MUTANTS | READINGS | QUEUES | QUEUE_READINGS
