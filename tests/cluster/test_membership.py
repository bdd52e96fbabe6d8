"""What is decided about nodes: their states, the controller, who is dead, drains and levels."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from postroad.cluster import keys, membership
from postroad.cluster.controller import register_node
from postroad.cluster.image import NodeEntry
from postroad.cluster.keys import DRAINING, SERVING, STARTING
from postroad.cluster.membership import NOTHING
from postroad.cluster.store import Event, Put
from postroad.errors import ConfigurationError
from tests.cluster.applied import commit
from tests.cluster.replicas import THREE, image_of


def test_a_node_says_when_it_serves_and_when_it_stops_under_the_same_lease() -> None:
    image = image_of(nodes={1: STARTING}, controller=None)
    for state in (SERVING, DRAINING):
        decision = register_node(image, replace(image.nodes[1], state=state), 77)
        assert isinstance(decision.operations[0], Put)
        assert decision.operations[0].lease == 77
        commit(image, decision)
        assert image.nodes[1].state == state


def test_an_entry_written_anew_is_a_new_broker_epoch() -> None:
    image = image_of(nodes={1: STARTING}, controller=None)
    first = image.node_epoch(1)
    changes = commit(image, register_node(image, replace(image.nodes[1], state=SERVING), 0))
    assert image.node_epoch(1) > first
    ((node, before, after),) = changes.nodes_changed
    assert (node, before and before.state, after and after.state) == (1, STARTING, SERVING)
    image.apply([Event("nodes/1", None, 9)])
    assert image.node_epoch(1) == 0


def test_a_registration_says_rack_level_and_state() -> None:
    image = image_of(nodes={}, controller=None)
    me = NodeEntry(4, "host", 9092, "first", "mine", STARTING, "rack-a")
    commit(image, register_node(image, me, lease=0))
    assert image.nodes == {4: me}
    assert image.nodes[4].level == keys.LEVEL


# --- the controller ----------------------------------------------------------------------------------


def test_a_node_becomes_the_controller_if_there_is_none() -> None:
    image = image_of(controller=None)
    first, second = (membership.claim_controller(image, node, 5) for node in (1, 2))
    commit(image, first)
    assert image.controller == 1
    assert any(image.key_revision(key) != revision for key, revision in second.compares)
    assert membership.claim_controller(image, 2, 5) == NOTHING


def test_a_key_whose_node_is_gone_may_be_claimed() -> None:
    image = image_of(controller=9)
    commit(image, membership.claim_controller(image, 2, 5))
    assert image.controller == 2


def test_who_starts_or_is_not_registered_does_not_become_the_controller() -> None:
    image = image_of(nodes={1: STARTING}, controller=None)
    for node in (1, 2):
        assert membership.claim_controller(image, node, 5) == NOTHING


def test_a_dead_node_goes_with_its_controllers_key_in_one_commit() -> None:
    image = image_of(controller=2)
    commit(image, membership.declare_dead(image, 2))
    assert sorted(image.nodes) == [1, 3]
    assert image.controller is None
    assert membership.declare_dead(image, 2) == NOTHING


def test_a_node_that_registered_anew_is_not_declared_dead() -> None:
    image = image_of(controller=1)
    decision = membership.declare_dead(image, 2)
    image.apply([Event("nodes/2", b'{"host":"h","port":1,"incarnation":"anew"}', 2)])
    assert any(image.key_revision(key) != revision for key, revision in decision.compares)


# --- drains and levels -------------------------------------------------------------------------------


def test_a_drain_holds_for_dead_nodes_too_until_it_is_cancelled() -> None:
    image = image_of()
    for node in (3, 7):
        commit(image, membership.drain(image, node))
        assert membership.drain(image, node) == NOTHING
    assert list(image.drains) == [3, 7]
    assert membership.placeable(image) == [1, 2]
    for node in (3, 7):
        commit(image, membership.cancel_drain(image, node))
        assert membership.cancel_drain(image, node) == NOTHING
    assert membership.placeable(image) == [1, 2, 3]


def test_the_level_rises_when_all_nodes_understand_it_and_refuses_older_ones() -> None:
    image = image_of(nodes=THREE, controller=1)
    image.apply([Event("nodes/3", b'{"host":"h","port":1,"incarnation":"old"}', 2)])
    assert membership.raise_level(image, 1) == NOTHING
    image.apply([Event("nodes/3", None, 3)])
    assert membership.raise_level(image, 2) == NOTHING
    commit(image, membership.raise_level(image, 1))
    assert image.level == keys.LEVEL
    assert membership.raise_level(image, 1) == NOTHING
    membership.check_level(image, keys.LEVEL)
    with pytest.raises(ConfigurationError, match="Start the newer version"):
        membership.check_level(image, keys.LEVEL - 1)


def test_a_node_that_is_away_holds_the_level_down_until_it_is_lost_or_removed() -> None:
    """It may come back with the version that it had, which would be refused."""
    image = image_of(nodes=THREE, controller=1)
    image.apply([Event("directories/3", b'{"id":"its own"}', 2), Event("nodes/3", None, 3)])
    assert membership.raise_level(image, 1) == NOTHING
    assert membership.raise_level(image, 1, lost=[3]) != NOTHING
    commit(image, membership.remove(image, 3))
    commit(image, membership.raise_level(image, 1))
    assert image.level == keys.LEVEL


def test_a_node_with_tls_or_logins_waits_until_all_others_know_of_it() -> None:
    image = image_of(nodes=THREE, controller=1)
    plain = image.nodes[3]
    encrypted = msgspec.structs.replace(plain, is_tls=True)
    membership.check_secure(image, encrypted, is_secured=True)
    image.apply([Event("nodes/3", b'{"host":"h","port":1,"incarnation":"its own, from before"}', 2)])
    membership.check_secure(image, encrypted, is_secured=True)
    image.apply([Event("nodes/2", b'{"host":"h","port":1,"incarnation":"old","level":2}', 3)])
    membership.check_secure(image, plain, is_secured=False)
    for node, is_secured in ((encrypted, False), (plain, True)):
        with pytest.raises(ConfigurationError, match="Node 2 runs a version that knows neither TLS nor"):
            membership.check_secure(image, node, is_secured=is_secured)
