"""Which partitions have a ledger: what is decided, and what the image then says."""

from __future__ import annotations

from postroad.cluster.controller import add_ledgers, add_partitions, create_topic
from postroad.cluster.ids import ID_BYTES, ledger_id
from postroad.cluster.image import Image
from postroad.cluster.leadership import start
from tests.cluster.applied import commit, topic_id


def with_topic(partitions: int) -> Image:
    image = Image()
    commit(image, create_topic(image, "jobs", topic_id(1), nodes=[1], partitions=partitions))
    return image


def ledgers(image: Image) -> list[int]:
    return [index for index, state in enumerate(image.topics["jobs"].partitions) if state.ledger]


def test_partitions_have_a_ledger_from_the_decision_on() -> None:
    image = with_topic(250)
    assert ledgers(image) == []
    decision = add_ledgers(image, topic_id(1), {3, 99, 100, 249})
    assert len(decision.operations) == 3, "one for each chunk"
    commit(image, decision)
    assert ledgers(image) == [3, 99, 100, 249]


def test_nothing_is_decided_for_partitions_that_have_one_or_are_gone() -> None:
    image = with_topic(2)
    commit(image, add_ledgers(image, topic_id(1), {0}))
    assert add_ledgers(image, topic_id(1), {0}) == ([], [])
    assert add_ledgers(image, topic_id(2), {0}) == ([], [])


def test_ledger_stays_when_leaders_change_and_the_topic_grows() -> None:
    image = with_topic(1)
    commit(image, add_ledgers(image, topic_id(1), {0}))
    for decision in start(image, 1, same_boot=False, clean=False, is_synced=lambda topic: False):
        commit(image, decision)
    commit(image, add_partitions(image, "jobs", 2, nodes=[1]))
    assert ledgers(image) == [0]


def test_ledgers_of_a_topic_go_by_an_id_that_is_no_topics() -> None:
    first, second = ledger_id(topic_id(1)), ledger_id(topic_id(2))
    assert len(first) == ID_BYTES
    assert first == ledger_id(topic_id(1))
    assert len({first, second, topic_id(1), topic_id(2)}) == 4
