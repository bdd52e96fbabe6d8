"""What is made anew, repeated and sent back: each check refuses a history that breaks it."""

from __future__ import annotations

from postroad.wire import header_names
from simulator.checkers import (
    i1_names,
    o1_processed_once,
    t1_changes,
    t2_incarnations,
    v1_redriven,
    x1_duplicates,
)
from simulator.workloads.attempt import Attempt
from simulator.workloads.identified import Identified
from simulator.workloads.log_history import LogHistory, Position, Told
from simulator.workloads.processed import Processed
from simulator.workloads.recreated_history import Change, ChangeKind, Look, RecreatedHistory
from simulator.workloads.redriven_history import Copy, RedrivenHistory, SentOut

NEVER = -1.0
OLD, NEW = b"old", b"new"


# --- topics that are made anew


def recreated(*looks: Look) -> RecreatedHistory:
    """Created at 1, given a second partition at 3, deleted at 5."""
    history = RecreatedHistory("t")
    history.changes = [
        Change(ChangeKind.CREATE, 1.0, 1, 1.1),
        Change(ChangeKind.GROW, 3.0, 2, 3.1),
        Change(ChangeKind.DELETE, 5.0, 0, 5.1),
    ]
    history.looks = list(looks)
    return history


def t1(history: RecreatedHistory) -> list[str]:
    return [found.text for found in t1_changes.check(history)]


def look(asked: float, told: float, topic_id: bytes | None, partitions: int) -> Look:
    """Return the answer of a node that knows of all changes made before it was asked."""
    return Look(asked, told, topic_id, partitions, asked)


def test_a_creation_that_is_undone_is_seen() -> None:
    assert not t1(recreated(look(2.0, 2.1, OLD, 1)))
    assert "gone" in t1(recreated(look(2.0, 2.1, None, 0)))[0]
    assert "another" in t1(recreated(look(2.0, 2.1, OLD, 1), look(4.0, 4.1, NEW, 2)))[0]


def test_partitions_that_are_gone_are_seen() -> None:
    assert "1 partitions" in t1(recreated(look(4.0, 4.1, OLD, 1)))[0]
    assert not t1(recreated(look(2.9, 3.05, OLD, 1))), "the second one is under way"


def test_a_deletion_that_is_undone_is_seen_unless_another_change_may_be_late() -> None:
    history = recreated(look(6.0, 6.1, OLD, 2))
    assert "there" in t1(history)[0]
    history.changes.insert(2, Change(ChangeKind.CREATE, 4.0, 1))
    assert not t1(history), "nobody knows of this one"


def test_a_deleted_topic_that_is_back_is_seen() -> None:
    assert not list(t2_incarnations.check(recreated(look(4.0, 4.1, OLD, 2), look(7.0, 7.1, NEW, 1))))
    history = recreated(look(4.0, 4.1, OLD, 2), look(7.0, 7.1, OLD, 2))
    assert [found.invariant for found in t2_incarnations.check(history)] == ["T2"]


def test_messages_of_a_deleted_topic_that_are_back_are_seen() -> None:
    history = recreated()
    history.created = {OLD: 1.0, NEW: 6.0}
    history.incarnation(OLD).acknowledged[Position(0, 0)] = Told(b"a", 2.0)
    history.incarnation(NEW).final[Position(0, 0)] = b"b"
    assert not list(t2_incarnations.check(history))
    history.incarnation(NEW).seen[Position(0, 1)] = Told(b"a", 7.0)
    assert [found.invariant for found in t2_incarnations.check(history)] == ["T2"]


def test_a_message_that_was_sent_again_to_the_topic_made_anew_may_have_been_read_in_the_old_one() -> None:
    history = recreated()
    history.created = {OLD: 1.0, NEW: 6.0}
    history.incarnation(OLD).seen[Position(0, 0)] = Told(b"a", 4.0)
    history.incarnation(NEW).acknowledged[Position(0, 0)] = Told(b"a", 2.0)
    assert not list(t2_incarnations.check(history))


def test_a_new_topic_that_does_not_begin_at_0_is_seen() -> None:
    history = recreated()
    history.first_offsets = [(NEW, 0, 0), (NEW, 1, 3)]
    assert [found.invariant for found in t2_incarnations.check(history)] == ["T2"]


# --- at most once


def test_a_message_that_is_processed_twice_is_seen_unless_the_commit_was_lost() -> None:
    position = Position(0, 7)
    processed = [Processed(position, b"a", 1.0, 1.1, "one"), Processed(position, b"a", 3.0, 3.1, "two")]
    assert [found.invariant for found in o1_processed_once.check("t", processed, [])] == ["O1"]
    assert not list(o1_processed_once.check("t", processed, [2.0]))
    assert list(o1_processed_once.check("t", processed, [0.5]))
    others = [processed[0], processed[1]._replace(value=b"b")]
    assert not list(o1_processed_once.check("t", others, []))


# --- duplicates


def identified(*messages: tuple[int, bytes, bool]) -> list[Identified]:
    """(timestamp, id, whether it was delivered) of each, in the order of the log."""
    return [
        Identified(Position(0, offset), timestamp, identity, b"%d" % offset, is_delivered, False)
        for offset, (timestamp, identity, is_delivered) in enumerate(messages)
    ]


def x1(*messages: tuple[int, bytes, bool]) -> list[str]:
    return [found.invariant for found in x1_duplicates.check("t", identified(*messages), 1000)]


def test_a_message_that_is_left_out_and_repeats_nothing_is_seen() -> None:
    assert not x1((0, b"a", True), (500, b"a", False))
    assert x1((0, b"a", True), (1500, b"a", False)) == ["X1"], "the other one is long past"
    assert x1((0, b"a", True), (500, b"b", False)) == ["X1"], "the other one has another id"
    assert x1((0, b"a", False), (500, b"a", False)) == ["X1"], "neither came"


def test_a_duplicate_that_comes_is_seen_where_it_is_certain() -> None:
    assert x1((0, b"a", True), (500, b"a", True)) == ["X2"]
    repeated_on = ((0, b"a", True), (900, b"a", False), (1100, b"a", True), (1500, b"a", True))
    assert not x1(*repeated_on), "whoever begins to read at 900 takes that one for the first"


# --- names


def named(*values: bytes) -> LogHistory:
    history = LogHistory("t", acks=-1, idempotent=False)
    history.final = {Position(0, offset): value for offset, value in enumerate(values)}
    return history


def passed_ms(since: float, until: float) -> int:
    return int((until - since) * 1000)


def i1(history: LogHistory, *attempts: Attempt) -> list[str]:
    return [found.invariant for found in i1_names.check(history, attempts, passed_ms, NEVER)]


def test_a_message_that_is_stored_twice_under_a_name_is_seen() -> None:
    first, second = Attempt(b"n", b"usual", 1.0, 1.1), Attempt(b"n", b"usual", 2.0, 2.1)
    assert not i1(named(b"n.usual.0"), first, second)
    assert i1(named(b"n.usual.0", b"n.usual.0"), first, second) == ["I1"]
    assert not i1(named(b"n.usual.0", b"n.usual.0"), first, second._replace(asked=700.0)), "long forgotten"


def test_another_content_that_is_stored_under_a_name_is_seen() -> None:
    first, other = Attempt(b"n", b"usual", 1.0, 1.1), Attempt(b"n", b"other", 2.0, 2.1)
    assert i1(named(), first, other) == ["I2"]
    assert not i1(named(), Attempt(b"n", b"usual", 1.0), other), "the first may have failed"


# --- letters that are sent back


def redriven() -> RedrivenHistory:
    """One message, which died once and was sent back."""
    history = RedrivenHistory("t", "jobs")
    message = SentOut(b"a", b"k", [("colour", b"blue")], 1, 1.0, is_acknowledged=True, may_be_accepted=True)
    history.sent[b"a"] = message
    history.letters[b"a"] = 1
    sent_back = [*message.headers, (header_names.FOR, b"jobs")]
    history.copies = [
        Copy(Position(0, 0), b"a", b"k", message.headers),
        Copy(Position(0, 1), b"a", b"k", sent_back),
    ]
    history.came_to_others = [(b"a", Position(0, 0))]
    return history


def v1(history: RedrivenHistory) -> list[str]:
    return [found.invariant for found in v1_redriven.check(history, NEVER)]


def test_a_message_that_never_comes_to_its_end_is_seen() -> None:
    history = redriven()
    assert not v1(history)
    history.sent[b"a"].may_be_accepted = False
    assert v1(history) == ["V1"]


def test_a_copy_that_comes_to_others_is_seen() -> None:
    history = redriven()
    history.came_to_others.append((b"a", Position(0, 1)))
    assert v1(history) == ["V2"]


def test_a_copy_that_is_not_the_message_or_one_too_many_is_seen() -> None:
    history = redriven()
    history.copies[1] = history.copies[1]._replace(headers=[(header_names.FOR, b"jobs")])
    assert v1(history) == ["V2"]
    history = redriven()
    history.copies.append(history.copies[1]._replace(position=Position(0, 2)))
    assert v1(history) == ["V2"]
    history.doubtful_runs = 1
    assert not v1(history)


def test_a_node_that_has_not_heard_of_a_change_yet_may_tell_of_the_topic_before_it() -> None:
    late = look(7.0, 7.1, OLD, 2)
    assert t1(recreated(late))
    assert not t1(recreated(late._replace(known=4.0)))
    history = recreated(look(4.0, 4.1, OLD, 2), late)
    assert list(t2_incarnations.check(history))
    history.looks[-1] = late._replace(known=4.0)
    assert not list(t2_incarnations.check(history))
