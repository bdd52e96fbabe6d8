"""The ledger: what updates add up to, in whatever order they repeat themselves."""

from __future__ import annotations

import gc
from itertools import islice

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from postroad.queues.ledger import Ledger
from postroad.queues.update import (
    Dying,
    Key,
    Reason,
    Released,
    Update,
    decode,
    encode_key,
    encode_update,
)

KEY = Key("workers", bytes(16), 0)

RANGES = st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda pair: (pair[0], pair[0] + pair[1]))
RELEASED = st.builds(lambda span, n: Released(span[0], span[1], n, 100, 100 + n), RANGES, st.integers(1, 4))
DYING = st.builds(lambda span: Dying(span[0], span[1], Reason.REJECTED, 1, 100, 100, "no such ü"), RANGES)
UPDATES = st.builds(
    lambda done, released, dying: Update(1, None, done, released, dying),
    st.lists(RANGES, max_size=2),
    st.lists(RELEASED, max_size=2),
    st.lists(DYING, max_size=1),
)


def ledger_of(*updates: Update) -> Ledger:
    ledger = Ledger(KEY)
    for update in [Update(1, 2), *updates]:
        ledger.apply(update)
        ledger.check()
    return ledger


@settings(max_examples=100, deadline=None)
@given(updates=st.lists(UPDATES, max_size=6), data=st.data())
def test_updates_may_come_in_any_order_and_more_than_once(updates: list[Update], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(updates))
    assert ledger_of(*updates, *shuffled).snapshot() == ledger_of(*shuffled).snapshot()


@settings(max_examples=100, deadline=None)
@given(updates=st.lists(UPDATES, max_size=8), data=st.data())
def test_snapshots_rebuild_everything_wherever_they_are_written(
    updates: list[Update], data: st.DataObject
) -> None:
    taken = data.draw(st.integers(0, len(updates)))
    snapshots = list(ledger_of(*updates[:taken]).snapshots(ranges_max=2))
    whole = ledger_of(*updates).snapshot()
    assert all(len(each.done) + len(each.released) + len(each.dying) <= 2 for each in snapshots)
    recovered = Ledger(KEY)
    for update in [*snapshots, *updates[taken:]]:
        recovered.apply(update)
    assert recovered.snapshot() == whole
    assert ledger_of(*updates, *snapshots).snapshot() == whole  # written late: nothing is taken back


LATER = st.one_of(
    UPDATES, st.just(Update(2, 7)), UPDATES.map(lambda update: structs.replace(update, generation=2))
)


@settings(max_examples=200, deadline=None)
@given(updates=st.lists(UPDATES, max_size=8), later=st.lists(LATER, max_size=8), data=st.data())
def test_snapshot_whose_parts_are_made_while_the_ledger_goes_on_rebuilds_everything(
    updates: list[Update], later: list[Update], data: st.DataObject
) -> None:
    ledger = ledger_of(*updates)
    parts = ledger.snapshots(ranges_max=1)
    log = [next(parts)]
    for update in later:
        log += islice(parts, data.draw(st.integers(0, 3)))
        ledger.apply(update)
        log.append(update)
    log += parts
    recovered = Ledger(KEY)
    for update in log:
        recovered.apply(update)
    assert recovered.snapshot() == ledger.snapshot()


def test_done_wins_over_dying_and_dying_over_released() -> None:
    released, dying = Released(5, 9, 2, 100, 200), Dying(5, 7, Reason.ATTEMPTS, 2, 100, 200)
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        updates = [Update(1, released=[released]), Update(1, dying=[dying]), Update(1, done=[(6, 6)])]
        ledger = ledger_of(*(updates[at] for at in order))
        assert list(ledger.done) == [(6, 6)]
        assert [(each.first, each.last) for each in ledger.dying] == [(5, 5), (7, 7)]
        assert list(ledger.attempts) == [Released(8, 9, 2, 100, 200)]


def test_start_is_the_first_offset_that_is_not_done() -> None:
    ledger = ledger_of(Update(1, done=[(4, 5), (7, 9)]))
    assert (ledger.start, list(ledger.done)) == (2, [(4, 5), (7, 9)])
    ledger.apply(Update(1, done=[(2, 3)]))
    assert (ledger.start, list(ledger.done)) == (6, [(7, 9)])
    ledger.apply(Update(1, start=4))
    assert ledger.start == 6
    ledger.apply(Update(1, start=8))
    assert (ledger.start, list(ledger.done)) == (10, [])


def test_new_generation_begins_anew_and_the_old_one_is_passed_over() -> None:
    ledger = ledger_of(Update(1, done=[(2, 50)]), Update(1, dying=[Dying(60, 60, Reason.REJECTED, 1, 1, 1)]))
    ledger.apply(Update(2, 10))
    assert (ledger.generation, ledger.start, len(ledger.dying)) == (2, 10, 0)
    ledger.apply(Update(1, done=[(10, 20)]))
    ledger.apply(Update(3, done=[(10, 20)]))  # its beginning was never seen
    assert (ledger.generation, ledger.start) == (2, 10)


@settings(max_examples=100, deadline=None)
@given(updates=st.lists(UPDATES, max_size=6), end=st.integers(0, 45))
def test_log_that_has_lost_its_end_leaves_what_is_known_below_it(updates: list[Update], end: int) -> None:
    ledger, expected = ledger_of(*updates), ledger_of(*updates)
    correction = ledger.ending_at(end)
    if correction is not None:
        ledger.apply(correction)
    ledger.check()
    assert ledger.ending_at(end) is None
    assert ledger.start == min(expected.start, end)
    for table, whole in ((ledger.done, expected.done), (ledger.attempts, expected.attempts)):
        assert list(table.each()) == whole.cut(0, end - 1)
    assert list(ledger.dying.each()) == expected.dying.cut(0, end - 1)
    before = ledger.snapshot()
    for update in updates:  # they belong to the generation before
        ledger.apply(update)
    assert correction is None or ledger.snapshot() == before


def test_dying_messages_keep_their_own_texts_over_a_snapshot_and_an_old_record_has_none() -> None:
    texts = ["a", "", "b", "a"]
    dying = [Dying(n, n, Reason.REJECTED, 1, 100, 100, text) for n, text in enumerate(texts, 2)]
    ledger = ledger_of(Update(1, dying=dying))
    _, update = decode(encode_key(KEY), encode_update(ledger.snapshot())) or (None, None)
    assert update is not None
    again = ledger_of(update)
    assert [each.text for each in again.dying] == texts
    again.apply(Update(1, done=[(2, 5)]))
    again.apply(Update(1, dying=[Dying(7, 7, Reason.REJECTED, 1, 100, 100, "c")]))
    assert [each.text for each in again.dying] == ["c"]
    _, old = decode(encode_key(KEY), b'{"generation":1,"dying":[[7,7,"rejected",1,100,100]]}') or (None, None)
    assert old is not None
    assert old.dying[0].text == ""


def rejected(offset: int) -> Update:
    return Update(1, dying=[Dying(offset, offset, Reason.REJECTED, 1, 100, 100, f"why {offset}")])


def test_snapshot_goes_on_though_all_that_was_dying_is_buried_meanwhile() -> None:
    ledger = ledger_of(*(rejected(offset) for offset in range(2, 40, 2)))
    parts = ledger.snapshots(ranges_max=5)
    told = [next(parts)]
    since = [Update(1, done=[(2, 40)]), rejected(50)]
    for update in since:
        ledger.apply(update)
    assert ledger_of(*told, *parts, *since).snapshot() == ledger.snapshot()


def test_texts_of_buried_messages_are_forgotten_though_others_are_dying_all_the_time() -> None:
    ledger = ledger_of(rejected(1))
    for offset in range(1, 5_000):
        ledger.apply(rejected(offset + 1))
        ledger.apply(Update(1, done=[(offset, offset)]))
    assert [each.text for each in ledger.dying] == ["why 5000"]
    kept = gc.get_referents(ledger.dying)
    assert max(len(each) for each in kept if isinstance(each, dict)) < 200
