"""Members that ask for more than there is all get some of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from postroad.broker.subscriptions import sessions, sharing
from tests.broker.harness import Running
from tests.broker.test_queues import GROUP, configure, publish_together
from tests.clients.share_session import Error, Fate, Session, Word, session
from tests.clients.wait import until

MEMBERS = 4


@pytest.fixture
def running(start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch) -> Running:
    monkeypatch.setattr(sharing, "ASKED_MS", 600_000)  # however slow the machine is
    running = start(durability_flush="os")
    running.create("jobs")
    configure(running, postroad_topics="jobs", share_record_lock_duration_ms=600_000)
    return running


def join(running: Running, stack: ExitStack, count: int = MEMBERS) -> list[Session]:
    return [stack.enter_context(session(running.bootstrap, GROUP, "jobs")) for _ in range(count)]


def test_members_that_have_not_asked_yet_are_left_their_part(running: Running) -> None:
    publish_together(running, "jobs", 400)
    with ExitStack() as stack:
        members = join(running, stack)
        assert [len(member.fetch_some().held) for member in members] == [100] * MEMBERS


def test_members_that_wait_share_what_comes(running: Running) -> None:
    with ExitStack() as stack, ThreadPoolExecutor(MEMBERS) as threads:
        members = join(running, stack)
        for member in members:
            assert member.fetch().held == []
        fetches = [threads.submit(member.fetch, wait_ms=20_000) for member in members]
        waiting = running.node.subscriptions.sessions.of_group(GROUP)
        until(lambda: all(each.waits for each in waiting.values()), "all wait")
        publish_together(running, "jobs", 400)
        assert [len(fetch.result(30).held) for fetch in fetches] == [100] * MEMBERS


def test_few_messages_are_kept_for_those_that_wait_and_for_nobody_else(running: Running) -> None:
    with ExitStack() as stack, ThreadPoolExecutor(MEMBERS) as threads:
        members = join(running, stack)
        assert members[1].fetch().held == []
        publish_together(running, "jobs", 8)
        assert len(members[0].fetch_some().held) == 8
        fetches = [threads.submit(member.fetch, wait_ms=20_000) for member in members[1:]]
        waiting = running.node.subscriptions.sessions.of_group(GROUP)
        until(lambda: sum(each.waits for each in waiting.values()) == MEMBERS - 1, "three wait")
        publish_together(running, "jobs", 6)
        assert [len(fetch.result(30).held) for fetch in fetches] == [2, 2, 2]


def test_small_request_gets_all_that_it_wants_and_leaves_the_rest(running: Running) -> None:
    publish_together(running, "jobs", 90)
    with ExitStack() as stack:
        small, large, third = join(running, stack, 3)
        assert len(small.fetch_some(max_records=2).held) == 2
        assert len(large.fetch_some().held) == 30
        assert len(third.fetch_some().held) == 30
        assert len(small.fetch_some(max_records=2).held) == 2


def test_member_that_holds_many_gets_few_while_another_waits(running: Running) -> None:
    with ExitStack() as stack, ThreadPoolExecutor(2) as threads:
        greedy, modest = join(running, stack, 2)
        assert modest.fetch().held == []
        publish_together(running, "jobs", 100)
        held = len(greedy.fetch_some().held)
        while held < 80:
            held += len(greedy.fetch_some().held)
        left = 100 - held
        assert len(modest.fetch_some().held) >= left / 2
        for member in (greedy, modest):
            while member.fetch().held:
                pass
        waiting = running.node.subscriptions.sessions.of_group(GROUP)
        fetches = []
        for number, member in enumerate((greedy, modest), 1):  # who has waited longer is asked first
            fetches.append(threads.submit(member.fetch, wait_ms=20_000))
            until(lambda: sum(each.waits for each in waiting.values()) == number, "it waits")  # noqa: B023
        publish_together(running, "jobs", 50)
        greedy_got, modest_got = (len(fetch.result(30).held) for fetch in fetches)
        assert greedy_got == 1
        assert modest_got == 49


def test_member_alone_gets_all_and_so_does_one_whose_peers_are_busy(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_together(running, "jobs", 300)
    with ExitStack() as stack:
        (first,) = join(running, stack, 1)
        assert len(first.fetch_some(max_records=200).held) == 200
        assert first.acknowledge(Word(0, 199, [Fate.ACCEPT])) == Error.NONE
        (second,) = join(running, stack, 1)
        assert len(second.fetch_some().held) == 50
        monkeypatch.setattr(sharing, "ASKED_MS", -1)  # as if it had asked long ago
        assert len(first.fetch_some().held) == 50


def test_member_that_is_done_with_its_messages_at_once_takes_what_it_asks_for(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "QUICK_MS", 20_000)  # however slow the machine is
    monkeypatch.setattr(sharing, "QUICK_MS", 20_000)
    publish_together(running, "jobs", 400)
    with ExitStack() as stack:
        quick, *_ = join(running, stack)
        first = quick.fetch_some().offsets
        assert len(first) == 100
        assert quick.acknowledge(Word(first[0], first[-1], [Fate.ACCEPT])) == Error.NONE
        assert len(quick.fetch_some().offsets) == 300
