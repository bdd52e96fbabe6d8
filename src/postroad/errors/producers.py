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


class UnknownProducerId(RequestRefused):
    code = 59
    summary = "Nothing is known of this producer id."


class ProducerFenced(RequestRefused):
    code = 90
    summary = "A newer producer with the same transactional id has taken over."


class TransactionalIdNotFound(RequestRefused):
    code = 105
    summary = "Nothing is known of this transactional id."


class InvalidRequiredAcks(RequestRefused):
    code = 21
    summary = "acks must be 0, 1 or all (-1)."


class NotEnoughReplicas(TryAgain):
    code = 19
    summary = "Fewer replicas are in sync than min.insync.replicas asks for."


class NotEnoughReplicasAfterAppend(TryAgain):
    code = 20
    summary = "The batch was appended, but too few replicas are in sync."
