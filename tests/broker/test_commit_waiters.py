"""Who hears what of an offset that is not committed yet."""

from __future__ import annotations

from collections.abc import Callable

from postroad.broker.commit_waiters import NEVER, CommitWaiters
from postroad.errors import ApiError, NotLeaderOrFollower

Heard = list[tuple[str, str]]


def waiter(heard: Heard, name: str) -> Callable[[ApiError | None], None]:
    return lambda error: heard.append((name, type(error).__name__))


def test_clients_are_sent_away_and_the_node_itself_waits_on() -> None:
    waiters, heard = CommitWaiters(), Heard()
    waiters.add(1, waiter(heard, "the node"), NEVER)
    waiters.add(2, waiter(heard, "a client"), 1_000)
    waiters.add(3, waiter(heard, "the node again"), NEVER)
    waiters.send_away(NotLeaderOrFollower())
    assert heard == [("a client", "NotLeaderOrFollower")]
    waiters.commit(2)
    waiters.fail(NotLeaderOrFollower())
    assert heard[1:] == [("the node", "NoneType"), ("the node again", "NotLeaderOrFollower")]
