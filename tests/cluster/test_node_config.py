"""Configs of nodes that are changed while they run: of one, of all, and what comes first."""

from __future__ import annotations

import pytest

from postroad.cluster import keys, membership
from postroad.cluster.config_changes import ConfigChange, ConfigOperation
from postroad.cluster.config_definition import ConfigSource
from postroad.cluster.image import Image
from postroad.cluster.node_config import COPY_RATE, LEADER_RATE, alter_node_config, copy_rate, overrides
from postroad.cluster.store import Event
from postroad.errors import InvalidConfig, InvalidRequest
from tests.cluster.applied import commit

SETTING = 7


def change(value: str | None, name: str = COPY_RATE) -> list[ConfigChange]:
    operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
    return [ConfigChange(name, operation, value)]


@pytest.fixture
def image() -> Image:
    """A cluster of two nodes: one that runs, and one that is away."""
    found = Image()
    for key, value in (
        (keys.node_key(1), keys.NodeValue("h", 9092, "i")),
        (keys.directory_key(2), keys.DirectoryValue("d")),
    ):
        found.apply([Event(key, keys.encode(value), found.revision + 1)])
    return found


def test_what_is_set_for_a_node_comes_before_what_is_set_for_all(image: Image) -> None:
    assert copy_rate(image, 1, SETTING) == SETTING
    commit(image, alter_node_config(image, "", change("100")))
    commit(image, alter_node_config(image, "2", change("0")))
    assert (copy_rate(image, 1, SETTING), copy_rate(image, 2, SETTING)) == (100, 0)
    assert overrides(image, 2) == [
        (ConfigSource.ONE_NODE, {COPY_RATE: "0"}),
        (ConfigSource.ALL_NODES, {COPY_RATE: "100"}),
    ]
    commit(image, alter_node_config(image, "", change(None)))
    assert (copy_rate(image, 1, SETTING), copy_rate(image, 2, SETTING)) == (SETTING, 0)
    assert alter_node_config(image, "", change(None)).operations == []


def test_a_node_that_is_removed_leaves_no_config_to_whoever_gets_its_id(image: Image) -> None:
    commit(image, alter_node_config(image, "2", change("100")))
    commit(image, membership.remove(image, 2))
    assert image.node_configs == {}


def test_what_kafkas_tools_set_beside_it_is_taken(image: Image) -> None:
    commit(image, alter_node_config(image, "1", change("100", LEADER_RATE)))
    assert copy_rate(image, 1, SETTING) == SETTING


@pytest.mark.parametrize("value", ["-1", "fast", "1.5", ""])
def test_a_rate_that_is_none_is_refused(image: Image, value: str) -> None:
    with pytest.raises(InvalidConfig, match=COPY_RATE):
        alter_node_config(image, "", change(value))


def test_other_configs_and_unknown_nodes_are_refused(image: Image) -> None:
    with pytest.raises(InvalidRequest, match=f"these can be changed: {COPY_RATE}"):
        alter_node_config(image, "", change("8", "num.io.threads"))
    for name in ("3", "one", "all", "1/../2"):
        with pytest.raises(InvalidRequest, match="There is no node"):
            alter_node_config(image, name, change("1"))
