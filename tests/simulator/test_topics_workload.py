"""What topics keep, let go of and never serve: each check refuses a history that breaks it."""

from __future__ import annotations

import pytest

from postroad.client.metadata import TopicPartition
from postroad.wire.records import Record
from simulator.campaign import Campaign, play_apart
from simulator.checkers import d1_damage, f1_found, k1_latest, k2_active, r1_start, r2_kept, r3_deleted
from simulator.workloads.compacted_history import CompactedHistory, Scan, Version
from simulator.workloads.found import Found
from simulator.workloads.log_history import LogHistory, Position, Told
from simulator.workloads.log_writer import timestamp_ms
from simulator.workloads.retained_history import RetainedHistory, Start, Step

NEVER = -1.0
KEPT_MS = 6_000


@pytest.mark.parametrize("seed", [1, 2])
def test_topics_keep_their_promises_whatever_strikes(seed: int) -> None:
    workloads = ("retained", "compacted", "damaged")
    assert not play_apart(Campaign(workloads=workloads, seconds=30.0), seed).violations


# --- retention


def retained(*starts: tuple[float, int]) -> RetainedHistory:
    """One message each second, all of them acknowledged; where the log began, and when that was told."""
    history = RetainedHistory("t", KEPT_MS)
    for second in range(20):
        history.acknowledged[Position(0, second)] = Told(b"%d" % second, float(second))
    history.known_starts = [Start(at, at, offset) for at, offset in starts]
    return history


def right_clock(_: float, until: float) -> int:
    return timestamp_ms(until)


def test_a_start_that_falls_is_seen_unless_the_power_failed() -> None:
    history = retained((10, 3), (12, 2))
    assert [found.invariant for found in r1_start.check(history, [])] == ["R1"]
    assert not list(r1_start.check(history, [11.0]))


def test_records_that_are_served_after_they_were_deleted_are_seen() -> None:
    history = retained((10, 3))
    history.served(30.0, 2)
    assert [found.invariant for found in r1_start.check(history, [])] == ["R1"]


def test_records_that_go_before_their_time_are_seen() -> None:
    assert not list(r2_kept.check(retained((10, 3)), right_clock, NEVER))
    assert [found.invariant for found in r2_kept.check(retained((10, 6)), right_clock, NEVER)] == ["R2"]
    an_hour_ahead = lambda _, until: timestamp_ms(until) + 3_600_000  # noqa: E731
    assert not list(r2_kept.check(retained((10, 6)), an_hour_ahead, NEVER))


def test_an_offset_below_an_earlier_start_is_used_again_only_where_the_power_failed() -> None:
    history = retained((5, 8))
    assert [found.invariant for found in r2_kept.check(history, right_clock, NEVER)] == ["R2"]
    assert [found.invariant for found in r2_kept.check(history, right_clock, 5.5)] == ["R2"], "sent before"
    history.acknowledged = {p: told for p, told in history.acknowledged.items() if told.at > 5.5}
    assert not list(r2_kept.check(history, right_clock, 5.5))


def test_a_gap_that_is_not_below_the_start_is_seen() -> None:
    history = retained()
    history.steps = [Step(5.0, 2, 4)]
    assert [found.invariant for found in r2_kept.check_steps(history, 3, NEVER)] == ["L5"]
    assert not list(r2_kept.check_steps(history, 4, NEVER))
    history.ended = 5.0
    assert not list(r2_kept.check_steps(history, 3, NEVER)), "the log may have let go of more since"


def test_what_should_be_gone_by_now_is_seen() -> None:
    assert list(r3_deleted.check_time("t", 3, 5))
    assert list(r3_deleted.check_bytes("t", {0: 900, 9: 900, 18: 2500}, 3000))
    assert not list(r3_deleted.check_bytes("t", {9: 900, 18: 2500}, 3000))
    assert list(r3_deleted.check_files("t", 12, {0: 900, 9: 900})), "a file that is left over"
    assert list(r3_deleted.check_files("t", 4, {9: 900})), "a file that is missing"
    assert not list(r3_deleted.check_files("t", 9, {9: 900}))


# --- compaction


def compacted(*versions: tuple[bytes, bytes | None]) -> CompactedHistory:
    """One version each second, acknowledged at once."""
    history = CompactedHistory("t", 4_000)
    for offset, (key, value) in enumerate(versions):
        history.acknowledged[offset] = Version(key, value, float(offset), float(offset))
    return history


def scan(records: dict[int, tuple[bytes, bytes | None]], ended: float = 20.0, active: int = 99) -> Scan:
    return Scan(10.0, ended, records, active, 10.0)


def passed_ms(since: float, until: float) -> int:
    return int((until - since) * 1000)


def k1(history: CompactedHistory, found: Scan) -> list[str]:
    return [broken.invariant for broken in k1_latest.check(history, found, passed_ms, NEVER)]


def test_a_latest_value_that_is_gone_is_seen() -> None:
    history = compacted((b"a", b"1"), (b"a", b"2"))
    assert k1(history, scan({0: (b"a", b"1")})) == ["K1"]
    assert not k1(history, scan({1: (b"a", b"2")}))


def test_a_value_at_another_offset_is_seen() -> None:
    assert k1(compacted((b"a", b"1"), (b"b", b"2")), scan({0: (b"b", b"2"), 1: (b"b", b"2")})) == ["L2"]


def test_a_tombstone_that_goes_too_early_or_leaves_a_value_behind_is_seen() -> None:
    history = compacted((b"a", b"1"), (b"a", None))
    assert k1(history, Scan(1.5, 2.0, {}, 99, 1.5)) == ["K1"]
    assert not k1(history, scan({}))
    assert k1(history, scan({0: (b"a", b"1")})) == ["K1"]


def test_a_version_of_which_nobody_knows_excuses_no_more_than_it_could_do() -> None:
    history = compacted((b"a", b"1"), (b"a", b"2"))
    history.in_doubt[9] = Version(b"a", b"3", -20.0, -20.0)
    assert k1(history, scan({})) == ["K1"], "it would be there itself"
    history.in_doubt[9] = Version(b"a", b"3", 9.0, 9.0)
    assert not k1(history, scan({})), "it may have come behind the scan"
    history.in_doubt[9] = Version(b"a", None, -20.0, -20.0)
    assert not k1(history, scan({})), "a tombstone that is gone by now"
    assert k1(history, scan({0: (b"a", b"1")})) == ["K1"], "nothing comes back behind it"
    history.in_doubt[9] = Version(b"a", None, -20.0, -20.0)
    history.delete_retention_ms = 60_000
    assert k1(history, scan({})) == ["K1"], "it can't be gone yet"


def test_a_record_that_is_gone_from_the_newest_segment_is_seen() -> None:
    history = compacted((b"a", b"1"), (b"a", b"2"))
    assert list(k2_active.check(history, scan({1: (b"a", b"2")}, active=0), NEVER))
    assert not list(k2_active.check(history, scan({1: (b"a", b"2")}, active=1), NEVER))


# --- damage


def test_damage_that_costs_more_than_what_it_hit_is_seen() -> None:
    history = LogHistory("t", acks=-1, idempotent=True)
    first, second = Position(0, 0), Position(0, 1)
    history.acknowledged = {first: Told(b"a", 1.0), second: Told(b"b", 2.0)}
    history.final = {second: b"b"}
    assert not list(d1_damage.check(history, [first], [1], NEVER))
    assert list(d1_damage.check(history, [first], [0], NEVER)), "nothing was flipped"
    assert list(d1_damage.check(history, [], [1], NEVER)), "nobody said that it is damaged"
    history.final = {first: b"x", second: b"b"}
    assert list(d1_damage.check(history, [], [1], NEVER)), "it was served"


# --- look-ups


def test_a_look_up_that_leads_elsewhere_is_seen() -> None:
    part = TopicPartition("t", 0)
    there = [Record(offset, 100 + offset // 2, None, b"%d" % offset, []) for offset in range(6)]
    right = Found(part, there[3], there[3], 2)
    assert not list(f1_found.check([right], {part: there}))
    for wrong in (
        right._replace(by_offset=there[4]),
        right._replace(by_offset=None),
        right._replace(by_time=3),
    ):
        assert [found.invariant for found in f1_found.check([wrong], {part: there})] == ["F1"]


def test_a_scan_of_a_leader_that_was_replaced_shows_what_there_was_by_then_and_no_less() -> None:
    history = compacted((b"a", b"1"), (b"a", b"2"))
    stale = scan({0: (b"a", b"1")})._replace(seen_until=0.5)
    assert not k1(history, stale)
    assert k1(history, stale._replace(seen_until=1.5)) == ["K1"]
    assert k1(compacted((b"a", b"1"), (b"b", b"2")), stale._replace(records={})) == ["K1"]
