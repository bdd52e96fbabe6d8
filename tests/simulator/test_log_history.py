"""L6: what a producer is told of one partition rises, unless a power cut may have taken it."""

from __future__ import annotations

from simulator.workloads.log_history import LogHistory, Position

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
