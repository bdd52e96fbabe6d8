"""Figures from pages of metrics: summed up by what people look at, with rates of what is counted."""

from __future__ import annotations

from postroad.client.client import Client
from postroad.gateway.history import History
from postroad.gateway.history.reading import read
from postroad.metrics.page import COUNTER, GAUGE, Page, labels

HARD = 'a"b\\n,c}\n{'


def page(end: int = 10, lag: int = 3, topic: str = "orders", node_cpu: float = 1.5) -> str:
    made = Page()
    ends = made.family("postroad_partition_end_offset", COUNTER, "Ends.")
    starts = made.family("postroad_partition_start_offset", COUNTER, "Starts.")
    lags = made.family("postroad_subscription_lag_messages", GAUGE, "Lag.")
    oldest = made.family("postroad_subscription_oldest_seconds", GAUGE, "Age.")
    for partition in (0, 1):
        given = labels(topic=topic, partition=partition)
        ends.add(end, given)
        starts.add(2, given)
        lags.add(lag, f"{labels(subscription='workers')},{given}")
        oldest.add(lag + partition, f"{labels(subscription='workers')},{given}")
    made.family("postroad_subscription_accepted_total", COUNTER, "Accepted.").add(
        end, labels(subscription="workers")
    )
    made.family("postroad_node_cpu_seconds_total", COUNTER, "CPU.").add(node_cpu)
    return made.text()


def test_partitions_are_summed_up() -> None:
    found = read({1: page()})
    assert found.topics["orders"] == {"end_offset": 20, "start_offset": 4, "partitions": 2}
    assert found.subscriptions["workers"]["lag"] == 6
    assert found.readers == {"orders": {("subscription", "workers")}}


def test_the_oldest_message_is_that_of_the_worst_partition() -> None:
    assert read({1: page(lag=3)}).subscriptions["workers"]["oldest_seconds"] == 4


def test_a_replica_that_is_behind_is_not_counted_twice() -> None:
    assert read({1: page(end=10), 2: page(end=7)}).topics["orders"]["end_offset"] == 20


def test_names_are_what_they_were_whatever_is_in_them() -> None:
    assert set(read({1: page(topic=HARD)}).topics) == {HARD}


def test_rates_are_of_what_was_counted_between_samples() -> None:
    history = History(Client("127.0.0.1:1"))
    history.take(read({1: page(end=10, node_cpu=1)}), 1000, 50.0)
    assert "in" not in history.latest["topic"]["orders"]
    history.take(read({1: page(end=30, node_cpu=2)}), 1005, 55.0)
    assert history.latest["topic"]["orders"]["in"] == 8
    assert history.latest["topic"]["orders"]["messages"] == 56
    assert history.latest["subscription"]["workers"]["accepted_rate"] == 4
    assert history.latest["node"]["1"]["cpu"] == 0.2
    assert history.latest["cluster"]["all"]["in"] == 8


def test_a_counter_that_fell_has_no_rate() -> None:
    history = History(Client("127.0.0.1:1"))
    history.take(read({1: page(end=10)}), 1000, 50.0)
    history.take(read({1: page(end=3)}), 1005, 55.0)
    assert "in" not in history.latest["topic"]["orders"]
