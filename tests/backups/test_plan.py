"""What a backup takes over from the last one, and where it goes on."""

from __future__ import annotations

from postroad.backups.plan import plan
from tests.backups.logs import copy, facts, part


def test_first_backup_reads_all_of_a_log() -> None:
    assert plan(None, facts(5, 40)) == ((), 5)


def test_next_backup_goes_on_behind_large_parts() -> None:
    parts = (part(0, 10), part(10, 30))
    assert plan(copy(*parts), facts(0, 40)) == (parts, 30)


def test_nothing_is_read_where_nothing_came() -> None:
    small = part(0, 10, size=100)
    assert plan(copy(small), facts(0, 10)) == ((small,), 10)


def test_small_last_part_is_read_again_with_what_came() -> None:
    large, small = part(0, 10), part(10, 12, size=100)
    assert plan(copy(large, small), facts(0, 40)) == ((large,), 10)


def test_small_part_is_kept_where_the_log_has_let_go_of_its_beginning() -> None:
    small = part(10, 20, size=100)
    assert plan(copy(small, start=10), facts(15, 40)) == ((small,), 20)


def test_parts_below_the_start_go() -> None:
    kept = part(10, 30)
    assert plan(copy(part(0, 10), kept), facts(12, 40)) == ((kept,), 30)


def test_retention_that_was_faster_leaves_nothing_of_the_last_backup() -> None:
    assert plan(copy(part(0, 10)), facts(35, 40)) == ((), 35)


def test_parts_of_a_log_that_lost_its_end_are_read_again() -> None:
    first, lost = part(0, 10), part(10, 30, epoch=0)
    assert plan(copy(first, lost), facts(0, 40, epochs=[(0, 0), (1, 20)])) == ((first,), 10)


def test_parts_of_epochs_that_the_log_does_not_know_are_read_again() -> None:
    assert plan(copy(part(0, 10, epoch=7)), facts(0, 40)) == ((), 0)


def test_parts_of_a_log_that_begins_anew_below_them_are_read_again() -> None:
    assert plan(copy(part(0, 30)), facts(0, 20)) == ((), 0)


def test_all_is_read_again_where_tombstones_may_be_gone() -> None:
    assert plan(copy(part(0, 10)), facts(0, 40, purged=11)) == ((), 0)
    kept = part(0, 10)
    assert plan(copy(kept), facts(0, 40, purged=10)) == ((kept,), 10)
