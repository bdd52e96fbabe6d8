"""Which offsets a streaming query takes next: the reader that Spark asks, asked by hand, with a real node."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from postroad.errors import ConfigurationError, UnknownTopicOrPartition
from postroad.spark import columns, router
from postroad.spark.cluster import Cluster
from postroad.spark.data_loss import DataLost
from postroad.spark.options import parse_read
from postroad.spark.reader import Task
from postroad.spark.stream_reader import StreamReader
from postroad.testing import Node
from postroad.testing import node as new_node
from tests.clients.wait import until
from tests.spark.plain import add_partitions, create, delete, delete_before, numbered, send

Make = Callable[..., StreamReader]


@pytest.fixture
def make(node: Node) -> Iterator[Make]:
    """A reader for these options, as the driver has it."""
    made: list[StreamReader] = []

    def make(**options: Any) -> StreamReader:
        given = {"kafka.bootstrap.servers": node.bootstrap, "startingOffsets": "earliest"}
        parsed = parse_read({**given, **{k: str(v) for k, v in options.items()}}, streaming=True)
        made.append(StreamReader(parsed, Task(parsed, columns.every())))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


@pytest.fixture
def _gone_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that is not there is not waited for: it was deleted, and is asked for many times."""
    monkeypatch.setattr(router, "UNKNOWN_TOPIC_S", 0.05)


def latest(reader: StreamReader, start: dict[str, Any], limit: ReadLimit | None = None) -> dict[str, Any]:
    return reader.latestOffset(start, limit or reader.getDefaultReadLimit())


def ranges_of(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int, int]]:
    return [tuple(part.value)[1:] for part in reader.partitions(start, end)]


def test_offsets_are_written_as_the_kafka_connector_does(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic, 11)
    send(node.bootstrap, topic, numbered(3, partition=10))
    reader = make(subscribe=topic)
    start = reader.initialOffset()
    end = latest(reader, start)
    assert json.dumps(start) == json.dumps({topic: {str(number): 0 for number in range(11)}})
    assert end == {topic: {**{str(number): 0 for number in range(10)}, "10": 3}}
    assert list(end[topic]) == [str(number) for number in range(11)]
    assert reader.reportLatestOffset() == end


def test_stream_starts_at_the_latest_unless_told(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(3))
    assert make(subscribe=topic, startingOffsets="latest").initialOffset() == {topic: {"0": 3}}
    given = json.dumps({topic: {"0": 2}})
    assert make(subscribe=topic, startingOffsets=given).initialOffset() == {topic: {"0": 2}}


def test_limit_in_offsets_is_shared_among_partitions(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic, 2)
    send(node.bootstrap, topic, numbered(30) + numbered(10, partition=1))
    reader = make(subscribe=topic, maxOffsetsPerTrigger=20)
    assert latest(reader, reader.initialOffset()) == {topic: {"0": 15, "1": 5}}
    assert latest(reader, reader.initialOffset(), ReadAllAvailable()) == {topic: {"0": 30, "1": 10}}


def test_limit_in_bytes_is_kept_about(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic, 2)
    both = numbered(1000) + numbered(1000, partition=1)
    # Full batches, however slowly the client is filled: their headers count.
    send(node.bootstrap, topic, both, compression_type="none", batch_num_messages=100, linger_ms=5000)
    reader = make(subscribe=topic, maxBytesPerTrigger=4000)
    end = latest(reader, reader.initialOffset())[topic]
    assert 100 < end["0"] + end["1"] < 700  # a record takes some 10 bytes, and its part of the batch's header
    assert abs(end["0"] - end["1"]) <= 1


def test_batch_waits_until_enough_has_come_or_the_delay_is_over(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(2))
    reader = make(subscribe=topic, minOffsetsPerTrigger=5, maxTriggerDelay="1h")
    first = latest(reader, reader.initialOffset())
    assert first == {topic: {"0": 2}}  # the first is not kept waiting
    send(node.bootstrap, topic, numbered(2))
    assert latest(reader, first) == first
    send(node.bootstrap, topic, numbered(3))
    enough = latest(reader, first)
    assert enough == {topic: {"0": 7}}
    send(node.bootstrap, topic, numbered(1))
    assert latest(reader, enough) == enough
    hasty = make(subscribe=topic, minOffsetsPerTrigger=5, maxTriggerDelay="100ms")
    before = latest(hasty, enough)
    assert before == {topic: {"0": 8}}
    send(node.bootstrap, topic, numbered(1))
    until(lambda: latest(hasty, before) == {topic: {"0": 9}}, "the delay is over")


def test_available_now_ends_where_the_topic_ended(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(5))
    reader = make(subscribe=topic, maxOffsetsPerTrigger=3, minOffsetsPerTrigger=3)
    reader.prepareForTriggerAvailableNow()
    send(node.bootstrap, topic, numbered(5))
    add_partitions(node.bootstrap, topic, 2)
    first = latest(reader, reader.initialOffset())
    assert first[topic]["0"] == 3
    second = latest(reader, first)
    assert second == {topic: {"0": 5, "1": 0}}
    assert latest(reader, second) == second


def test_new_partitions_and_topics_are_read_from_their_beginning(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(2))
    reader = make(subscribePattern=f"{topic}.*", startingOffsets="latest")
    start = reader.initialOffset()
    add_partitions(node.bootstrap, topic, 2)
    create(node.bootstrap, f"{topic}-more")
    send(node.bootstrap, topic, numbered(3, partition=1))
    send(node.bootstrap, f"{topic}-more", numbered(4))
    end = latest(reader, start)
    assert end == {topic: {"0": 2, "1": 3}, f"{topic}-more": {"0": 4}}
    assert ranges_of(reader, start, end) == [(1, 0, 3), (0, 0, 4)]


def test_work_is_split_the_same_way_each_time(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic, 2)
    send(node.bootstrap, topic, numbered(90) + numbered(10, partition=1))
    reader = make(subscribe=topic, minPartitions=4)
    start = reader.initialOffset()
    end = latest(reader, start)
    expected = [(0, 0, 30), (0, 30, 60), (0, 60, 90), (1, 0, 10)]
    assert ranges_of(reader, start, end) == expected
    assert ranges_of(make(subscribe=topic, minPartitions=4), start, end) == expected
    assert ranges_of(reader, end, end) == []


def test_deleted_records_are_lost_data(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(10))
    reader = make(subscribe=topic)
    start, end = {topic: {"0": 2}}, {topic: {"0": 10}}
    delete_before(node.bootstrap, topic, 0, 6)
    with pytest.raises(DataLost, match=rf"{topic}/0: offsets 2 to 5 \(4\) are gone: the log begins at 6"):
        reader.partitions(start, end)
    going_on = make(subscribe=topic, failOnDataLoss=False)
    assert ranges_of(going_on, start, end) == [(0, 6, 10)]


@pytest.mark.usefixtures("_gone_is_gone")
def test_deleted_topic_is_lost_data(make: Make, node: Node, topic: str) -> None:
    for name in (topic, f"{topic}-kept"):
        create(node.bootstrap, name)
        send(node.bootstrap, name, numbered(3))
    options = {"subscribe": f"{topic},{topic}-kept"}
    start = make(**options).initialOffset()
    delete(node.bootstrap, topic)
    with pytest.raises(DataLost, match=f"{topic}/0: all from offset 0 on is gone: it was deleted"):
        latest(make(**options), start)
    assert latest(make(**options, failOnDataLoss=False), start) == {f"{topic}-kept": {"0": 3}}
    with pytest.raises(UnknownTopicOrPartition, match=topic):
        make(**options).initialOffset()


def test_topic_that_was_made_anew_is_lost_data(make: Make, node: Node, topic: str) -> None:
    start = {topic: {"0": 50}}
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(3))
    with pytest.raises(DataLost, match="the log ends at 3; the topic was made anew"):
        latest(make(subscribe=topic), start)
    reader = make(subscribe=topic, failOnDataLoss=False)
    end = latest(reader, start)
    assert end == {topic: {"0": 3}}
    assert ranges_of(reader, start, end) == [(0, 0, 3)]


@pytest.mark.usefixtures("_gone_is_gone")
def test_query_goes_on_without_a_deleted_topic_for_good_if_losses_do_not_matter(
    make: Make, node: Node, topic: str
) -> None:
    kept = f"{topic}-kept"
    for name in (topic, kept):
        create(node.bootstrap, name)
        send(node.bootstrap, name, numbered(3))
    reader = make(subscribe=f"{topic},{kept}", failOnDataLoss=False)
    start = reader.initialOffset()
    planned = latest(reader, start)
    delete(node.bootstrap, topic)
    end = latest(reader, start)
    assert end == {kept: {"0": 3}}
    send(node.bootstrap, kept, numbered(1))
    assert latest(reader, end) == {kept: {"0": 4}}
    # A batch that was planned before, and is repeated after a restart.
    again = make(subscribe=f"{topic},{kept}", failOnDataLoss=False)
    assert ranges_of(again, start, planned) == [(0, 0, 3)]
    with pytest.raises(DataLost, match=f"{topic}/0: all from offset 0 on is gone"):
        make(subscribe=f"{topic},{kept}").partitions(start, planned)


@pytest.mark.usefixtures("_gone_is_gone")
def test_range_of_a_deleted_topic_is_lost_data(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(3))
    reader, going_on = make(subscribe=topic), make(subscribe=topic, failOnDataLoss=False)
    (part,) = reader.partitions({topic: {"0": 0}}, {topic: {"0": 3}})
    delete(node.bootstrap, topic)
    with pytest.raises(DataLost, match=f"{topic}/0: all from offset 0 on is gone"):
        list(reader.read(part))
    assert list(going_on.read(part)) == []


def test_log_that_lost_its_end_is_not_read_again(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(5))
    reader = make(subscribe=topic, failOnDataLoss=False)
    latest(reader, {topic: {"0": 5}})  # so it knows the topic
    start = {topic: {"0": 6}}
    end = latest(reader, start)
    assert end == {topic: {"0": 5}}
    assert ranges_of(reader, start, end) == []
    send(node.bootstrap, topic, numbered(2))
    grown = latest(reader, end)
    assert ranges_of(reader, end, grown) == [(0, 5, 7)]


def test_topic_made_anew_while_a_query_runs_is_read_from_its_beginning(
    make: Make, node: Node, topic: str
) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(5))
    reader = make(subscribe=topic, failOnDataLoss=False)
    start = {topic: {"0": 5}}
    latest(reader, start)
    delete(node.bootstrap, topic)
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(2))
    end = latest(reader, start)
    assert ranges_of(reader, start, end) == [(0, 0, 2)]


def test_available_now_leaves_a_topic_that_it_did_not_see_where_it_was(
    make: Make, node: Node, topic: str
) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(5))
    reader = make(subscribe=f"{topic},{topic}-late")
    reader.prepareForTriggerAvailableNow()
    create(node.bootstrap, f"{topic}-late")
    send(node.bootstrap, f"{topic}-late", numbered(5))
    start = {topic: {"0": 0}, f"{topic}-late": {"0": 3}}
    assert latest(reader, start) == {topic: {"0": 5}, f"{topic}-late": {"0": 3}}


def test_limit_in_bytes_holds_where_retention_was_quicker(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(10))
    delete_before(node.bootstrap, topic, 0, 6)
    options = {"subscribe": topic, "maxBytesPerTrigger": 1_000_000}
    start, end = {topic: {"0": 2}}, {topic: {"0": 10}}
    assert latest(make(**options), start) == end
    with pytest.raises(DataLost, match="offsets 2 to 5"):
        make(**options).partitions(start, end)


def test_progress_is_committed_to_the_group(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(10))
    group = f"group-{topic}"
    reader = make(subscribe=topic, commitGroup=group, maxOffsetsPerTrigger=4)
    topic_partition = (topic, 0)
    with Cluster(node.bootstrap) as cluster:
        end = latest(reader, reader.initialOffset())
        assert cluster.committed(group, [topic_partition]) == {
            topic_partition: 0
        }  # what is planned is not done
        latest(reader, end)
        assert cluster.committed(group, [topic_partition]) == {topic_partition: 4}
        reader.commit({topic: {"0": 8}})
        assert cluster.committed(group, [topic_partition]) == {topic_partition: 8}


def test_coordinator_that_is_away_stops_no_query(make: Make, topic: str) -> None:
    with new_node() as away:
        create(away.bootstrap, topic)
        reader = make(
            **{"subscribe": topic, "commitGroup": "progress", "kafka.bootstrap.servers": away.bootstrap}
        )
        latest(reader, {topic: {"0": 0}})
        away.kill()
        begun = time.monotonic()
        reader.commit({topic: {"0": 1}})
        assert time.monotonic() - begun < 20  # 2 s; everything else has a minute
        away.start()

        def is_committed() -> bool:
            reader.commit({topic: {"0": 2}})
            return cluster.committed("progress", [(topic, 0)]) == {(topic, 0): 2}

        with Cluster(away.bootstrap) as cluster:
            until(is_committed, "one of the next triggers commits")


def test_group_that_consumers_use_is_refused(make: Make, node: Node, topic: str) -> None:
    from confluent_kafka import Consumer

    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(1))
    settings = {
        "bootstrap.servers": node.bootstrap,
        "group.id": f"used-{topic}",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        until(lambda: (message := consumer.poll(1)) and not message.error(), "it is a member")
        reader = make(subscribe=topic, commitGroup=f"used-{topic}")
        with pytest.raises(ConfigurationError, match="Choose a group that nobody else uses"):
            latest(reader, {topic: {"0": 1}})
    finally:
        consumer.close()


def test_checkpoint_of_something_else_is_refused(make: Make, node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    with pytest.raises(ConfigurationError, match="The checkpoint's offsets must be JSON like"):
        latest(make(subscribe=topic), {"rowsPerSecond": 5})
