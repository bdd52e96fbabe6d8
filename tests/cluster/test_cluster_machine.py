"""Random decisions through a real SqliteStore, against a simple model.

Three images follow the same store in the three ways there are: `live` takes the events of a watch, `lazy`
lists now and then, and after each restart a fresh one is loaded. They must never differ.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from postroad.cluster import controller, leadership
from postroad.cluster.controller import ConfigChange, ConfigOperation, Decision
from postroad.cluster.image import Image, NodeEntry
from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.topic_config import with_min_insync
from postroad.errors import ApiError, InvalidTopic, TopicAlreadyExists
from tests.cluster.applied import topic_id
from tests.cluster.store_contract import next_events

T = TypeVar("T")

# No power is cut here: what is synced may as well lie in memory, which takes half the time.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
NODES = [1, 2, 3]
NAMES = st.sampled_from(["a.b", "a_b", "orders", "x", "y"])
CONFIGS = st.dictionaries(
    st.sampled_from(["retention.ms", "segment.bytes", "max.message.bytes"]),
    st.integers(100, 10_000).map(str),
)
GROUP_CONFIGS = st.dictionaries(
    st.sampled_from(["share.record.lock.duration.ms", "share.delivery.count.limit"]),
    st.integers(1, 1000).map(str),
)


class ModelTopic:
    def __init__(self, number: int, partitions: int, config: dict[str, str], replicas: int = 1) -> None:
        self.id = topic_id(number)
        self.partitions = partitions
        self.config = config
        self.replicas = replicas
        self.leaderships: dict[int, int] = {}  # node → unclean starts since the topic was created


class ClusterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = Path(tempfile.mkdtemp(dir=MEMORY))
        self.model: dict[str, ModelTopic] = {}
        self.deleted: dict[bytes, set[int]] = {}
        self.groups: dict[str, dict[str, str]] = {}
        self.created = 0
        self.lazy = Image()

    @initialize()
    def start(self) -> None:
        self.open()
        self.commit(controller.create_cluster(self.live, bytes(range(16))))

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.run(self.store.close())
        self.runner.close()
        shutil.rmtree(self.directory)

    # --- the shell -----------------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def open(self) -> None:
        self.store = self.run(SqliteStore.open(self.directory / "coordination.db"))
        self.live = Image()
        snapshot = self.run(self.store.list(""))
        self.live.catch_up(snapshot)
        self.watch = self.store.watch("", snapshot.revision)

    def commit(self, decision: Decision) -> bool:
        revision = self.run(self.store.commit(*decision))
        while revision is not None and self.live.revision < revision:
            self.live.apply(self.run(next_events(self.watch)))
        return revision is not None

    # --- decisions -----------------------------------------------------------------------------

    @rule(
        name=NAMES,
        partitions=st.sampled_from([1, 2, 99, 101, 250]),
        replicas=st.integers(1, 3),
        config=CONFIGS,
    )
    def create(self, name: str, partitions: int, replicas: int, config: dict[str, str]) -> None:
        self.created += 1
        arguments: dict[str, Any] = {"partitions": partitions, "replicas": replicas, "config": config}
        try:
            decision = controller.create_topic(
                self.live, name, topic_id(self.created), nodes=NODES, **arguments
            )
        except TopicAlreadyExists:
            assert name in self.model
        except InvalidTopic:
            assert {name, *self.model} >= {"a.b", "a_b"}
        else:
            assert self.commit(decision)
            self.model[name] = ModelTopic(self.created, partitions, dict(config), replicas)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        topic = self.live.topics[name]
        assert self.commit(controller.delete_topic(self.live, name))
        gone = self.model.pop(name)
        self.deleted[gone.id] = {node for state in topic.partitions for node in state.replicas}

    @precondition(lambda self: self.deleted)
    @rule(data=st.data())
    def finish_deletion(self, data: st.DataObject) -> None:
        gone = data.draw(st.sampled_from(sorted(self.deleted)))
        node = data.draw(st.sampled_from(sorted(self.deleted[gone])))
        assert self.commit(controller.finish_deletion(self.live, self.live.deleted[gone], node))
        self.deleted[gone].discard(node)
        if not self.deleted[gone]:
            del self.deleted[gone]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), more=st.sampled_from([1, 50, 120]))
    def widen(self, data: st.DataObject, more: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        count = self.model[name].partitions + more
        # New partitions begin at epoch 0; keeping the model simple, only topics without unclean starts grow.
        if not self.model[name].leaderships:
            assert self.commit(controller.add_partitions(self.live, name, count, nodes=NODES))
            self.model[name].partitions = count

    @precondition(lambda self: self.model)
    @rule(
        data=st.data(), config=CONFIGS, removed=st.sampled_from(["retention.ms", "segment.bytes", "flush.ms"])
    )
    def alter(self, data: st.DataObject, config: dict[str, str], removed: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        config.pop(removed, None)
        changes = [ConfigChange(key, ConfigOperation.SET, value) for key, value in config.items()]
        changes.append(ConfigChange(removed, ConfigOperation.DELETE))
        assert self.commit(controller.alter_config(self.live, name, changes))
        self.model[name].config |= config
        self.model[name].config.pop(removed, None)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), config=CONFIGS)
    def replace(self, data: st.DataObject, config: dict[str, str]) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        assert self.commit(controller.replace_config(self.live, name, config))
        self.model[name].config = dict(config)

    @rule(group=st.sampled_from(["workers", "a/b"]), config=GROUP_CONFIGS, replace=st.booleans())
    def configure_group(self, group: str, config: dict[str, str], replace: bool) -> None:
        if replace:
            assert self.commit(controller.replace_group_config(self.live, group, config))
        else:
            changes = [ConfigChange(key, ConfigOperation.SET, value) for key, value in config.items()]
            assert self.commit(controller.alter_group_config(self.live, group, changes))
            config = self.groups.get(group, {}) | config
        self.groups.pop(group, None)
        self.groups |= {group: config} if config else {}

    @rule(node=st.sampled_from(NODES), clean=st.booleans())
    def start_node(self, node: int, clean: bool) -> None:
        for decision in leadership.start(
            self.live, node, same_boot=False, clean=clean, is_synced=lambda topic: False
        ):
            assert self.commit(decision)
        for topic in self.model.values() if not clean else ():
            topic.leaderships[node] = topic.leaderships.get(node, 0) + 1

    @rule(name=NAMES, other=NAMES)
    def race(self, name: str, other: str) -> None:
        """Two nodes create on what they both saw: the second one wins only if the names don't clash."""
        self.created += 2
        numbers = (self.created - 1, self.created)
        try:
            first, second = (
                controller.create_topic(self.live, wanted, topic_id(number), nodes=NODES)
                for wanted, number in zip((name, other), numbers, strict=True)
            )
        except ApiError:
            return
        assert self.commit(first)
        self.model[name] = ModelTopic(numbers[0], 1, {})
        clash = name.replace(".", "_") == other.replace(".", "_")
        assert self.commit(second) is not clash
        if not clash:
            self.model[other] = ModelTopic(numbers[1], 1, {})

    # --- following in other ways ---------------------------------------------------------------

    @rule()
    def look_now_and_then(self) -> None:
        self.lazy.catch_up(self.run(self.store.list("")))
        self.lazy.check()
        assert state_of(self.lazy) == state_of(self.live)

    @rule()
    def restart(self) -> None:
        lease = self.run(self.store.grant(60_000))
        assert self.commit(controller.register_node(self.live, NodeEntry(1, "host", 9092, "one"), lease))
        before = state_of(self.live)
        assert before["nodes"]
        self.run(self.store.close())
        self.open()
        before |= {"nodes": {}, "revision": before["revision"] + 1}  # the lease ended with the process
        assert state_of(self.live) == before

    @invariant()
    def image_agrees_with_the_model(self) -> None:
        if not hasattr(self, "live"):
            return
        self.live.check()
        assert self.live.topics.keys() == self.model.keys()
        assert self.live.groups == self.groups
        assert {key: set(gone.nodes) for key, gone in self.live.deleted.items()} == self.deleted
        for name, expected in self.model.items():
            topic = self.live.topics[name]
            assert (topic.id, len(topic.partitions), topic.config) == (
                expected.id,
                expected.partitions,
                with_min_insync(expected.config, expected.replicas),
            )
            for state in topic.partitions if expected.replicas == 1 else ():
                assert state.leader_epoch == expected.leaderships.get(state.leader, 0)


def state_of(image: Image) -> dict[str, Any]:
    names = (
        "revision",
        "cluster_id",
        "topics",
        "topics_by_id",
        "groups",
        "existed",
        "named_by",
        "nodes",
        "deleted",
        "next_producer_id",
    )
    return {name: getattr(image, name) for name in names}


TestClusterMachine = ClusterMachine.TestCase
TestClusterMachine.settings = settings(
    max_examples=60, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
