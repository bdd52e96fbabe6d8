"""Configs of nodes that can be changed while they run: of all nodes, or of one, which comes first.

Everything else about a node is a setting of its own. Kafka's tools set these before they move partitions
(`kafka-reassign-partitions --throttle`), and take them back afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from postroad.cluster import keys
from postroad.cluster.config_changes import ConfigChange, altered
from postroad.cluster.config_definition import ConfigSource, ConfigType, Definition, at_least
from postroad.cluster.config_table import ConfigTable, Overrides
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image
from postroad.cluster.store import Compare, Delete, Put
from postroad.errors import InvalidRequest

ALL: Final = "all"  # in place of a node's id
COPY_RATE: Final = "follower.replication.throttled.rate"
LEADER_RATE: Final = "leader.replication.throttled.rate"

TABLE: Final = ConfigTable(
    "node",
    ConfigSource.ONE_NODE,
    (
        Definition(
            COPY_RATE, ConfigType.LONG, "0", "As cluster.catch_up_bytes_per_s; 0: no limit.", at_least(0)
        ),
        Definition(
            LEADER_RATE,
            ConfigType.LONG,
            "0",
            "Those who copy are slowed down, not leaders.",
            at_least(0),
            supported=False,
        ),
    ),
)


def alter_node_config(image: Image, name: str, changes: Sequence[ConfigChange]) -> Decision:
    """Some overrides of a node change, the others stay; `name` is its id, or empty for all nodes."""
    who = _who(image, name)
    for change in changes:
        if change.name not in TABLE.definitions:
            raise InvalidRequest(
                f"{change.name}: a node's settings come from its file, environment and flags; see `postroad "
                f"config`. While it runs these can be changed: {', '.join(TABLE.definitions)}."
            )
    before = image.node_configs.get(who, {})
    texts = TABLE.check(altered(TABLE, before, changes, {}))
    if texts == before:
        return Decision([], [])
    key = keys.node_config_key(who)
    operation = Put(key, keys.encode(keys.NodeConfigValue(texts))) if texts else Delete(key)
    return Decision([Compare(key, image.key_revision(key))], [operation])


def overrides(image: Image, node: int) -> list[tuple[ConfigSource, Overrides]]:
    """What is set for the node and for all, the nearest first."""
    return [
        (ConfigSource.ONE_NODE, image.node_configs.get(str(node), {})),
        (ConfigSource.ALL_NODES, image.node_configs.get(ALL, {})),
    ]


def copy_rate(image: Image, node: int, setting: int) -> int:
    """How many bytes a second the node copies of logs in which it is not in sync; 0: no limit."""
    for _, config in overrides(image, node):
        if COPY_RATE in config:
            return int(config[COPY_RATE])
    return setting


def _who(image: Image, name: str) -> str:
    if not name:
        return ALL
    known = {str(node) for node in (*image.nodes, *image.directories)}
    if name not in known:
        raise InvalidRequest(f"There is no node {name!r}: name one by its id, or none for all of them.")
    return name
