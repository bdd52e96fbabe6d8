"""Share sessions and acknowledgements by hand: renewed locks, wrong epochs, locks that are not one's own."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient

from .confluent import send_values
from .conftest import Broker
from .share import LONG_LOCK_MS, configure, send_singly, short_lock_ms
from .share_session import LAST_EPOCH, NEW_SESSION, Error, Fate, Word, one, session


@pytest.fixture(autouse=True)
def _subscription(admin: AdminClient, broker: Broker, group: str) -> None:
    configure(admin, broker, group)


def test_fetch_tells_how_long_its_locks_last(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    configure(admin, broker, group, share_record_lock_duration_ms=20_000)
    send_values(broker.bootstrap, topic, 1)
    with session(broker.bootstrap, group, topic) as member:
        assert member.fetch_some().lock_ms == 20_000


def test_record_limit_is_kept_within_a_batch(broker: Broker, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 10, linger_ms=100)
    with session(broker.bootstrap, group, topic) as member:
        assert member.fetch_some(max_records=3).offsets == [0, 1, 2]
        assert member.fetch_some(max_records=4).offsets == [3, 4, 5, 6]


def test_renewed_lock_lasts_from_the_renewal_on(
    admin: AdminClient, broker: Broker, topic: str, group: str
) -> None:
    lock_ms = 3 * short_lock_ms(broker)  # the renewals have to come within it
    configure(admin, broker, group, share_record_lock_duration_ms=lock_ms)
    send_singly(broker.bootstrap, topic, 3)
    with session(broker.bootstrap, group, topic) as member:
        assert member.fetch_some().offsets == [0, 1, 2]
        configure(admin, broker, group, share_record_lock_duration_ms=2 * LONG_LOCK_MS)
        # Both requests can renew.
        assert member.acknowledge(one(0, Fate.RENEW), renew=True) == Error.NONE
        assert member.fetch(one(1, Fate.RENEW), renew=True).acknowledge_error == Error.NONE
        time.sleep(lock_ms / 1000)
        # The third one's lock has run out: it is free, and this member has no say in it.
        assert member.acknowledge(one(2, Fate.ACCEPT)) == Error.INVALID_RECORD_STATE
        assert [(h.offset, h.delivery) for h in member.fetch_some().held] == [(2, 2)]
        assert member.acknowledge(Word(0, 2, [Fate.ACCEPT])) == Error.NONE


def test_renewal_with_a_fetch_brings_no_messages(broker: Broker, topic: str, group: str) -> None:
    send_singly(broker.bootstrap, topic, 2)
    with session(broker.bootstrap, group, topic) as member:
        assert member.fetch_some(max_records=1).offsets == [0]
        assert member.fetch(one(0, Fate.RENEW), renew=True).held == []
        assert member.fetch_some().offsets == [1]


def test_renewals_can_be_switched_off(admin: AdminClient, broker: Broker, topic: str, group: str) -> None:
    configure(admin, broker, group, share_renew_acknowledge_enable="false")
    send_singly(broker.bootstrap, topic, 1)
    with session(broker.bootstrap, group, topic) as member:
        member.fetch_some()
        assert member.acknowledge(one(0, Fate.RENEW), renew=True) == Error.INVALID_RECORD_STATE
        assert member.acknowledge(one(0, Fate.ACCEPT)) == Error.NONE


def test_version_without_renewals_refuses_them(broker: Broker, topic: str, group: str) -> None:
    send_singly(broker.bootstrap, topic, 1)
    with session(broker.bootstrap, group, topic) as member:
        member.fetch_some()
        assert member.acknowledge(one(0, Fate.RENEW), version=1) == Error.INVALID_REQUEST
        assert member.acknowledge(one(0, Fate.ACCEPT), version=1) == Error.NONE


def test_one_fate_for_each_offset_or_one_for_all(broker: Broker, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 10)
    with session(broker.bootstrap, group, topic) as member:
        assert len(member.fetch_some().held) == 10
        each = [Fate.ACCEPT, Fate.RELEASE, Fate.REJECT, Fate.GAP, Fate.RELEASE]
        assert member.acknowledge(Word(0, 4, each), Word(5, 9, [Fate.ACCEPT])) == Error.NONE
        assert member.fetch_some().offsets == [1, 4]


def test_acknowledgements_come_before_the_fetch_that_brings_them(
    broker: Broker, topic: str, group: str
) -> None:
    send_singly(broker.bootstrap, topic, 2)
    with session(broker.bootstrap, group, topic) as member:
        assert member.fetch_some().offsets == [0, 1]
        answer = member.fetch(one(0, Fate.ACCEPT), one(1, Fate.RELEASE), wait_ms=2000)
        assert (answer.acknowledge_error, answer.offsets) == (Error.NONE, [1])


def test_s5_acknowledgement_of_a_message_that_is_not_held_changes_nothing(
    broker: Broker, topic: str, group: str
) -> None:
    send_singly(broker.bootstrap, topic, 4)
    with (
        session(broker.bootstrap, group, topic) as member,
        session(broker.bootstrap, group, topic) as other,
    ):
        assert member.fetch_some(max_records=2).offsets == [0, 1]
        assert other.fetch_some(max_records=1).offsets == [2]
        assert member.acknowledge(one(2, Fate.ACCEPT)) == Error.INVALID_RECORD_STATE  # somebody else's
        assert other.acknowledge(one(2, Fate.RELEASE)) == Error.NONE
        assert other.acknowledge(one(2, Fate.ACCEPT)) == Error.INVALID_RECORD_STATE  # given back before
        assert member.acknowledge(one(1, Fate.ACCEPT)) == Error.NONE
        assert member.acknowledge(one(1, Fate.RELEASE)) == Error.INVALID_RECORD_STATE  # done with
        assert other.fetch_some().offsets == [2, 3]


def test_one_bad_word_takes_back_the_others_of_its_partition(broker: Broker, topic: str, group: str) -> None:
    send_singly(broker.bootstrap, topic, 3)
    with session(broker.bootstrap, group, topic) as member:
        assert member.fetch_some().offsets == [0, 1, 2]
        assert member.acknowledge(one(1, Fate.RELEASE)) == Error.NONE
        assert member.acknowledge(one(0, Fate.ACCEPT), one(1, Fate.ACCEPT)) == Error.INVALID_RECORD_STATE
        assert member.acknowledge(one(0, Fate.RELEASE)) == Error.NONE  # still held
        assert member.fetch_some().offsets == [0, 1]


@pytest.mark.parametrize(
    "words",
    [
        [Word(1, 0, [Fate.ACCEPT])],
        [Word(0, 1, [])],
        [Word(0, 2, [Fate.ACCEPT, Fate.ACCEPT])],
        [one(0, 5)],
        [one(0, -1)],
        [one(0, Fate.RENEW)],
        [one(2, Fate.ACCEPT), one(0, Fate.ACCEPT)],
    ],
    ids=[
        "backwards",
        "no-fate",
        "too-few-fates",
        "unknown-fate",
        "negative-fate",
        "renew-unsaid",
        "unsorted",
    ],
)
def test_words_that_make_no_sense_are_refused(
    broker: Broker, topic: str, group: str, words: list[Word]
) -> None:
    send_singly(broker.bootstrap, topic, 3)
    with session(broker.bootstrap, group, topic) as member:
        member.fetch_some()
        assert member.acknowledge(*words) == Error.INVALID_REQUEST
        assert member.acknowledge(Word(0, 2, [Fate.ACCEPT])) == Error.NONE


def test_request_with_a_wrong_epoch_is_refused_and_the_session_goes_on(
    broker: Broker, topic: str, group: str
) -> None:
    send_singly(broker.bootstrap, topic, 1)
    with session(broker.bootstrap, group, topic) as member:
        member.fetch_some()
        wrong = member.epoch + 1
        assert member.fetch(epoch=wrong).error == Error.INVALID_SHARE_SESSION_EPOCH
        assert member.acknowledge(one(0, Fate.ACCEPT), epoch=wrong) == Error.INVALID_SHARE_SESSION_EPOCH
        assert member.acknowledge(one(0, Fate.ACCEPT), epoch=0) == Error.INVALID_SHARE_SESSION_EPOCH
        assert member.acknowledge(one(0, Fate.ACCEPT)) == Error.NONE


def test_session_that_was_never_opened_is_not_found(broker: Broker, topic: str, group: str) -> None:
    with session(broker.bootstrap, group, topic) as member:
        assert member.fetch(epoch=1).error == Error.SHARE_SESSION_NOT_FOUND
        assert member.acknowledge(one(0, Fate.ACCEPT), epoch=1) == Error.SHARE_SESSION_NOT_FOUND
        assert member.acknowledge(epoch=LAST_EPOCH) == Error.SHARE_SESSION_NOT_FOUND


def test_session_does_not_begin_with_acknowledgements(broker: Broker, topic: str, group: str) -> None:
    with session(broker.bootstrap, group, topic) as member:
        assert member.fetch(one(0, Fate.ACCEPT), epoch=NEW_SESSION).error == Error.INVALID_REQUEST


def test_last_request_of_a_session_frees_what_it_does_not_settle(
    broker: Broker, topic: str, group: str
) -> None:
    send_singly(broker.bootstrap, topic, 3)
    with session(broker.bootstrap, group, topic) as leaves, session(broker.bootstrap, group, topic) as heir:
        assert leaves.fetch_some().offsets == [0, 1, 2]
        assert leaves.acknowledge(one(1, Fate.ACCEPT), epoch=LAST_EPOCH) == Error.NONE
        assert [(held.offset, held.delivery) for held in heir.fetch_some().held] == [(0, 2), (2, 2)]


def test_end_of_a_connection_frees_what_its_session_held(broker: Broker, topic: str, group: str) -> None:
    send_singly(broker.bootstrap, topic, 2)
    with session(broker.bootstrap, group, topic) as heir:
        with session(broker.bootstrap, group, topic) as dies:
            assert dies.fetch_some().offsets == [0, 1]
        assert [(held.offset, held.delivery) for held in heir.fetch_some().held] == [(0, 2), (1, 2)]


def test_end_of_an_old_connection_does_not_harm_the_session_on_a_new_one(
    broker: Broker, topic: str, group: str
) -> None:
    send_singly(broker.bootstrap, topic, 3)
    with (
        session(broker.bootstrap, group, topic) as watcher,
        session(broker.bootstrap, group, topic) as before,
    ):
        assert before.fetch_some(max_records=1).offsets == [0]
        with session(broker.bootstrap, group, topic, before.member_id) as after:
            assert after.fetch_some(max_records=1).offsets == [1]
            before.connection.socket.close()
            assert watcher.fetch_some(max_records=3).offsets == [2]
            assert after.acknowledge(one(1, Fate.ACCEPT)) == Error.NONE
