"""Locks in the name of an owner: what was fetched in it can be settled over any connection, by any process.

A share session's locks end with its connection. A gateway's must not: whoever received a message over HTTP
comes back with a receipt, perhaps to another gateway. So it fetches in the name of an owner, a random word
that the receipt carries, and settles in that name without a session. Postroad only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from postroad.client.client import Client
from postroad.client.share_session import AckBatch, Tagged, Terms, TopicIdPartition, refused_in, said_of
from postroad.errors import ApiError, by_code
from postroad.wire.messages import share_acknowledge
from postroad.wire.share_requests import write_private_tags

LANE: Final = "settlements"
NOBODY: Final = "-"  # a member id is asked for, and not looked at


async def settle(
    client: Client,
    node: int,
    group: str,
    owner: str,
    batches: Mapping[TopicIdPartition, Sequence[AckBatch]],
    terms: Terms,
) -> dict[TopicIdPartition, ApiError]:
    """Durable afterwards, but for the partitions with an error: of these nothing was changed.

    One try; a TryAgain means that nobody knows.
    """
    request = share_acknowledge.ShareAcknowledgeRequest(
        group_id=group, member_id=NOBODY, is_renew_ack=terms.renew, topics=said_of(batches)
    )
    tags = write_private_tags(
        terms.lock_ms,
        terms.delay_ms,
        owner,
        reason=terms.reason,
        late=terms.late,
        transaction=terms.transaction,
    )
    answer = await client.call(Tagged(share_acknowledge, tags), request, node=node, lane=LANE)
    if answer.error_code:
        raise by_code(answer.error_code, answer.error_message)
    return refused_in(answer)
