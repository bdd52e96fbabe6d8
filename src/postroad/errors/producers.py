"""What is said to producers."""

from __future__ import annotations

from postroad.errors.base import RequestRefused, TryAgain


class OutOfOrderSequence(RequestRefused):
    code = 45
    summary = "A batch before this one is missing: the sequence number skips."


class DuplicateSequence(RequestRefused):
    code = 46
    summary = "The batch was appended before, too long ago to say at which offset."


class InvalidProducerEpoch(RequestRefused):
    code = 47
    summary = "A newer producer with the same id has taken over."


class InvalidTransactionState(RequestRefused):
    code = 48
    summary = "The transaction is not in a state that allows this."


class InvalidProducerIdMapping(RequestRefused):
    code = 49
    summary = "The transactional id belongs to another producer id."


class InvalidTransactionTimeout(RequestRefused):
    code = 50
    summary = "The transaction timeout is not between 1 ms and what this node allows."


class ConcurrentTransactions(TryAgain):
    code = 51
    summary = "The transactional id's last transaction is still being completed."


class TransactionCoordinatorFenced(RequestRefused):
    code = 52
    summary = "A newer coordinator of this transactional id has written to the partition."


class UnknownProducerId(RequestRefused):
    code = 59
    summary = "Nothing is known of this producer id."


class ProducerFenced(RequestRefused):
    code = 90
    summary = "A newer producer with the same transactional id has taken over."


class TransactionalIdNotFound(RequestRefused):
    code = 105
    summary = "Nothing is known of this transactional id."


class TransactionAbortable(RequestRefused):
    code = 120
    summary = "The partition is not part of the transaction: abort it and begin anew."


class InvalidRequiredAcks(RequestRefused):
    code = 21
    summary = "acks must be 0, 1 or all (-1)."


class NotEnoughReplicas(TryAgain):
    code = 19
    summary = "Fewer replicas are in sync than min.insync.replicas asks for."


class NotEnoughReplicasAfterAppend(TryAgain):
    code = 20
    summary = "The batch was appended, but too few replicas are in sync."
