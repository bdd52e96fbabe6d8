"""A leader counts its followers' promises, and proposes who is in sync."""

from __future__ import annotations

from postroad.replication.in_sync import IsrChange
from postroad.replication.leader import LEDGER, MESSAGES, RETRY_MAX_MS, RETRY_MS, Leader
from postroad.replication.progress import LogStart

LAG_MS = 10_000
EMPTY = LogStart(start_offset=0, safe_offset=0, watermark=0)
SERVING = {1: 101, 2: 102, 3: 103}  # node: broker epoch


def leader(
    isr: tuple[int, ...] = (1, 2, 3),
    elr: tuple[int, ...] = (),
    replicas: tuple[int, ...] = (1, 2, 3),
    min_insync: int = 2,
    begin: LogStart = EMPTY,
) -> Leader:
    """Node 1 leads in epoch 5."""
    return Leader(
        1,
        5,
        [begin],
        replicas=replicas,
        isr=isr,
        elr=elr,
        revision=7,
        min_insync=min_insync,
        lag_ms=LAG_MS,
        now_ms=0,
    )


def fetch(leading: Leader, node: int, offset: int, end: int, now_ms: int = 0, log: int = MESSAGES) -> bool:
    return leading.fetched(node, SERVING[node], log, offset, end, now_ms)


def expired(leading: Leader, now_ms: int) -> IsrChange | None:
    """What the leader proposes at this time."""
    leading.expire(now_ms)
    return leading.propose(now_ms, SERVING) if leading.wants_change else None


# -- the watermark ---------------------------------------------------------------------------------------


def test_a_single_replica_commits_what_is_safe() -> None:
    alone = leader(isr=(1,), replicas=(1,), min_insync=2)
    assert alone.enough_replicas
    assert alone.own(MESSAGES, 10)
    assert alone.watermark() == 10
    assert alone.next_deadline() is None


def test_the_watermark_is_the_lowest_safe_offset_of_the_isr() -> None:
    leading = leader()
    assert not leading.own(MESSAGES, 10)
    assert not fetch(leading, 2, 10, 10)
    assert fetch(leading, 3, 4, 10)
    assert leading.watermark() == 4
    assert fetch(leading, 3, 10, 10)
    assert leading.watermark() == 10
    leading.check()


def test_the_watermark_waits_for_the_leaders_own_disk() -> None:
    leading = leader()
    fetch(leading, 2, 10, 10)
    assert not fetch(leading, 3, 10, 10)
    assert leading.own(MESSAGES, 8)
    assert leading.watermark() == 8


def test_a_promise_that_falls_does_not_move_the_watermark_back() -> None:
    leading = leader()
    leading.own(MESSAGES, 10)
    fetch(leading, 2, 10, 10)
    fetch(leading, 3, 10, 10)
    fetch(leading, 3, 3, 10)
    assert leading.watermark() == 10
    leading.own(MESSAGES, 12)
    fetch(leading, 2, 12, 12)
    assert leading.watermark() == 10


def test_a_new_leader_knows_when_its_watermark_has_reached_its_epoch() -> None:
    leading = leader(begin=LogStart(start_offset=10, safe_offset=10, watermark=6))
    assert leading.watermark() == 6
    assert not leading.reached_start()
    fetch(leading, 2, 10, 10)
    fetch(leading, 3, 10, 10)
    assert leading.reached_start()


def test_a_watermark_that_a_power_cut_took_is_not_kept() -> None:
    assert leader(begin=LogStart(start_offset=4, safe_offset=4, watermark=6)).watermark() == 4


def test_too_few_in_sync_let_the_watermark_stand() -> None:
    leading = leader(isr=(1,), elr=(2,))
    assert not leading.enough_replicas
    assert not leading.own(MESSAGES, 10)
    assert not fetch(leading, 2, 10, 10)
    assert leading.watermark() == 0


def test_a_lowered_minimum_lets_the_watermark_move() -> None:
    leading = leader(isr=(1,))
    leading.own(MESSAGES, 10)
    assert leading.min_insync_changed(1)
    assert leading.watermark() == 10


def test_an_elr_that_is_not_empty_must_be_emptied_before_the_watermark_moves() -> None:
    leading = leader(isr=(1,), elr=(2,))
    leading.own(MESSAGES, 10)
    assert not leading.min_insync_changed(1)
    change = leading.propose(0, SERVING)
    assert change == IsrChange(7, (1,), (), (), resigns=False)
    assert leading.confirmed((1,), (), 8, 0)
    assert leading.watermark() == 10


def test_a_restarted_follower_has_promised_nothing() -> None:
    leading = leader(isr=(1, 2), min_insync=2)
    fetch(leading, 2, 10, 10)
    assert not leading.fetched(2, 200, MESSAGES, 3, 10, 0)
    leading.own(MESSAGES, 10)
    assert leading.watermark() == 3


def test_a_late_fetch_of_a_follower_that_was_replaced_is_ignored() -> None:
    leading = leader(isr=(1, 2))
    leading.own(MESSAGES, 10)
    leading.fetched(2, 200, MESSAGES, 3, 10, 0)
    assert not leading.fetched(2, 102, MESSAGES, 10, 10, 0)
    assert leading.promise(2) == 3


# -- leaving ---------------------------------------------------------------------------------------------


def test_a_follower_that_lags_leaves_after_the_lag_time() -> None:
    leading = leader()
    leading.own(MESSAGES, 10)
    for now_ms in range(0, LAG_MS + 1, 1_000):
        fetch(leading, 2, 10, 10, now_ms)
        change = expired(leading, now_ms)
        assert (change is None) == (now_ms < LAG_MS)
    assert change == IsrChange(7, (1, 2), (), (), resigns=False)


def test_the_deadline_is_when_the_first_follower_has_lagged_for_too_long() -> None:
    leading = leader()
    leading.own(MESSAGES, 10)
    fetch(leading, 2, 10, 10, 0)
    fetch(leading, 3, 10, 10, 3_000)
    leading.own(MESSAGES, 20)
    deadlines = []
    while not leading.wants_change:
        deadline = leading.next_deadline()
        assert deadline is not None
        deadlines.append(deadline)
        leading.expire(deadline)
    assert deadlines[-1] == LAG_MS
    change = leading.propose(LAG_MS, SERVING)
    assert change is not None
    assert change.isr == (1, 3)


def test_an_idle_follower_stays_however_long() -> None:
    leading = leader()
    leading.own(MESSAGES, 10)
    fetch(leading, 2, 10, 10)
    fetch(leading, 3, 10, 10)
    for now_ms in range(0, 10 * LAG_MS, LAG_MS // 4):
        assert expired(leading, now_ms) is None
    leading.own(MESSAGES, 11)
    assert expired(leading, 10 * LAG_MS + LAG_MS // 4) is None


def test_a_follower_under_steady_load_is_in_sync_though_never_at_the_end() -> None:
    leading = leader()
    for now_ms in range(0, 5 * LAG_MS, 500):
        end = 100 + now_ms
        leading.own(MESSAGES, end)
        for node in (2, 3):
            fetch(leading, node, end - 500, end, now_ms)
        assert expired(leading, now_ms) is None


def test_a_follower_that_is_started_again_and_again_leaves() -> None:
    leading = leader()
    leading.own(MESSAGES, 10)
    for now_ms in range(0, LAG_MS + 1, 1_000):
        fetch(leading, 2, 10, 10, now_ms)
        leading.fetched(3, 1_000 + now_ms, MESSAGES, 0, 10, now_ms)
        change = expired(leading, now_ms)
    assert change is not None
    assert change.isr == (1, 2)


def test_who_leaves_too_few_goes_to_the_elr() -> None:
    leading = leader(isr=(1, 2, 3), min_insync=3)
    leading.own(MESSAGES, 10)
    fetch(leading, 2, 10, 10)
    leading.expire(LAG_MS - 1)
    fetch(leading, 2, 10, 10, LAG_MS - 1)
    change = expired(leading, LAG_MS)
    assert change == IsrChange(7, (1, 2), (3,), (), resigns=False)


def test_a_leaver_counts_until_the_store_has_confirmed_it() -> None:
    leading = leader()
    leading.own(MESSAGES, 10)
    fetch(leading, 2, 10, 10, LAG_MS)
    assert expired(leading, LAG_MS) is not None
    assert leading.maximal_isr == {1, 2, 3}
    assert leading.watermark() == 0
    assert leading.confirmed((1, 2), (), 8, LAG_MS)
    assert leading.watermark() == 10


# -- joining ---------------------------------------------------------------------------------------------


def outsider() -> Leader:
    """Node 3 is out of the ISR; the watermark is 10, and the epoch began at 6."""
    leading = leader(isr=(1, 2), begin=LogStart(6, 6, 0))
    leading.own(MESSAGES, 10)
    fetch(leading, 2, 10, 10)
    assert leading.watermark() == 10
    return leading


def test_who_has_reached_the_watermark_joins_and_counts_at_once() -> None:
    leading = outsider()
    fetch(leading, 3, 9, 10)
    assert not leading.wants_change
    fetch(leading, 3, 10, 12)
    assert leading.wants_change
    assert leading.propose(0, SERVING) == IsrChange(7, (1, 2, 3), (), ((3, 103),), resigns=False)
    leading.own(MESSAGES, 12)
    fetch(leading, 2, 12, 12)
    assert leading.watermark() == 10
    assert fetch(leading, 3, 12, 12)
    leading.check()


def test_a_node_that_does_not_serve_yet_joins_when_it_does() -> None:
    leading = outsider()
    fetch(leading, 3, 10, 10)
    assert leading.propose(0, {1: 101, 2: 102}) is None
    assert leading.propose(0, {**SERVING, 3: 104}) is None  # registered anew, and has not fetched since
    leading.serving_changed()
    assert leading.wants_change
    assert leading.propose(0, SERVING) is not None


def test_the_sweep_finds_who_caught_up_and_fetches_no_more() -> None:
    leading = outsider()
    fetch(leading, 3, 10, 10)
    assert leading.propose(0, {}) is None
    assert expired(leading, LAG_MS // 4) is not None


def test_one_proposal_is_under_way_at_most() -> None:
    leading = outsider()
    fetch(leading, 3, 10, 10)
    assert leading.propose(0, SERVING) is not None
    assert leading.propose(0, SERVING) is None


def test_a_refused_joiner_no_longer_counts() -> None:
    leading = outsider()
    fetch(leading, 3, 10, 10)
    change = leading.propose(0, SERVING)
    assert change is not None
    leading.own(MESSAGES, 12)
    fetch(leading, 2, 12, 12)
    assert leading.watermark() == 10
    assert leading.refused(change, 0)
    assert leading.watermark() == 12


def test_refused_proposals_are_repeated_ever_more_slowly() -> None:
    leading = outsider()
    now_ms, waits = 0, []
    for _ in range(8):
        fetch(leading, 3, 10, 10, now_ms)
        change = leading.propose(now_ms, SERVING)
        assert change is not None
        leading.refused(change, now_ms)
        assert leading.propose(now_ms + RETRY_MS - 1, SERVING) is None
        before = now_ms
        while not leading.wants_change:
            deadline = leading.next_deadline()
            assert deadline is not None
            now_ms = deadline
            leading.expire(now_ms)
        waits.append(now_ms - before)
    assert waits[0] == RETRY_MS
    assert waits[-1] <= RETRY_MAX_MS
    assert waits == sorted(waits)


def test_a_proposal_in_doubt_counts_until_the_key_has_another_revision() -> None:
    leading = outsider()
    fetch(leading, 3, 10, 10)
    first = leading.propose(0, SERVING)
    assert first is not None
    leading.unknown(first, 0)
    leading.own(MESSAGES, 12)
    fetch(leading, 2, 12, 12)
    assert not leading.confirmed((1, 2), (), 7, 0), "a read of the old revision proves nothing"
    assert leading.maximal_isr == {1, 2, 3}
    leading.expire(RETRY_MS)
    again = leading.propose(RETRY_MS, {})  # node 3 has died
    assert again == IsrChange(7, (1, 2), (), (), resigns=False)
    assert not leading.refused(again, RETRY_MS), "the compare may have met what the first one wrote"
    assert leading.maximal_isr == {1, 2, 3}
    assert leading.confirmed((1, 2), (), 9, RETRY_MS)
    assert leading.maximal_isr == {1, 2}
    assert leading.watermark() == 12


def test_the_end_of_a_proposal_from_before_the_last_revision_means_nothing() -> None:
    leading = outsider()
    fetch(leading, 3, 10, 10)
    old = leading.propose(0, SERVING)
    assert old is not None
    leading.confirmed((1, 2), (), 8, 0)
    new = leading.propose(0, SERVING)
    assert new is not None
    leading.refused(old, 0)
    leading.unknown(old, 0)
    assert leading.maximal_isr == {1, 2, 3}
    leading.check()


def test_who_joined_has_the_lag_time_to_reach_the_end() -> None:
    leading = outsider()
    leading.own(MESSAGES, 100)
    fetch(leading, 3, 10, 100)
    assert leading.propose(LAG_MS, SERVING) is not None
    leading.confirmed((1, 2, 3), (), 8, LAG_MS)
    fetch(leading, 2, 100, 100, LAG_MS)
    assert expired(leading, 2 * LAG_MS - 1) is None


def test_joining_empties_the_elr_as_soon_as_enough_are_in_sync() -> None:
    leading = leader(isr=(1,), elr=(2,))
    leading.own(MESSAGES, 10)
    fetch(leading, 3, 10, 10)
    change = leading.propose(0, SERVING)
    assert change == IsrChange(7, (1, 3), (), ((3, 103),), resigns=False)


# -- resigning -------------------------------------------------------------------------------------------


def test_a_leader_that_nobody_follows_resigns_if_others_live() -> None:
    leading = leader()
    leading.own(MESSAGES, 10)
    assert expired(leading, LAG_MS) == IsrChange(7, (2, 3), (), (), resigns=True)


def test_a_leader_that_nobody_follows_stays_if_nobody_else_lives() -> None:
    leading = leader()
    leading.own(MESSAGES, 10)
    leading.expire(LAG_MS)
    assert leading.propose(LAG_MS, {1: 101}) == IsrChange(7, (1,), (2, 3), (), resigns=False)


def test_a_leader_that_may_commit_alone_does_not_resign() -> None:
    leading = leader(min_insync=1)
    leading.own(MESSAGES, 10)
    assert expired(leading, LAG_MS) == IsrChange(7, (1,), (), (), resigns=False)


def test_a_leader_that_is_alone_makes_way_for_the_elr() -> None:
    leading = leader(isr=(1,), elr=(2,))
    assert expired(leading, LAG_MS) == IsrChange(7, (), (2, 1), (), resigns=True)


def test_a_leader_that_is_alone_stays_while_somebody_catches_up() -> None:
    leading = leader(isr=(1,), elr=(2,), begin=LogStart(1_000, 1_000, 0))
    for now_ms in range(0, 5 * LAG_MS, 1_000):
        fetch(leading, 3, now_ms // 1_000, 1_000, now_ms)
        assert expired(leading, now_ms) is None


# -- two logs, other replicas ----------------------------------------------------------------------------


def test_a_ledger_can_be_added_while_leading() -> None:
    leading = leader()
    leading.add_log(EMPTY, 0)
    leading.own(LEDGER, 5)
    fetch(leading, 2, 5, 5, log=LEDGER)
    assert leading.watermark(LEDGER) == 0
    assert fetch(leading, 3, 4, 5, log=LEDGER)
    assert leading.watermark(LEDGER) == 4
    assert leading.watermark(MESSAGES) == 0
    leading.check()


def test_who_never_fetches_the_ledger_leaves() -> None:
    leading = leader()
    leading.own(MESSAGES, 10)
    leading.add_log(EMPTY, 0)
    for node in (2, 3):
        fetch(leading, node, 10, 10)
    fetch(leading, 2, 0, 0, log=LEDGER)
    change = expired(leading, LAG_MS)
    assert change is not None
    assert change.isr == (1, 2)


def test_replicas_come_and_go() -> None:
    leading = leader(isr=(1, 2), replicas=(1, 2))
    leading.own(MESSAGES, 10)
    fetch(leading, 2, 10, 10)
    leading.confirmed((1, 2), (), 8, 0, replicas=(1, 2, 3))
    fetch(leading, 3, 10, 10)
    change = leading.propose(0, SERVING)
    assert change is not None
    assert change.isr == (1, 2, 3)
    leading.confirmed((1, 3), (), 9, 0, replicas=(1, 3))
    assert leading.maximal_isr == {1, 3}
    leading.check()


# -- where the logs start --------------------------------------------------------------------------------


def test_the_known_start_is_the_lowest_of_all_who_may_be_elected() -> None:
    leading = leader(isr=(1, 2), elr=(3,))
    assert leading.known_start() < 0
    for node, start in ((2, 7), (3, 4)):
        fetch(leading, node, 10, 10)
        leading.starts_at(node, SERVING[node], MESSAGES, start)
    assert leading.known_start() == 4
    leading.confirmed((1, 2), (), 8, 0)
    assert leading.known_start() == 7
    leading.confirmed((1,), (), 9, 0)
    assert leading.known_start() > 1_000_000


def test_where_a_log_started_in_an_earlier_process_says_nothing() -> None:
    leading = leader(isr=(1, 2), replicas=(1, 2))
    fetch(leading, 2, 10, 10)
    leading.starts_at(2, SERVING[2], MESSAGES, 7)
    leading.fetched(2, SERVING[2] + 1, MESSAGES, 10, 10, 0)
    leading.starts_at(2, SERVING[2], MESSAGES, 7)
    assert leading.known_start() < 0
