"""kill -9 while workers take from a queue: nothing that was accepted comes back, nothing else is lost."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from operator import gt
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from postroad.testing import Node, node
from tests.clients.confluent import producer, send_all
from tests.clients.conftest import Broker
from tests.clients.share import answer, configure, member, take
from tests.clients.wait import until

from .conftest import create_topic
from .crew import GROUP, Place, Register, Worker
from .drained_queue import drain, everything_is_settled, hopeless
from .load import PARTITIONS, TOPIC, Load, running_threads

CRASHES, FEW_CRASHES = 20, 5
LOAD_S = 0.8  # between two crashes; when in it the crash comes is drawn from a seed
WORKERS = 3


@pytest.mark.slow
def test_twenty_crashes_bring_back_nothing_that_was_accepted_and_lose_nothing_else(tmp_path: Path) -> None:
    """S1 and S4."""
    with node(directory=tmp_path) as running:
        register, load = work_through_crashes(running, CRASHES, everything_is_settled)
        left, buried = drain(running, hopeless(load))
    assert len(load.acknowledged) > 50 * CRASHES, "there was hardly any load"
    assert len(register.confirmed) > len(load.acknowledged) / 2, "hardly anything was confirmed"
    assert register.came_back == []
    assert not {Place(m.partition(), m.offset()) for m in left} & register.confirmed.keys()
    assert buried == hopeless(load)


@pytest.mark.slow
def test_crashes_do_not_change_the_order_of_a_subscription_that_keeps_it(tmp_path: Path) -> None:
    with node(directory=tmp_path) as running:
        promises = {"postroad_order": "partition"}
        register, load = work_through_crashes(
            running, FEW_CRASHES, everything_is_settled, Trickle(running, "producer"), **promises
        )
    assert len(load.acknowledged) > 20 * FEW_CRASHES, "there was hardly any load"
    assert register.overtook == []
    assert register.came_back == []


@pytest.mark.slow
def test_crashes_do_not_deliver_twice_what_is_delivered_at_most_once(tmp_path: Path) -> None:
    with node(directory=tmp_path) as running:
        promises: dict[str, Any] = {"postroad_delivery": "at-most-once"}
        register, _ = work_through_crashes(running, FEW_CRASHES, the_last_were_delivered, **promises)
    assert len(register.deliveries) > 50 * FEW_CRASHES, "there was hardly any load"
    assert max(register.deliveries.values()) == 1


def test_duplicates_of_what_was_accepted_are_known_after_a_crash(own_node: Node) -> None:
    create_topic(own_node, TOPIC)
    admin = AdminClient({"bootstrap.servers": own_node.bootstrap})
    configure(admin, Broker(own_node.bootstrap, ours=True), GROUP, postroad_deduplicate_ms=300_000)
    for round_ in range(3):
        names = ("same", f"other {round_}")
        messages = ({"value": name, "headers": {"postroad-dedup-id": name}} for name in names)
        send_all(producer(own_node.bootstrap), TOPIC, messages)
        expected = [b"other %d" % round_] if round_ else [b"same", b"other 0"]
        with member(own_node.bootstrap, GROUP, TOPIC) as worker:
            taken = take(worker)
            while len(taken) < len(expected):
                taken += take(worker)
            assert [message.value() for message in taken] == expected
            answer(worker, taken)
        own_node.kill()
        own_node.start()


class Trickle(Load):
    """Few messages: for a subscription that hands them out one by one."""

    def _send(self, partition: int) -> None:
        super()._send(partition)
        time.sleep(0.01)


Finished = Callable[[Register, Load], bool]


def work_through_crashes(
    running: Node, crashes: int, finished: Finished, load: Load | None = None, **promises: str
) -> tuple[Register, Load]:
    """Produce and work while the node is killed again and again; then work on until it is `finished`."""
    random_ = random.Random(11)
    create_topic(running, TOPIC, PARTITIONS, **{"segment.bytes": 1_000_000})
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    broker = Broker(running.bootstrap, ours=True)
    configure(admin, broker, GROUP, share_delivery_count_limit=0, **promises)
    register, load = Register(), load or Load(running, "producer")
    with running_threads(*(Worker(running, register) for _ in range(WORKERS))):
        with running_threads(load):
            until(lambda: register.deliveries, "the first delivery")
            for _ in range(crashes):
                time.sleep(LOAD_S * (0.3 + random_.random() / 2))
                running.kill()
                running.start()
            before = list(load.sent)  # what is sent from here on meets no crash
            until(lambda: all(map(gt, load.sent, before)), "each partition is sent more")
        until(lambda: finished(register, load), "the workers have seen it all", 120)
    return register, load


def the_last_were_delivered(register: Register, load: Load) -> bool:
    """Some before them were on their way to a worker when the node crashed."""
    last: dict[int, int] = {}
    for (partition, _), offset in load.acknowledged.items():
        last[partition] = max(offset, last.get(partition, 0))
    return all(Place(*place) in register.deliveries for place in last.items())
