"""WriteTxnMarkers (27), versions 1–2: transactions end in these partitions.

Sent by the coordinators of transactions, and by operators who give one up. Answered when all markers are
committed, or refused.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.connection import Answer
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import (
    HasClock,
    HasEvidence,
    HasImage,
    HasPartitions,
    HasTransactions,
    HasTurn,
)
from postroad.broker.transactions.markers import Verdict, mark
from postroad.errors import ApiError, UnknownTopicOrPartition
from postroad.security.resources import Operation
from postroad.wire.messages import write_txn_markers as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights()  # ClusterAction, or Alter, of the cluster: asked in `handle`


class Uses(HasClock, HasEvidence, HasImage, HasPartitions, HasTransactions, HasTurn, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    refusal: ApiError | None = None
    try:
        if not call.access.may_cluster(Operation.CLUSTER_ACTION):
            call.access.check_cluster(Operation.ALTER)
        if (name := call.client_id or "").startswith("node-"):
            node.transactions.admit_peer(name, call.connection.serial)
    except ApiError as error:
        refusal = error
    waiting = _Waiting(call.park(), request, call.version)
    for number, marker in enumerate(request.markers):
        verdict = Verdict(
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version > 1,
        )
        for topic in marker.topics:
            for index in topic.partition_indexes:
                _mark(node, verdict, topic.name, index, refusal, waiting, (number, topic.name, index))
    waiting.done(None, None)
    return waiting.answer


def _mark(
    node: Uses,
    verdict: Verdict,
    topic: str,
    index: int,
    refusal: ApiError | None,
    waiting: _Waiting,
    key: tuple[int, str, int],
) -> None:
    done = partial(waiting.done, key)
    waiting.left += 1
    try:
        if refusal is not None:
            raise refusal
        found = node.image.topics.get(topic)
        if found is None:
            raise UnknownTopicOrPartition()
        mark(node, (found.id, index), verdict, done)
    except ApiError as error:
        done(error)


class _Waiting:
    """A request whose markers are on their way."""

    def __init__(self, answer: Answer, request: codec.WriteTxnMarkersRequest, version: int) -> None:
        self.answer = answer
        self.left = 1
        self._request = request
        self._version = version
        self._codes: dict[tuple[int, str, int], int] = {}

    def done(self, key: tuple[int, str, int] | None, error: ApiError | None) -> None:
        if key is not None:
            self._codes[key] = 0 if error is None else error.code
        self.left -= 1
        if not self.left and not self.answer.abandoned:
            self.answer.complete(codec.encode_response(self._response(), self._version))

    def _response(self) -> codec.WriteTxnMarkersResponse:
        return codec.WriteTxnMarkersResponse(
            markers=[
                codec.WritableTxnMarkerResult(
                    marker.producer_id,
                    [
                        codec.WritableTxnMarkerTopicResult(
                            topic.name,
                            [
                                codec.WritableTxnMarkerPartitionResult(
                                    index, self._codes[number, topic.name, index]
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for number, marker in enumerate(self._request.markers)
            ]
        )
