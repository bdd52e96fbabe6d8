"""ShareAcknowledge (79), versions 1–2: messages are accepted, released, rejected; locks are renewed (2).

The answer waits until what was said is durable (S4). With the session's final epoch the member leaves: what
it still holds is released. Where an owner is named (a tag of our own) it speaks of what was acquired in that
name, and no session is asked for: any gateway may settle what another one has received. An owner's accept
counts without a lock, too, if the message was delivered and nobody else has it (`queues.late_accepts`): its
receipts outlive this node. An owner may ask for less, or for more (another tag, `late`). Whoever asks a node
that does not lead hears who does (KIP-951).

Where a producer is named (a tag as well, until KIP-1289 is final) messages are accepted as a part of its
transaction: they are done if it commits, and come again if it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, cast

from postroad.broker.access import Access, Rights
from postroad.broker.cluster_view import ClusterView
from postroad.broker.dispatch import Call, Result
from postroad.broker.partitions import TopicPartition
from postroad.broker.parts import (
    HasEvidence,
    HasImage,
    HasRegistration,
    HasSubscriptions,
    HasTransactions,
)
from postroad.broker.subscriptions.acknowledgements import Acknowledgements
from postroad.broker.subscriptions.pledges import Pledges, check_possible
from postroad.broker.subscriptions.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession
from postroad.cluster.group_config import BACKOFF_MS_MAX, LOCK_MS_MAX
from postroad.errors import ApiError, InvalidRequest, InvalidShareSessionEpoch
from postroad.queues.acknowledgement import LATE_ACCEPTS, LATE_CHANGES, NOTHING_LATE
from postroad.queues.share_partition import AckBatch
from postroad.security.resources import Operation
from postroad.wire import share_acknowledge as codec
from postroad.wire import share_requests
from postroad.wire.share_requests import NOT_GIVEN, InTransaction, PartitionAcknowledgements

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ, topic=Operation.READ, transactional_id=Operation.WRITE)

MEMBER_CHARACTERS_MAX: Final = 36  # a UUID's, as in Kafka
OWNER_CHARACTERS_MAX: Final = 64
REASON_CHARACTERS_MAX: Final = 1000  # it is kept in memory and in the ledger until the letter is written

_LATE_KINDS: Final = {
    share_requests.NOTHING_LATE: NOTHING_LATE,
    share_requests.LATE_ACCEPTS: LATE_ACCEPTS,
    share_requests.LATE_CHANGES: LATE_CHANGES,
}


class Uses(HasEvidence, HasImage, HasRegistration, HasSubscriptions, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode(call.body, call.version)
    group, version = request.group_id or "", call.version
    try:
        check_access(call.access, group, request.owner)
        check_owner(group, request.owner)
        _check_reason(request.reason)
        if request.transaction is not None:
            check_possible(node, call.access, request.transaction)
        session = None if request.owner else _session(node, call, request)
    except ApiError as error:
        return codec.encode([], version, 0, error.code, str(error))
    if request.transaction is not None:
        return _pledge(node, call, request, request.transaction, session)
    answer = call.park()

    def done() -> None:
        if session is not None and request.share_session_epoch == FINAL_EPOCH:
            node.subscriptions.membership.end_session(session)
        if not answer.abandoned:
            answer.complete(_encode(node, call, group, acknowledgements.errors))

    holder = request.owner or request.member_id or ""
    acknowledgements = Acknowledgements(node, call.access, group, holder, request.is_renew_ack, done)
    delay_ms = given(request.delay_ms, BACKOFF_MS_MAX)
    acknowledgements.take(
        named_in(request.partitions),
        given(request.lock_ms),
        delay_ms,
        late=_LATE_KINDS.get(request.late, LATE_ACCEPTS) if request.owner else NOTHING_LATE,
        reason=request.reason,
    )
    return answer


async def _pledge(
    node: Uses,
    call: Call,
    request: codec.ShareAcknowledgeRequest,
    transaction: InTransaction,
    session: ShareSession | None,
) -> bytes:
    group, holder = request.group_id or "", request.owner or request.member_id or ""
    pledges = Pledges(node, call.access, group, holder, transaction)
    errors = await pledges.take(named_in(request.partitions))
    if session is not None and request.share_session_epoch == FINAL_EPOCH:
        node.subscriptions.membership.end_session(session)
    return _encode(node, call, group, errors)


def check_access(access: Access, group: str, owner: str) -> None:
    """Raises unless the caller may receive for the group; in the name of an owner a gateway may only, which
    asks whom it receives for."""
    if owner:
        access.check_cluster(Operation.CLUSTER_ACTION)
    access.check_group(group)


def check_owner(group: str, owner: str) -> None:
    if not group:
        raise InvalidRequest("The group id is empty.")
    if len(owner) > OWNER_CHARACTERS_MAX:
        raise InvalidRequest(f"An owner's name has at most {OWNER_CHARACTERS_MAX} characters.")


def _check_reason(reason: str) -> None:
    if len(reason) > REASON_CHARACTERS_MAX:
        raise InvalidRequest(f"A reason to reject has at most {REASON_CHARACTERS_MAX} characters.")


def _session(node: Uses, call: Call, request: codec.ShareAcknowledgeRequest) -> ShareSession:
    group, member, epoch = request.group_id or "", request.member_id or "", request.share_session_epoch
    check_member(member)
    if epoch == INITIAL_EPOCH:
        raise InvalidShareSessionEpoch("A session is opened by ShareFetch.")
    return node.subscriptions.sessions.go_on(group, member, epoch, call.connection)


def check_member(member: str) -> None:
    if not 0 < len(member) <= MEMBER_CHARACTERS_MAX:
        raise InvalidRequest(f"A member id has 1 to {MEMBER_CHARACTERS_MAX} characters.")


def named_in(partitions: Sequence[PartitionAcknowledgements]) -> dict[TopicPartition, list[AckBatch]]:
    """Every partition once, though clients may name one twice: to read it, and with acknowledgements."""
    named: dict[TopicPartition, list[AckBatch]] = {}
    for topic, index, batches in partitions:
        if (topic, index) in named:
            named[topic, index] += cast("list[AckBatch]", batches)
        else:
            named[topic, index] = cast("list[AckBatch]", batches)  # the same fields: none is copied
    return named


def given(ms: int, most: int = LOCK_MS_MAX) -> int | None:
    """A private tag's value: None where the subscription's own holds. No request gets more than a config
    could ask for."""
    return None if ms == NOT_GIVEN else min(ms, most)


def _encode(node: Uses, call: Call, group: str, errors: Mapping[TopicPartition, ApiError | None]) -> bytes:
    version = call.version
    lock_ms = node.subscriptions.settings(group).lock_ms
    if not any(errors.values()):
        return codec.encode([codec.PartitionAnswer(*where) for where in errors], version, lock_ms)
    view = ClusterView(node.image, node.registration.me, call.connection.listener)
    answers = [_answer(view, where, error) for where, error in errors.items()]
    endpoints = view.endpoints(answer.leader for answer in answers if answer.leader is not None)
    return codec.encode(answers, version, lock_ms, endpoints=endpoints)


def _answer(view: ClusterView, where: TopicPartition, error: ApiError | None) -> codec.PartitionAnswer:
    if error is None:
        return codec.PartitionAnswer(*where)
    return codec.PartitionAnswer(*where, error.code, str(error), view.hint_after(*where, error))
