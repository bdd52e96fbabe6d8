"""L6: what a producer is told of one partition rises, unless a power cut may have taken it. L5: where a
reader may begin."""

from __future__ import annotations

import pytest

from simulator.workloads.log_history import LogHistory, Position, Told

PARTITION = 0
NEVER = -1.0


def _history() -> LogHistory:
    """The history of a producer whose message at offset 7, sent at moment 5, was acknowledged."""
    history = LogHistory("log", acks=1, idempotent=False)
    assert history.rises("one", Position(PARTITION, 7), sent_at=5.0, lost_until=NEVER)
    return history


def test_a_lower_offset_is_told_too_late() -> None:
    assert not _history().rises("one", Position(PARTITION, 6), sent_at=6.0, lost_until=NEVER)


def test_an_offset_is_given_out_again_after_a_power_cut_that_took_what_was_there() -> None:
    assert _history().rises("one", Position(PARTITION, 6), sent_at=9.0, lost_until=8.0)


def test_a_power_cut_is_no_excuse_for_what_was_sent_after_it() -> None:
    assert not _history().rises("one", Position(PARTITION, 6), sent_at=9.0, lost_until=4.0)


def test_each_partition_and_each_producer_has_offsets_of_its_own() -> None:
    history = _history()
    assert history.rises("one", Position(PARTITION + 1, 3), sent_at=6.0, lost_until=NEVER)
    assert history.rises("another", Position(PARTITION, 3), sent_at=6.0, lost_until=NEVER)


@pytest.mark.parametrize(("acks", "expected"), [(-1, [4, 5]), (1, [4]), (0, [4])])
def test_where_a_reader_begins_no_power_cut_takes_the_message(acks: int, expected: list[int]) -> None:
    history = LogHistory("log", acks=acks, idempotent=False)
    for offset in (4, 5):
        history.acknowledged[Position(PARTITION, offset)] = Told(b"x", 1.0)
    history.seen[Position(PARTITION, 4)] = history.seen[Position(PARTITION + 1, 9)] = Told(b"x", 2.0)
    assert history.lasting(PARTITION) == expected
