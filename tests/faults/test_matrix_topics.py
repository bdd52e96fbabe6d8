"""The failure matrix: many partitions at once, messages just accepted, topics just deleted, flipped bits."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.client.metadata import Cluster
from postroad.testing import cluster
from tests.clients.wait import until

from . import figures
from .crew import Register
from .files import flip_bit, partition_directories, segments
from .load import PARTITIONS, TOPIC, values_of
from .loaded_cluster import SETTINGS, loaded_cluster

pytestmark = [pytest.mark.slow, pytest.mark.cluster_slow]

MANY = 200
ACCEPTS = 8  # kills of a leader that has just been told
SEGMENT_BYTES = 100_000


def test_two_hundred_partitions_lose_their_leader_at_once(tmp_path: Path) -> None:
    settings = {**SETTINGS, "http.enabled": False}
    with cluster(nodes=3, settings=settings, etcd=1, directory=tmp_path) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        replicas = [[1, 2, 3] if number % 2 else [1, 3, 2] for number in range(MANY)]
        topic = NewTopic("many", MANY, replica_assignment=replicas)
        admin.create_topics([topic])["many"].result(60)
        running.wait_until_whole()

        def led_by_others(seen: Cluster) -> bool:
            return all(state.leader in (2, 3) for state in seen.topics["many"].partitions)

        at = time.monotonic()
        running.node(1).kill()
        running.wait_until(led_by_others, "all partitions have another leader", running.node(2))
        elected = time.monotonic() - at
        running.node(1).start()
        running.wait_until_whole()
    figures.note("200 partitions lose their leader", elected=elected)


def test_leaders_die_between_an_accept_and_its_answer(tmp_path: Path) -> None:
    random_ = random.Random(5)
    with loaded_cluster(tmp_path) as (running, load):
        for number in range(ACCEPTS):
            running.wait_until_whole()
            victim = running.leader(TOPIC, number % PARTITIONS)
            wait_for_accepts(load.register)
            time.sleep(random_.random() * 0.004)
            victim.kill()
            load.wait_for_progress()
            victim.start()
        opened = len(load.register.open)
    figures.note("leader dies between accept and answer", kills=ACCEPTS, accepts_without_answer=opened)


def wait_for_accepts(register: Register) -> None:
    """Return when a worker is about to say what it accepts."""
    told = len(register.tried)
    until(lambda: len(register.tried) > told, "a worker accepts", pause_s=0.0002)


def test_the_directory_of_a_deleted_topic_goes_when_its_holder_returns(tmp_path: Path) -> None:
    with loaded_cluster(tmp_path) as (running, load):
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic("short-lived", 3, 3)])["short-lived"].result(60)
        running.wait_until_whole()
        holder = running.node(2)
        directories = partition_directories(holder, "short-lived")
        assert all(directory.exists() for directory in directories)
        holder.kill()
        load.wait_for_progress()
        admin.delete_topics(["short-lived"])["short-lived"].result(60)
        holder.start()
        until(lambda: not any(directory.exists() for directory in directories), "its directories go", 60)


def test_a_flipped_bit_of_a_follower_is_never_served_and_its_copy_is_made_anew(tmp_path: Path) -> None:
    """In a segment that is closed. When the follower leads, whoever reads there gets an error; then another
    replica leads, and the follower copies the log from it."""
    config = {"segment.bytes": str(SEGMENT_BYTES)}
    with loaded_cluster(tmp_path, topic_config=config) as (running, load):
        running.wait_until_whole()
        seen = running.wait_until(lambda cluster: TOPIC in cluster.topics, "the topic is known")
        leader = running.leader(TOPIC)
        others = (number for number in seen.topics[TOPIC].partitions[0].replicas if number != leader.id)
        follower = running.node(next(others))  # the next one to lead
        cold = partition_directories(follower, TOPIC)[0]
        until(lambda: len(segments(cold)) > 1, "a segment is closed", 120)
        follower.stop()  # what a process has written itself it does not verify again
        flip_bit(segments(cold)[0], SEGMENT_BYTES // 2)
        follower.start()
        running.wait_until_whole()
        leader = running.leader(TOPIC)
        leader.kill()
        load.wait_for_progress()
        assert running.leader(TOPIC) is follower
        with pytest.raises(KafkaException, match="Invalid message"):
            values_of(running, 0)
        leader.start()
        running.wait_until_whole()
        at = time.monotonic()
        with suppress(KafkaException):
            values_of(running, 0)
        until(lambda: running.leader(TOPIC) is not follower, "a sound replica leads", 60)
        running.wait_until_whole()
        whole = time.monotonic() - at
    figures.note("bit flipped in a follower's closed segment", served="CORRUPT_MESSAGE", copied_anew=whole)
