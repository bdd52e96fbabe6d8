"""A ledger lies beside the messages that it speaks of: it comes, moves and goes with their partition."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from postroad.broker.data_directory import MARKER
from postroad.broker.subscriptions.states import refusal
from postroad.cluster.ids import ledger_id
from postroad.errors import CoordinatorNotAvailable, NotLeaderOrFollower
from tests.broker.harness import Running, running_node
from tests.broker.test_forgotten_topics import poll, poll_some, subscribed
from tests.broker.test_queue_states import position_of, segment_of
from tests.broker.test_queues import GROUP, configure, ledger_of, publish_together, settle_as
from tests.clients.share_session import Error, Fate, Word, one, session
from tests.clients.wait import until


def test_partition_has_a_ledger_from_its_first_subscription_on(start: Callable[..., Running]) -> None:
    running = start()
    running.create("jobs", partitions=2)
    assert [running.partition("jobs", index).ledger for index in (0, 1)] == [None, None]
    configure(running, postroad_topics="jobs")
    assert [state.ledger for state in running.node.image.topics["jobs"].partitions] == [True, True]
    for index in (0, 1):
        home = Path(running.partition("jobs", index).log.directory) / "ledger"
        assert list(home.glob("*.log"))
        assert ledger_of(running, index=index).log.end_offset == 1


def test_ledger_goes_with_its_topic(start: Callable[..., Running]) -> None:
    running = start()
    topic_id = running.create("jobs")
    configure(running, postroad_topics="jobs")
    home = Path(running.partition("jobs").log.directory)
    running.delete("jobs")
    until(lambda: not home.exists(), "its directory is removed")
    assert running.node.subscriptions.ledgers(GROUP) == []
    assert all(partition.topic != "jobs" for partition in running.node.partitions)
    assert running.node.partitions.find(ledger_id(topic_id), 0) is None


def test_clients_find_no_ledger(start: Callable[..., Running]) -> None:
    running = start()
    topic_id = running.create("jobs")
    configure(running, postroad_topics="jobs")
    assert running.node.partitions.find(ledger_id(topic_id), 0) is None
    assert {partition.topic for partition in running.node.partitions} == {"jobs", "__consumer_offsets"}


# --- when the log of the messages has lost its end


def crash(home: Path) -> None:
    """As if the node had not been stopped: the next start begins new leader epochs."""
    (home / MARKER).unlink()


def test_records_of_lost_messages_do_not_count_for_those_that_take_their_offsets(tmp_path: Path) -> None:
    """Also where a second power cut takes all that was written to the ledger since the first."""
    with running_node(tmp_path, durability_flush="os") as running:
        subscribed(running)
        publish_together(running, "jobs", 10)
        running.publish("jobs", *[b"old"] * 10)
        with session(running.bootstrap, GROUP, "jobs") as member:
            assert len(member.fetch_some().held) == 20
            accepts = (Word(first, last, [Fate.ACCEPT]) for first, last in ((12, 19), (0, 2), (4, 11)))
            for accept in accepts:
                assert member.acknowledge(accept) == Error.NONE
            assert member.acknowledge(one(3, Fate.RELEASE)) == Error.NONE
        segment, middle = segment_of(running), position_of(running, 10)
    with segment.open("r+b") as file:
        file.truncate(middle)
    crash(tmp_path)
    ledger, aside = segment.parent / "ledger", tmp_path / "aside"
    shutil.copytree(ledger, aside)
    with running_node(tmp_path, durability_flush="os") as running:
        running.publish("jobs", *[b"new"] * 5)
    crash(tmp_path)
    shutil.rmtree(ledger)
    aside.rename(ledger)
    with running_node(tmp_path, durability_flush="os") as running:
        assert running.partition("jobs").high_watermark == 15
        with session(running.bootstrap, GROUP, "jobs") as member:
            found = {held.offset: held.delivery for held in member.fetch_some().held}
    assert found == {3: 2} | dict.fromkeys(range(10, 15), 1)


def test_nothing_need_be_written_where_a_new_leader_epoch_tells_what_was_lost(tmp_path: Path) -> None:
    with running_node(tmp_path, durability_flush="os") as running:
        key = subscribed(running)
        running.publish("jobs", *[b"old"] * 4)
        assert poll_some(running, key, "gateway") == [0, 1, 2, 3]
        for offset in (3, 0):
            assert settle_as(running, key.topic_id, "gateway", offset) == Error.NONE
        segment, middle = segment_of(running), position_of(running, 2)
        written = ledger_of(running).log.end_offset
    with segment.open("r+b") as file:
        file.truncate(middle)
    crash(tmp_path)
    with running_node(tmp_path, durability_flush="os") as running:
        running.publish("jobs", b"new")
        running.publish("jobs", b"new")
    crash(tmp_path)
    with running_node(tmp_path, durability_flush="os") as running:
        (ledger,) = running.node.subscriptions.ledgers(GROUP)
        assert (ledger.start, list(ledger.done)) == (1, [])
        assert ledger_of(running).log.end_offset == written
        assert poll_some(running, key, "gateway") == [1, 2, 3]


# --- leaders change


def resign(running: Running, topic_id: bytes) -> None:
    running.on_loop(lambda: running.node.subscriptions.partition_resigned(topic_id, 0))


def lead(running: Running) -> None:
    partition = running.partition("jobs")
    running.on_loop(lambda: running.node.subscriptions.partition_led(partition))


def test_subscription_goes_on_where_it_was_when_its_partition_is_led_again(
    start: Callable[..., Running],
) -> None:
    running = start()
    key = subscribed(running)
    running.publish("jobs", *[b"x"] * 4)
    assert poll_some(running, key, "gateway") == [0, 1, 2, 3]
    assert settle_as(running, key.topic_id, "gateway", 1) == Error.NONE
    resign(running, key.topic_id)
    assert running.node.subscriptions.ledgers(GROUP) == []
    assert poll(running, key, "gateway") == []
    assert settle_as(running, key.topic_id, "gateway", 2) != Error.NONE
    lead(running)
    assert poll_some(running, key, "another gateway") == [0, 2, 3]


def test_whoever_waits_when_a_partition_is_resigned_is_answered(start: Callable[..., Running]) -> None:
    running = start()
    key = subscribed(running)
    with session(running.bootstrap, GROUP, "jobs") as member:
        assert member.fetch(wait_ms=10).held == []
        queue = running.node.subscriptions.queue_in_use(key)
        assert queue is not None
        resign(running, key.topic_id)
        assert queue.closed
        assert not queue.waiters


def test_s4_ledger_is_served_only_when_all_that_former_leaders_wrote_is_committed(
    start: Callable[..., Running],
) -> None:
    running = start()
    key = subscribed(running)
    running.publish("jobs", b"x", b"y")
    assert poll_some(running, key, "gateway") == [0, 1]
    assert settle_as(running, key.topic_id, "gateway", 0) == Error.NONE
    ledger = ledger_of(running)
    resign(running, key.topic_id)
    end = ledger.high_watermark

    def lead_with_a_follower_behind() -> None:
        ledger.high_watermark = end - 1
        running.node.subscriptions.partition_led(running.partition("jobs"))

    running.on_loop(lead_with_a_follower_behind)
    assert poll(running, key, "gateway") == []
    assert settle_as(running, key.topic_id, "gateway", 0) != Error.NONE, "its record may still be undone"
    running.on_loop(lambda: ledger.commit(end))
    assert poll_some(running, key, "gateway") == [1]


def test_who_settles_at_a_leader_that_resigned_is_sent_to_the_next_one() -> None:
    assert isinstance(refusal(NotLeaderOrFollower()), NotLeaderOrFollower)
    assert isinstance(refusal(CoordinatorNotAvailable("the disk")), CoordinatorNotAvailable)
