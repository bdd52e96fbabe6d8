"""Probes: whether the process lives, and whether requests have a chance."""

from __future__ import annotations

from postroad.gateway import health
from postroad.testing import Node, node

from .conftest import StartGateway, gateway_in_thread
from .processes import eventually, get


def test_gateway_before_a_node_lives_and_is_ready(start_gateway: StartGateway) -> None:
    url = start_gateway([health.routes]).url
    assert get(url + "/healthz") == (200, "alive\n")
    eventually(lambda: get(url + "/readyz") == (200, "ready\n"), "it is not ready")


def test_probes_may_ask_for_the_head_alone(start_gateway: StartGateway) -> None:
    url = start_gateway([health.routes]).url
    assert get(url + "/healthz", method="HEAD") == (200, "")
    eventually(lambda: get(url + "/readyz", method="HEAD") == (200, ""), "it is not ready")


def test_no_key_is_needed(start_gateway: StartGateway) -> None:
    url = start_gateway([health.routes], access_keys="id:secret").url
    eventually(lambda: get(url + "/readyz")[0] == 200, "it is not ready")


def test_gateway_is_not_ready_while_no_node_answers() -> None:
    with node() as own, gateway_in_thread(own.bootstrap, [health.routes]) as running:
        own.stop()
        assert get(running.url + "/readyz") == (503, "not ready: no node answers\n")
        assert get(running.url + "/healthz")[0] == 200
        own.start()
        eventually(lambda: get(running.url + "/readyz")[0] == 200, "it stays away")


def test_gateway_that_stops_is_not_ready(broker: Node) -> None:
    with gateway_in_thread(broker.bootstrap, [health.routes]) as running:
        running.loop.call_soon_threadsafe(running.gateway.closing.set)
        eventually(lambda: get(running.url + "/readyz") == (503, "not ready: stopping\n"), "it says ready")
