"""Who may use transactional ids, and what they cost those who don't."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Producer

from postroad.wire.messages import find_coordinator
from tests.broker.harness import WAIT_S, Running
from tests.broker.test_transactions import REFUSED, UNKNOWN_ID, UNKNOWN_TOPIC, Worker


def test_transactional_ids_can_be_turned_off(start: Callable[..., Running]) -> None:
    running = start(kafka_transactions="false")
    with running.connect() as connection:
        assert Worker(connection, "shop").error == REFUSED
    assert "__transaction_state" not in running.node.image.topics


def test_who_has_no_transactional_id_causes_no_transaction_topic(start: Callable[..., Running]) -> None:
    running = start()
    running.create("t")
    through = Producer({"bootstrap.servers": running.bootstrap, "enable.idempotence": True})
    through.produce("t", b"x")
    assert through.flush(WAIT_S) == 0
    assert "__transaction_state" not in running.node.image.topics


def test_the_coordinator_of_a_transactional_id_is_found(shared: Running) -> None:
    request = find_coordinator.FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])
    [found] = shared.call(find_coordinator, 6, request).coordinators
    assert (found.error_code, found.node_id, found.port) == (0, 1, shared.node.port)


def test_strangers_cost_no_memory(shared: Running, topic: str) -> None:
    """Whoever names ids that nobody has is refused, and nothing is kept of it."""
    with shared.connect() as connection:
        Worker(connection, topic)  # a connection from before the coordinator was there may be hung up
    with shared.connect() as connection:
        known = Worker(connection, topic)
        coordination = shared.node.transactions
        before = len(coordination._offsets_spoke), len(coordination.find(topic).transactions._spoke)
        for number in range(20):
            known.name = f"{topic}-{number}"
            assert known.commit_offset(topic, topic, 5) in (UNKNOWN_TOPIC, UNKNOWN_ID)
            assert known.end(commit=True) == UNKNOWN_ID
    after = len(coordination._offsets_spoke), len(coordination.find(topic).transactions._spoke)
    assert after == before
