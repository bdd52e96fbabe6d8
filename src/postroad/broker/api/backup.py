"""Backup (10011), version 0: what `postroad backup create` copies, and the moment in which it fits together.

Postroad's own, for whoever may act as a node. Not advertised (see `wire.backup`). Logs are answered by the
node that leads them, and only while it certainly does: one that was replaced without knowing it would tell
of a past that the other nodes' answers don't fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.partition import Partition
from postroad.broker.parts import (
    HasColdWorkers,
    HasEvidence,
    HasPartitions,
    HasSecurity,
    HasStore,
    HasTransactions,
)
from postroad.cluster import keys
from postroad.cluster.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from postroad.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    OffsetOutOfRange,
    PostroadError,
    StorageFailed,
)
from postroad.security.resources import Operation
from postroad.security.sealing import seal
from postroad.wire import backup as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.CLUSTER_ACTION)
ADVERTISED: Final = False

READ_BYTES_MAX: Final = 4 * 1024 * 1024  # at once; a single batch may be larger
# What a new cluster makes anew: leases, what only these nodes are bound to, receipts of locks that are gone.
LEFT_OUT: Final = (keys.NODES, keys.CONTROLLER, keys.DIRECTORIES, keys.DRAINS, keys.DELETED, keys.RECEIPTS)
# Verifiers of passwords; web hooks' secrets and headers.
SECRET: Final = (keys.USERS, keys.GROUPS)


class Uses(HasColdWorkers, HasEvidence, HasPartitions, HasSecurity, HasStore, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    return _answer(node, codec.decode_request(call.body, call.version), call.version)


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    return codec.encode_response(codec.BackupAnswer(error.code, str(error)), call.version)


async def _answer(node: Uses, question: codec.AnyQuestion, version: int) -> bytes:
    try:
        answer = await _find(node, question)
    except ApiError as error:
        answer = codec.BackupAnswer(error.code, str(error))
    except OSError as error:
        answer = codec.BackupAnswer(StorageFailed.code, f"A log can't be read: {error.strerror}.")
    return codec.encode_response(answer, version)


async def _find(node: Uses, question: codec.AnyQuestion) -> codec.BackupAnswer:
    match question:
        case codec.ReadStore():
            return codec.BackupAnswer(keys=await _store(node))
        case codec.HoldVerdicts(hold, hold_ms):
            await node.transactions.hold.hold(hold, hold_ms)
            return codec.BackupAnswer()
        case codec.ReleaseVerdicts(hold):
            return codec.BackupAnswer(unbroken=node.transactions.hold.release(hold))
        case codec.FindLogs(kind):
            return codec.BackupAnswer(logs=list(_logs(node, kind)))
        case codec.ReadLog():
            return await _read(node, question)


async def _store(node: Uses) -> list[codec.StoreKey]:
    found = await node.store.list("")
    return [
        _sealed(node, entry.key, entry.value)
        for entry in found.entries
        if entry.key and not entry.key.startswith(LEFT_OUT)
    ]


def _sealed(node: Uses, key: str, value: bytes) -> codec.StoreKey:
    """Without a master key there is nothing to seal with, and nobody who would be kept from the rest."""
    if key.startswith(SECRET) and node.security.enabled:
        return codec.StoreKey(key, seal(node.security.master_key, key, value), True)
    return codec.StoreKey(key, value)


def _logs(node: Uses, kind: str) -> Iterator[codec.LogFacts]:
    for partition in node.partitions:
        if not partition.leads:
            continue
        node.evidence.check(partition)
        if _kind(partition.topic) == kind:
            yield _facts(partition, partition)
        if kind == codec.STATE and partition.ledger is not None:
            yield _facts(partition, partition.ledger)


def _kind(topic: str) -> str:
    kinds = {OFFSETS_TOPIC: codec.STATE, TRANSACTIONS_TOPIC: codec.VERDICTS}
    return kinds.get(topic, codec.MESSAGES)


def _facts(partition: Partition, found: Partition) -> codec.LogFacts:
    log = found.log
    return codec.LogFacts(
        topic_id=partition.topic_id,
        index=partition.index,
        is_ledger=found is not partition,
        log_id=found.topic_id,
        start=log.start_offset,
        end=max(found.high_watermark, log.start_offset),
        purged=log.purged_offset,
        epochs=list(log.leader_epochs.entries),
    )


async def _read(node: Uses, question: codec.ReadLog) -> codec.BackupAnswer:
    partition = node.partitions.led_log(question.log_id, question.index)
    try:
        found = partition.read(question.offset, min(question.bytes_max, READ_BYTES_MAX))
    except OffsetOutOfRange:
        found = None  # retention was faster: the answer says where the log begins
    records = b""
    if found is not None:
        here = found

        def read() -> bytes:
            partition.log.verify(here)
            return here.file.read(here.position, here.length)

        try:
            records = await node.cold_workers.call(read)
        except PostroadError as error:
            raise StorageFailed(f"{partition.topic}-{partition.index} is damaged: {error}") from error
    log = partition.log  # as it is after the read: what compaction has taken by now may lack in the records
    cleaned = log.checkpoint.current.cleaned_offset
    return codec.BackupAnswer(
        records=records, start=log.start_offset, cleaned=cleaned, purged=log.purged_offset
    )
