"""Peek (10001), version 0: the messages of a subscription with their state, none of them touched.

Postroad's own: Kafka has nothing of the kind. Not advertised (see `wire.peek`).
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasSubscriptions
from postroad.broker.subscriptions.queue import Queue
from postroad.errors import ApiError, GroupIdNotFound
from postroad.security.resources import Operation
from postroad.wire import peek as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.DESCRIBE, topic=Operation.DESCRIBE)
ADVERTISED: Final = False

MESSAGES_MAX: Final = 100_000  # in one answer


class Uses(HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    try:
        call.access.check_group(request.group)
        call.access.check_topic(request.topic_id)
        response = _peek(_queue(node, request), request)
    except ApiError as error:
        response = codec.PeekResponse(error_code=error.code, error_message=str(error))
    return codec.encode_response(response, call.version)


def _queue(node: Uses, request: codec.PeekRequest) -> Queue:
    node.subscriptions.check_ready(request.group)
    node.subscriptions.leaders.check_loaded(request.topic_id, request.partition)
    queue = node.subscriptions.queue(request.group, request.topic_id, request.partition)
    if queue is None:
        raise GroupIdNotFound("There is no subscription of this name on this partition.")
    return queue


def _peek(queue: Queue, request: codec.PeekRequest) -> codec.PeekResponse:
    core = queue.core
    first = max(core.start, request.first_offset)
    count = min(max(request.max_messages, 0), MESSAGES_MAX, queue.end - first)
    queue.scan_to(first + count)
    ranges = core.peek(first, count, queue.now()) if count > 0 else []
    end = queue.end  # what is done does not count, so more was looked at
    return codec.PeekResponse(
        start_offset=core.start,
        high_watermark=end,
        in_flight=core.in_hand,
        ready=core.ready,
        waiting=core.waiting,
        delayed=core.delayed,
        dying=sum(dying.last - dying.first + 1 for dying in core.ledger.dying),
        ranges=[
            codec.PeekRange(*found._replace(last=min(found.last, end - 1)))
            for found in ranges
            if found.first < end
        ],
    )
