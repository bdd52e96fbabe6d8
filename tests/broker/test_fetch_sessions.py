"""Fetch sessions (KIP-227): the core by itself, then over the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from postroad.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, FetchSessions
from postroad.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from postroad.wire import fetch as codec
from postroad.wire.fetch import FetchRequest, PartitionAnswer, PartitionFetch, TopicKey
from postroad.wire.messages import fetch
from tests.broker.fetching import fetch_request, offsets_of, wanted
from tests.broker.harness import Running

SESSION_NOT_FOUND, BAD_SESSION_EPOCH = 70, 71


def request(
    session: int, epoch: int, *partitions: tuple[TopicKey, int, int], forgotten: Any = ()
) -> FetchRequest:
    """`partitions` are (topic, index, offset)."""
    asked = [PartitionFetch(topic, index, -1, offset, 1000) for topic, index, offset in partitions]
    told = {
        "session_id": session,
        "session_epoch": epoch,
        "partitions": asked,
        "forgotten": list(forgotten),
    }
    return FetchRequest(**(dict.fromkeys(FetchRequest._fields, 0) | told))  # type: ignore[arg-type]


def answer(topic: TopicKey, index: int, high: int = 0, records: bytes | None = None, error: int = 0) -> Any:
    return PartitionAnswer(topic, index, error, high, high, 0, records)


def places(answers: list[PartitionAnswer]) -> list[tuple[TopicKey, int]]:
    return [(a.topic, a.index) for a in answers]


def test_the_first_answer_tells_of_all_partitions_and_the_next_only_news() -> None:
    session = FetchSessions(10).begin(request(0, INITIAL_EPOCH, ("a", 0, 0), ("a", 1, 0)))
    assert session is not None
    both = [answer("a", 0), answer("a", 1)]
    assert places(session.news(both)) == [("a", 0), ("a", 1)]
    assert session.news(both) == []
    assert places(session.news([answer("a", 0), answer("a", 1, high=5)])) == [("a", 1)]
    assert places(session.news([answer("a", 0, records=b"x"), answer("a", 1, high=5)])) == [("a", 0)]


def test_an_error_is_told_each_time_and_its_end_too() -> None:
    session = FetchSessions(10).begin(request(0, INITIAL_EPOCH, ("a", 0, 0)))
    assert session is not None
    session.news([answer("a", 0, high=3)])
    failed = PartitionAnswer("a", 0, 6, -1, -1, -1, None)
    assert len(session.news([failed])) == len(session.news([failed])) == 1
    assert len(session.news([answer("a", 0, high=3)])) == 1


def test_partitions_with_records_go_to_the_end_so_that_none_starves() -> None:
    session = FetchSessions(10).begin(request(0, INITIAL_EPOCH, ("a", 0, 0), ("b", 0, 0), ("c", 0, 0)))
    assert session is not None
    session.news([answer("a", 0, records=b"x")])
    assert list(session.partitions) == [("b", 0), ("c", 0), ("a", 0)]


def test_an_incremental_request_adds_changes_and_forgets() -> None:
    sessions = FetchSessions(10)
    session = sessions.begin(request(0, INITIAL_EPOCH, ("a", 0, 0), ("a", 1, 0)))
    assert session is not None
    again = sessions.begin(request(session.id, 1, ("a", 1, 9), ("b", 0, 4), forgotten=[("a", 0), ("x", 7)]))
    assert again is session
    assert {key: p.offset for key, p in session.partitions.items()} == {("a", 1): 9, ("b", 0): 4}


def test_a_partition_that_was_forgotten_and_is_back_is_told_anew() -> None:
    sessions = FetchSessions(10)
    session = sessions.begin(request(0, INITIAL_EPOCH, ("a", 0, 0)))
    assert session is not None
    session.news([answer("a", 0)])
    sessions.begin(request(session.id, 1, forgotten=[("a", 0)]))
    sessions.begin(request(session.id, 2, ("a", 0, 0)))
    assert len(session.news([answer("a", 0)])) == 1


def test_a_wrong_epoch_or_session_is_refused() -> None:
    sessions = FetchSessions(10)
    session = sessions.begin(request(0, INITIAL_EPOCH, ("a", 0, 0)))
    assert session is not None
    with pytest.raises(InvalidFetchSessionEpoch):
        sessions.begin(request(session.id, 2))
    with pytest.raises(FetchSessionIdNotFound):
        sessions.begin(request(session.id + 1, 1))


def test_changing_between_names_and_ids_needs_a_new_session() -> None:
    sessions = FetchSessions(10)
    session = sessions.begin(request(0, INITIAL_EPOCH, ("a", 0, 0)))
    assert session is not None
    with pytest.raises(FetchSessionTopicIdError):
        sessions.begin(request(session.id, 1, (b"\1" * 16, 0, 0)))


def test_a_final_epoch_ends_the_session() -> None:
    sessions = FetchSessions(10)
    session = sessions.begin(request(0, INITIAL_EPOCH, ("a", 0, 0)))
    assert session is not None
    assert sessions.begin(request(session.id, FINAL_EPOCH, ("a", 0, 0))) is None
    assert len(sessions) == 0


def test_a_full_fetch_replaces_the_clients_session() -> None:
    sessions = FetchSessions(10)
    first = sessions.begin(request(0, INITIAL_EPOCH, ("a", 0, 0)))
    assert first is not None
    second = sessions.begin(request(first.id, INITIAL_EPOCH, ("a", 0, 0)))
    assert second is not None
    assert second.id != first.id
    assert len(sessions) == 1


def test_epochs_go_round_without_touching_the_special_ones() -> None:
    sessions = FetchSessions(10)
    session = sessions.begin(request(0, INITIAL_EPOCH, ("a", 0, 0)))
    assert session is not None
    session.epoch = 0x7FFFFFFF
    sessions.begin(request(session.id, 0x7FFFFFFF))
    assert session.epoch == 1


def test_a_newcomer_gets_no_session_while_all_are_in_use() -> None:
    sessions = FetchSessions(3)
    busy = [sessions.begin(request(0, INITIAL_EPOCH, ("a", n, 0))) for n in range(3)]
    for _ in range(20):
        assert sessions.begin(request(0, INITIAL_EPOCH, ("new", 0, 0))) is None
        for session in busy:
            assert session is not None
            assert sessions.begin(request(session.id, session.epoch)) is session


def test_a_session_that_fell_out_of_use_makes_room() -> None:
    sessions = FetchSessions(3)
    dead = [sessions.begin(request(0, INITIAL_EPOCH, ("a", n, 0))) for n in range(3)]
    given = [sessions.begin(request(0, INITIAL_EPOCH, ("new", 0, 0))) for _ in range(20)]
    assert sum(session is not None for session in given) >= 1
    assert len(sessions) == 3
    assert dead[0] is not None
    with pytest.raises(FetchSessionIdNotFound):
        sessions.begin(request(dead[0].id, 1))


def test_no_room_at_all_means_no_sessions() -> None:
    sessions = FetchSessions(0)
    assert [sessions.begin(request(0, INITIAL_EPOCH, ("a", 0, 0))) for _ in range(5)] == [None] * 5


# --- over the wire


@pytest.mark.parametrize("version", [codec.SESSIONS_FROM, 12, 13, codec.MAX_VERSION])
def test_an_incremental_fetch_is_told_only_what_changed(shared: Running, version: int) -> None:
    name = f"sessions-{version}"
    topic_id = shared.create(name, 2)
    key = topic_id if version >= 13 else name
    with shared.connect() as reader:
        asked = fetch_request(key, wanted(0), wanted(1), epoch=INITIAL_EPOCH)
        first = reader.call(fetch, version, asked)
        assert first.session_id > 0
        assert len(first.responses[0].partitions) == 2

        nothing = reader.call(fetch, version, fetch_request(key, session=first.session_id, epoch=1))
        assert (nothing.error_code, nothing.session_id, nothing.responses) == (0, first.session_id, [])

        shared.publish(name, b"news", partition=1)
        news = reader.call(fetch, version, fetch_request(key, session=first.session_id, epoch=2))
        [partition] = news.responses[0].partitions
        assert (partition.partition_index, offsets_of(partition)) == (1, [0])

        named = {"topic_id": topic_id} if version >= 13 else {"topic": name}
        forgotten = [fetch.ForgottenTopic(**named, partitions=[1])]
        asked = fetch_request(key, session=first.session_id, epoch=3, forgotten=forgotten)
        assert reader.call(fetch, version, asked).responses == []


def test_an_unknown_session_and_a_wrong_epoch_are_errors_of_the_whole_answer(
    shared: Running, topic: str
) -> None:
    shared.create(topic)
    with shared.connect() as reader:
        answer = reader.call(fetch, 12, fetch_request(topic, session=123_456, epoch=7))
        assert (answer.error_code, answer.responses) == (SESSION_NOT_FOUND, [])
        begun = reader.call(fetch, 12, fetch_request(topic, wanted(), epoch=INITIAL_EPOCH))
        again = reader.call(fetch, 12, fetch_request(topic, session=begun.session_id, epoch=5))
        assert again.error_code == BAD_SESSION_EPOCH


def test_sessions_can_be_turned_off(start: Callable[..., Running]) -> None:
    running = start(limits_fetch_sessions_max=0)
    running.create("t")
    answer = running.call(fetch, 12, fetch_request("t", wanted(), epoch=INITIAL_EPOCH))
    assert (answer.session_id, len(answer.responses)) == (0, 1)
