"""The blocking client against real nodes: what it finds, and that it ends in bounded time where it can't."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from postroad.errors import (
    BrokerNotAvailable,
    ConfigurationError,
    DuplicateSequence,
    InvalidProducerEpoch,
    ThrottlingQuotaExceeded,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from postroad.spark.cluster import Cluster
from postroad.spark.fetched import OutsideLog
from postroad.testing import Node, node
from postroad.wire.records import Record, decode_records, encode_batch
from tests import shared_node
from tests.spark.throttle import Throttle


@pytest.fixture(scope="module")
def running() -> Iterator[Node]:
    with node({**shared_node.SETTINGS, "topics.auto_create": False}) as one:
        yield one


@pytest.fixture
def cluster(running: Node) -> Iterator[Cluster]:
    with Cluster(running.bootstrap) as one:
        yield one


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("test_", "")
    cluster.create_topic(name, 2)
    return name


def batch(*values: bytes, first_ms: int = 1000, **header: int) -> bytes:
    records = [Record(n, first_ms + n, None, value) for n, value in enumerate(values)]
    return bytes(encode_batch(records, **header))


def values(data: memoryview) -> list[bytes | None]:
    return [record.value for record in decode_records(data)]


def test_what_was_produced_is_fetched_from_the_middle_of_a_batch(cluster: Cluster, topic: str) -> None:
    assert cluster.produce((topic, 0), batch(b"a", b"b", b"c")) == 0
    assert cluster.produce((topic, 0), batch(b"d")) == 3
    first = cluster.fetch((topic, 0), 1)
    assert values(first.data[: len(batch(b"a", b"b", b"c"))]) == [b"a", b"b", b"c"]
    assert (first.next_offset, first.high_watermark, first.end, first.log_start) == (4, 4, 4, 0)
    nothing = cluster.fetch((topic, 0), 4, wait_ms=10)
    assert (bytes(nothing.data), nothing.next_offset) == (b"", 4)


def test_many_partitions_are_written_and_read_with_one_request(cluster: Cluster, topic: str) -> None:
    topic_partitions = [(topic, 0), (topic, 1)]
    assert cluster.produce_many(
        {topic_partition: batch(b"x%d" % topic_partition[1]) for topic_partition in topic_partitions}
    ) == dict.fromkeys(topic_partitions, 0)
    fetched = cluster.fetch_many(dict.fromkeys(topic_partitions, 0))
    assert {topic_partition: values(found.data) for topic_partition, found in fetched.items()} == {
        topic_partitions[0]: [b"x0"],
        topic_partitions[1]: [b"x1"],
    }


def test_offsets_are_found_by_place_and_by_time(cluster: Cluster, topic: str) -> None:
    topic_partition, empty = (topic, 0), (topic, 1)
    cluster.produce(topic_partition, batch(b"a", b"b", first_ms=5000))
    assert cluster.earliest([topic_partition, empty]) == {topic_partition: 0, empty: 0}
    assert cluster.latest([topic_partition, empty]) == {topic_partition: 2, empty: 0}
    assert cluster.at_times({topic_partition: 5001, empty: 0}) == {topic_partition: 1, empty: None}
    assert cluster.at_times({topic_partition: 5002}) == {topic_partition: None}


def test_topics_are_found_by_name_and_by_pattern(cluster: Cluster, topic: str) -> None:
    found = cluster.topics([topic])[topic]
    assert found.topic_partitions == [(topic, 0), (topic, 1)]
    assert len(found.id) == 16
    assert list(cluster.topics(pattern="topics_are_.*pattern")) == [topic]
    assert cluster.topics(pattern="topics_are") == {}
    assert "__consumer_offsets" not in cluster.topics()
    with pytest.raises(ConfigurationError, match="regular expression"):
        cluster.topics(pattern="(")


def test_a_missing_topic_is_named(cluster: Cluster, topic: str) -> None:
    started = time.monotonic()
    with pytest.raises(UnknownTopicOrPartition, match="no topic absent"):
        cluster.topics([topic, "absent"])
    with pytest.raises(UnknownTopicOrPartition, match="no topic absent"):
        cluster.fetch(("absent", 0), 0)
    with pytest.raises(UnknownTopicOrPartition, match="2 partitions; there is no 7"):
        cluster.earliest([(topic, 7)])
    assert time.monotonic() - started < 30  # a second each; it has a minute for what may come back


def test_an_offset_outside_the_log_comes_with_its_bounds(cluster: Cluster, topic: str) -> None:
    cluster.produce((topic, 0), batch(b"a", b"b"))
    with pytest.raises(OutsideLog, match="no offset 7; it ends at 2") as beyond:
        cluster.fetch((topic, 0), 7)
    again = pickle.loads(pickle.dumps(beyond.value))
    assert (again.topic_partition, again.offset, again.start, again.end) == ((topic, 0), 7, 0, 2)
    assert "begins at 5" in str(OutsideLog((topic, 0), 1, 5, 9))


def test_a_repeated_batch_is_told_apart_from_a_new_one(cluster: Cluster, topic: str) -> None:
    topic_partition = (topic, 0)
    sent = [batch(b"%d" % n, producer_id=77, producer_epoch=1, base_sequence=n) for n in range(8)]
    assert [cluster.produce(topic_partition, one) for one in sent] == list(range(8))
    assert cluster.produce(topic_partition, sent[7]) == 7
    with pytest.raises(DuplicateSequence, match=topic):
        cluster.produce(topic_partition, sent[0])
    older = batch(b"old", producer_id=77, producer_epoch=0, base_sequence=0)
    outcomes = cluster.produce_many({topic_partition: older, (topic, 1): batch(b"new")})
    assert isinstance(outcomes[topic_partition], InvalidProducerEpoch)
    assert outcomes[topic, 1] == 0
    assert cluster.latest([topic_partition]) == {topic_partition: 8}


def test_a_group_keeps_what_was_committed(cluster: Cluster, topic: str) -> None:
    topic_partitions = [(topic, 0), (topic, 1)]
    assert cluster.committed("spark-group", topic_partitions) == dict.fromkeys(topic_partitions)
    cluster.commit("spark-group", {topic_partitions[0]: 5})
    assert cluster.committed("spark-group", topic_partitions) == {
        topic_partitions[0]: 5,
        topic_partitions[1]: None,
    }


def test_a_topic_is_created_once(cluster: Cluster, topic: str) -> None:
    with pytest.raises(TopicAlreadyExists):
        cluster.create_topic(topic)
    cluster.create_topic(topic, exist_ok=True)
    assert len(cluster.topics([topic])[topic].partitions) == 2


def test_read_committed_asks_for_the_last_stable_offset(running: Node, cluster: Cluster, topic: str) -> None:
    cluster.produce((topic, 0), batch(b"a"))
    with Cluster(running.bootstrap, isolation="read_committed") as careful:
        assert careful.latest([(topic, 0)]) == {(topic, 0): 1}
        found = careful.fetch((topic, 0), 0)
        assert (values(found.data), found.end, found.aborted) == ([b"a"], 1, [])


def test_a_pickled_cluster_knows_its_settings_and_that_it_was_reached(cluster: Cluster, topic: str) -> None:
    cluster.topics([topic])
    with pickle.loads(pickle.dumps(cluster)) as copy:
        assert copy.topics([topic]) == cluster.topics([topic])
        assert copy.__getstate__() == cluster.__getstate__()


def test_a_forked_child_leaves_its_parents_connections_alone(cluster: Cluster, topic: str) -> None:
    cluster.produce((topic, 0), batch(b"a"))
    child = os.fork()
    if not child:  # whatever happens, the child must not go on as a second pytest, nor for ever
        signal.alarm(120)
        try:
            os._exit(0 if cluster.fetch((topic, 0), 0).next_offset == 1 else 1)
        finally:
            os._exit(2)
    for _ in range(20):
        assert cluster.fetch((topic, 0), 0).next_offset == 1
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_reading_and_writing_go_on_over_a_restart() -> None:
    with node() as restarted, Cluster(restarted.bootstrap) as cluster:
        topic_partition = ("orders", 0)
        cluster.create_topic("orders", 1)
        sent = [batch(b"%d" % n, producer_id=9, producer_epoch=0, base_sequence=n) for n in range(40)]
        restart = threading.Timer(0.1, restarted.restart)
        restart.start()
        for n, one in enumerate(sent):
            assert cluster.produce(topic_partition, one) == n
            time.sleep(0.01)
        restart.join()
        restarted.kill()
        restart = threading.Timer(0.3, restarted.start)
        restart.start()
        offset, seen = 0, 0
        while offset < 40:
            found = cluster.fetch(topic_partition, offset, max_bytes=500)
            offset, seen = found.next_offset, seen + len(found.data)
        restart.join()
        assert seen == sum(map(len, sent))
        cluster.commit("g", {topic_partition: 40})


def test_an_address_without_a_node_is_given_up_soon() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        started = time.monotonic()
        with Cluster(address, retry_s=1) as cluster, pytest.raises(BrokerNotAvailable, match=address):
            cluster.topics()
        assert time.monotonic() - started < 5


def test_a_node_that_went_away_is_waited_for_and_then_named() -> None:
    with node() as leaving, Cluster(leaving.bootstrap, retry_s=1.5) as cluster:
        cluster.create_topic("orders", 1)
        leaving.kill()
        started = time.monotonic()
        with pytest.raises(BrokerNotAvailable, match=f"fetch orders/0: gave up.*{leaving.bootstrap}"):
            cluster.fetch(("orders", 0), 0)
        # It ends when the next pause, of up to a second, would be beyond its time.
        assert 0.5 < time.monotonic() - started < 20
        leaving.start()


def test_a_silent_server_is_given_up_in_bounded_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        with (
            Cluster(address, retry_s=1, request_timeout_s=0.5) as cluster,
            pytest.raises(BrokerNotAvailable, match="not answer"),
        ):
            cluster.topics()
        assert time.monotonic() - started < 20


def test_a_fetch_that_is_throttled_waits_and_is_asked_again(
    running: Node, cluster: Cluster, topic: str
) -> None:
    topic_partitions = {(topic, 0): 0, (topic, 1): 0}
    cluster.produce((topic, 0), batch(b"a"))
    cluster.produce((topic, 1), batch(b"b"))
    throttle = Throttle(running.bootstrap, fetches=2, wait_ms=300)
    with throttle.serving() as bootstrap, Cluster(bootstrap) as throttled:
        found = throttled.fetch_many(topic_partitions)
    assert [values(found[topic_partition].data) for topic_partition in topic_partitions] == [[b"a"], [b"b"]]
    first, second = throttle.asked
    assert second - first >= 0.3


def test_a_fetch_that_is_throttled_for_too_long_is_one_clear_error(running: Node, topic: str) -> None:
    throttle = Throttle(running.bootstrap, fetches=1_000, wait_ms=60_000)
    with throttle.serving() as bootstrap, Cluster(bootstrap, retry_s=1) as throttled:
        started = time.monotonic()
        with pytest.raises(ThrottlingQuotaExceeded, match=f"{topic}/0"):
            throttled.fetch((topic, 0), 0)
        assert time.monotonic() - started < 20


def test_ctrl_c_ends_a_fetch_that_waits(cluster: Cluster, topic: str) -> None:
    interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))

    def fetch() -> None:
        interrupt.start()  # in here: whenever it comes, it must not end the tests
        cluster.fetch((topic, 0), 0, wait_ms=20_000)

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fetch()
    assert time.monotonic() - started < 15
    assert cluster.latest([(topic, 0)]) == {(topic, 0): 0}
