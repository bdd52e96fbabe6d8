"""The state machine of one transactional id: each function decides, and nothing is changed.

    state            InitProducerId         add, join            EndTxn
    (none)           Empty, epoch 0         refused              refused
    Empty, Complete  Empty, epoch + 1       Ongoing              version 1: the same verdict again is fine
                                                                 version 2: a retry is known by `last_epoch`;
                                                                 an abort of nothing raises the epoch
    Ongoing          Prepare abort, then    Ongoing, more of it  Prepare; version 2: epoch + 1
                     decided anew
    Prepare          later                  later                later

"Later" is ConcurrentTransactions: the caller lets requests wait until the markers are written, and asks
again.

Version 1: the producer keeps its epoch from one transaction to the next. Version 2 (KIP-890): each
transaction has an epoch of its own, so that nothing of one can come late into the next. Partitions and groups
join with the first batch or offset that comes there; nobody adds them before.

X1 epochs of a producer id only rise, and a fence raises them once: one that nobody is told of (KIP-588).
X2 no producer is given an epoch above EPOCH_MAX: a fence has room for one more. Whoever needs another gets a
   new producer id, which is in hand before the decision.
X3 in Prepare and Complete neither partitions nor the verdict change: markers may be sent again and again.
X4 what joins by itself never begins a second transaction of one epoch: it may be late.

Several producers may write in one transaction: `shared` has the rest of that.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from postroad.errors import (
    ApiError,
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTransactionState,
    ProducerFenced,
)
from postroad.now import Now

NONE: Final = -1
EPOCH_MAX: Final = 32_766  # of a producer; 32,767 is for fencing one (X2)
RUNS_MAX: Final = 16  # of one batch that were aborted are remembered: each had a driver of its own


class TransactionState(Enum):
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


PREPARED: Final = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
COMPLETE: Final = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

Partition = tuple[bytes, int]
"""Topic id and index."""


class Writers(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Those that share transactions of one id (`shared`). A producer stays from one transaction to the next,
    with a higher epoch: partitions remember producers for a day, and so need to remember few."""

    run: str = ""  # who writes: one try to write the batch
    batch: int = NONE  # its number
    done: int = NONE  # the last batch that was committed
    producers: list[tuple[int, int]] = []  # id and epoch; those of the open transaction come first
    count: int = 0  # so many of them write in the transaction that is open or being completed
    kept: list[int] = []  # in PrepareCommit: the ids of those whose messages count
    aborted: list[str] = []  # runs whose transaction was aborted since the last commit: they write no more

    @property
    def open(self) -> list[tuple[int, int]]:
        """Those that write in the transaction."""
        return self.producers[: self.count]

    def ended(self, committed: bool) -> Writers:
        """The transaction is complete; whoever wrote in it has to enter the next one."""
        if not self.count:
            return self
        raised = [(producer_id, epoch + 1) for producer_id, epoch in self.open]
        return Writers(
            run=self.run,
            batch=self.batch,
            done=self.batch if committed else self.done,
            producers=[each for each in raised if each[1] <= EPOCH_MAX] + self.producers[self.count :],
            aborted=[] if committed else [*self.aborted, self.run][-RUNS_MAX:],
        )


class Transaction(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """All that is known of a transactional id; also the value of its record."""

    state: TransactionState
    producer_id: int
    epoch: int
    timeout_ms: int
    changed_ms: int  # wall clock: when the state was written
    last_epoch: int = NONE  # version 2: the one that the last EndTxn came with
    previous_id: int = NONE  # the producer id before this one, whose epochs were used up
    next_id: int = NONE  # in Prepare: the producer id that follows this one
    started_ms: int = NONE  # wall clock: of the transaction that is open or being completed
    version: int = 1
    partitions: dict[str, list[int]] = {}  # by topic id
    groups: list[str] = []
    writers: Writers | None = None  # of transactions that several producers write in (`shared`)

    @property
    def is_shared(self) -> bool:
        """Whether several producers write in the transaction that is open or being completed."""
        return self.writers is not None and self.writers.count > 0

    def producers(self) -> list[Producer]:
        """Who writes in the transaction that is open or being completed."""
        if self.writers is not None and self.writers.count:
            return [Producer(*each) for each in self.writers.open]
        return [Producer(self.producer_id, self.epoch)]

    def places(self) -> set[Partition]:
        return {(bytes.fromhex(topic), index) for topic, found in self.partitions.items() for index in found}

    def reaches(self, where: Partition | str) -> bool:
        """Whether the partition, or the group, is part of it."""
        return where in self.groups if isinstance(where, str) else where in self.places()


class Producer(NamedTuple):
    """Who may write: what InitProducerId and EndTxn answer."""

    producer_id: int
    epoch: int


class Decision(NamedTuple):
    """`transaction` is what is to be written, None if nothing is; `again`: after that, decide anew."""

    answer: Producer | None
    transaction: Transaction | None = None
    again: bool = False


def begin(
    known: Transaction | None, timeout_ms: int, expected: Producer | None, fresh_id: int, now: Now
) -> Decision:
    """InitProducerId. `expected` is who the producer thinks that it is (KIP-360); `fresh_id` is a producer id
    that was never used. Raises ProducerFenced, ConcurrentTransactions."""
    if known is None:
        made = Transaction(
            state=TransactionState.EMPTY,
            producer_id=fresh_id,
            epoch=0,
            timeout_ms=timeout_ms,
            changed_ms=now.wall_ms,
        )
        return Decision(Producer(fresh_id, 0), made)
    if known.state in PREPARED:
        raise ConcurrentTransactions()
    if expected is not None and known.state is not TransactionState.ONGOING and _is_retry(known, expected):
        return Decision(Producer(known.producer_id, known.epoch))
    if expected is not None and expected != (known.producer_id, known.epoch):
        raise ProducerFenced()
    if known.state is TransactionState.ONGOING:
        return Decision(None, fence(known, now), again=True)
    last_epoch = known.epoch if expected is not None else NONE
    following = next_epoch(known, fresh_id, last_epoch)
    empty = msgspec.structs.replace(
        following,
        state=TransactionState.EMPTY,
        timeout_ms=timeout_ms,
        changed_ms=now.wall_ms,
        started_ms=NONE,
    )
    return Decision(Producer(empty.producer_id, empty.epoch), empty)


def add(
    known: Transaction | None,
    who: Producer,
    partitions: Iterable[Partition],
    groups: Iterable[str],
    version: int,
    now: Now,
) -> Decision:
    """The transaction reaches these partitions and groups, too; it begins if it has not yet."""
    known = check(known, who)
    if known.state in PREPARED:
        raise ConcurrentTransactions()
    if known.state is TransactionState.ONGOING:
        places, found = known.places(), list(known.groups)
    else:
        places, found = set(), []
    news = set(partitions) - places
    groups = [group for group in dict.fromkeys(groups) if group not in found]
    if known.state is TransactionState.ONGOING and not news and not groups:
        return Decision(who)
    started_ms = known.started_ms if known.state is TransactionState.ONGOING else now.wall_ms
    return Decision(
        who,
        msgspec.structs.replace(
            known,
            state=TransactionState.ONGOING,
            partitions=_packed(places | news),
            groups=found + groups,
            started_ms=started_ms,
            changed_ms=now.wall_ms,
            version=version if known.state is not TransactionState.ONGOING else max(version, known.version),
        ),
    )


def join(
    known: Transaction | None,
    who: Producer,
    partitions: Iterable[Partition],
    groups: Iterable[str],
    now: Now,
) -> Decision:
    """Version 2: something has come to these partitions and groups, which makes them part of it (X4)."""
    known = check(known, who)
    decision = add(known, who, partitions, groups, 2, now)
    if decision.transaction is not None and known.state is not TransactionState.EMPTY and known.version < 2:
        raise InvalidTransactionState("That was not added to the transaction.")
    return decision


def end(
    known: Transaction | None, who: Producer, commit: bool, version: int, fresh_id: int, now: Now
) -> Decision:
    """EndTxn. The answer leaves when the verdict is committed; whoever is answered so writes from then on."""
    if known is not None and version > 1 and _is_retry(known, who):
        return _end_again(known, commit)
    known = check(known, who)
    if known.is_shared:
        raise InvalidTransactionState("Several producers write in the transaction: they end it together.")
    if known.state is TransactionState.ONGOING:
        prepared = _prepare(known, commit, version, fresh_id, now)
        if prepared.next_id != NONE:
            return Decision(Producer(prepared.next_id, 0), prepared)
        return Decision(Producer(prepared.producer_id, prepared.epoch), prepared)
    if known.state in PREPARED:
        raise _while_prepared(known, commit)
    if version > 1:
        return _end_nothing(known, commit, fresh_id, now)
    if known.state is (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT):
        return Decision(who)
    raise InvalidTransactionState("There is no open transaction that could end so.")


def fence(known: Transaction, now: Now) -> Transaction:
    """Abort an open transaction in the name of nobody: its producer's epoch is over (X1)."""
    assert known.state is TransactionState.ONGOING, f"a transaction in {known.state} is not aborted"
    return msgspec.structs.replace(
        known,
        state=TransactionState.PREPARE_ABORT,
        epoch=known.epoch + 1,
        last_epoch=NONE,
        changed_ms=now.wall_ms,
    )


def complete(known: Transaction, now: Now) -> Transaction:
    """All markers are committed."""
    assert known.state in PREPARED, f"a transaction in {known.state} has no markers"
    commit = known.state is TransactionState.PREPARE_COMMIT
    done = msgspec.structs.replace(
        known,
        state=TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT,
        partitions={},
        groups=[],
        changed_ms=now.wall_ms,
        writers=known.writers.ended(commit)
        if known.writers is not None and known.is_shared
        else known.writers,
    )
    if known.next_id == NONE:
        return done
    return msgspec.structs.replace(
        done, producer_id=known.next_id, epoch=0, previous_id=known.producer_id, next_id=NONE
    )


def verify(known: Transaction | None, who: Producer, partitions: Iterable[Partition]) -> set[Partition]:
    """Those of the partitions that are not part of the open transaction."""
    known = check(known, who)
    if known.state in PREPARED:
        raise ConcurrentTransactions()
    return set(partitions) - (known.places() if known.state is TransactionState.ONGOING else set())


def check(known: Transaction | None, who: Producer) -> Transaction:
    """Raises InvalidProducerIdMapping, ProducerFenced unless this producer may speak now."""
    if known is not None and known.writers is not None and known.is_shared:
        if known.state is TransactionState.ONGOING and who in known.writers.open:
            return known
        if who.producer_id == known.producer_id:
            raise ProducerFenced()  # each of those that share it is a producer of its own
    if known is None or who.producer_id != known.producer_id:
        if known is not None and known.state in PREPARED and who == (known.next_id, 0):
            raise ConcurrentTransactions()  # it has been told who it will be (X2)
        raise InvalidProducerIdMapping()
    if who.epoch != known.epoch or who.epoch > EPOCH_MAX:  # nobody was ever told of a fence's (X1)
        raise ProducerFenced()
    return known


def _prepare(known: Transaction, commit: bool, version: int, fresh_id: int, now: Now) -> Transaction:
    prepared = msgspec.structs.replace(
        known,
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        changed_ms=now.wall_ms,
        version=version,
    )
    if version < 2:
        return prepared
    next_id = fresh_id if known.epoch >= EPOCH_MAX else NONE
    return msgspec.structs.replace(prepared, epoch=known.epoch + 1, last_epoch=known.epoch, next_id=next_id)


def _end_nothing(known: Transaction, commit: bool, fresh_id: int, now: Now) -> Decision:
    """The producer gets its new epoch all the same: it has given up the old one (KAFKA-18464)."""
    if commit:
        raise InvalidTransactionState("There is no open transaction to commit.")
    following = msgspec.structs.replace(
        next_epoch(known, fresh_id, known.epoch),
        state=TransactionState.COMPLETE_ABORT,
        changed_ms=now.wall_ms,
        version=2,
    )
    return Decision(Producer(following.producer_id, following.epoch), following)


def _end_again(known: Transaction, commit: bool) -> Decision:
    """The answer to this EndTxn was lost: give it again."""
    if known.state in PREPARED:
        raise _while_prepared(known, commit)
    if known.state not in COMPLETE:  # the producer has gone on since: this one is late
        raise ProducerFenced()
    if known.state is not (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT):
        raise InvalidTransactionState("The transaction has ended otherwise.")
    return Decision(Producer(known.producer_id, known.epoch))


def _while_prepared(known: Transaction, commit: bool) -> ApiError:
    if (known.state is TransactionState.PREPARE_COMMIT) != commit:
        return InvalidTransactionState("The transaction is ending otherwise.")
    return ConcurrentTransactions()


def _is_retry(known: Transaction, who: Producer) -> bool:
    """Whether this is the producer as it was before its epoch was raised at its own request."""
    if who.epoch != known.last_epoch or known.last_epoch == NONE:
        return False
    rotated = known.epoch == 0 and who.producer_id == known.previous_id
    raised = known.epoch == known.last_epoch + 1 and who.producer_id == known.producer_id
    return rotated or raised


def next_epoch(known: Transaction, fresh_id: int, last_epoch: int) -> Transaction:
    """The id's next producer (X2)."""
    if known.epoch < EPOCH_MAX:
        return msgspec.structs.replace(known, epoch=known.epoch + 1, last_epoch=last_epoch)
    return msgspec.structs.replace(
        known, producer_id=fresh_id, epoch=0, last_epoch=last_epoch, previous_id=known.producer_id
    )


def _packed(places: Iterable[Partition]) -> dict[str, list[int]]:
    packed: dict[str, list[int]] = {}
    for topic_id, index in sorted(places):
        packed.setdefault(topic_id.hex(), []).append(index)
    return packed
