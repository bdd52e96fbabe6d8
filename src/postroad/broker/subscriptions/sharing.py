"""How many messages a ShareFetch may take, so that the members of a subscription that ask all get some.

Several members read each partition, so the first one to ask could take all that there is. Where there is
less than all may ask for, it is shared out (`queues.fair_share`) among those that ask: members that wait, and
those that are expected to ask soon, since they did so a moment ago or have just joined. A few messages are
kept for those only that wait. Where there is plenty, and for a member alone, nothing is counted.

Sharing out makes many small answers of one large, which would cost a busy subscription most of its
throughput, and does nobody good where messages are done with at once. So a member that is quick, in that it
settles in a moment what it holds (`ShareSession.is_quick`), takes what it asks for. Those that ask in an
owner's name, gateways, share out among their callers themselves, and are given what they ask for, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from postroad.broker.subscriptions.sessions import QUICK_MS, ShareSession
from postroad.errors import ApiError
from postroad.queues.fair_share import fair_share

if TYPE_CHECKING:
    from postroad.broker.subscriptions.subscriptions import Subscriptions

ASKED_MS: Final = 5_000  # whoever has not asked for so long is busy, and leaves the messages to the others
FEW: Final = 16  # messages: not worth another request of somebody who may not even come


def share_of(subscriptions: Subscriptions, session: ShareSession, wanted: int, now_ms: int) -> int:
    """How many of the `wanted` messages may go to the session's member."""
    group = session.group
    sessions, members = subscriptions.sessions.of_group(group), subscriptions.members
    count = max(len(sessions), members.count(group))
    if count < 2 or (session.is_quick and now_ms - session.asked_ms <= QUICK_MS):
        return wanted
    available = _available(subscriptions, session, wanted * count)
    if not 0 < available < wanted * count:
        return wanted
    held = subscriptions.subscription(group).holdings.by_member
    since_ms = now_ms if available <= FEW else now_ms - ASKED_MS
    asking = [each for each in sessions.values() if each is not session and each.asks(since_ms)]
    others = [held.get(each.member, 0) for each in asking]
    if available > FEW:
        others += [0 for member in members.members(group) if member not in sessions]
    if not others:
        return wanted
    others_wait = any(each.waits for each in asking)
    return fair_share(wanted, available, held.get(session.member, 0), others, others_wait)


def _available(subscriptions: Subscriptions, session: ShareSession, enough: int) -> int:
    """How many messages of its partitions could go out, as far as is known; `enough` will do."""
    count = 0
    for topic_partition in session.partitions:
        try:
            queue = subscriptions.queue(session.group, *topic_partition)
        except ApiError:
            continue  # whoever asks it for messages hears of it
        if queue is not None:
            count += queue.available
            if count >= enough:
                break
    return count
