"""What members of subscriptions note of their fetches, for the checks of locks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from postroad.client.client import Client
from postroad.client.share_session import ShareSession
from simulator.workloads.queue_history import Span
from simulator.workloads.watched_consumer import WatchedMember, WatchedSession


def test_messages_belong_to_the_membership_in_which_they_were_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """S5: an answer may come when its member was taken for dead, which ended its locks, and is back."""

    async def joins_meanwhile() -> None:
        client = Client("nobody:1")  # nothing is asked of it
        member = WatchedMember(client, "workers", now=lambda: 1.0)
        session = WatchedSession(client, 1, member, now=lambda: 1.0, lost=[])
        before = member.span

        async def answer(*given: Any, **options: Any) -> list[Any]:
            member.span = Span()
            return []

        monkeypatch.setattr(ShareSession, "fetch", answer)
        await session.fetch([], lock_ms=0)
        assert session.fetched.membership is before

    asyncio.run(joins_meanwhile())
