"""Receipts can't be made up from what others may know: the cluster's id, and what a peek shows."""

from __future__ import annotations

import hashlib

from postroad.client import nodes
from postroad.client.client import Client
from postroad.client.share_message import AckType
from postroad.gateway.gateway import Message
from postroad.gateway.receipts import Receipts
from postroad.gateway.receiver import Received
from postroad.gateway.rest import routes
from postroad.testing import node
from tests.gateway.conftest import RunningGateway, StartGateway, gateway_in_thread
from tests.gateway.rest.conftest import Api
from tests.gateway.rest.conftest import api as api
from tests.gateway.rest.conftest import gateway as gateway


async def held(running: RunningGateway, name: str) -> Received:
    backend = running.gateway
    await backend.publish(name, [Message(b"held")])
    await backend.directory.create(name, [name], {"share.auto.offset.reset": "earliest"})
    (received,) = await backend.receive(name, 1, 10_000, lock_ms=600_000)
    return received


def test_the_clusters_id_is_not_what_seals_receipts(gateway: RunningGateway, name: str) -> None:
    receipt = gateway.run(held(gateway, name)).receipt
    guess = hashlib.sha256(f"postroad receipts of cluster {gateway.gateway.cluster_id}".encode()).digest()
    assert Receipts(guess).write(receipt) != gateway.gateway.receipts.write(receipt)


async def test_a_peek_tells_who_holds_a_message_but_not_the_word_that_settles_it(
    gateway: RunningGateway, api: Api, name: str
) -> None:
    receipt = gateway.run(held(gateway, name)).receipt
    (shown,) = (await api.get(f"/v1/subscriptions/{name}/messages"))["messages"]
    assert shown["held_by"]
    assert receipt.owner.hex() not in shown["held_by"]
    (again,) = (await api.get(f"/v1/subscriptions/{name}/messages"))["messages"]
    assert again["held_by"] == shown["held_by"]


def test_each_cluster_has_a_key_of_its_own_that_outlives_its_node() -> None:
    with node({"http.enabled": False}) as broker:
        with gateway_in_thread(broker.bootstrap, [routes]) as first:
            receipt = first.run(held(first, "jobs")).receipt
            word = first.gateway.receipts.write(receipt)
        broker.restart()
        with gateway_in_thread(broker.bootstrap, [routes]) as second:
            assert second.gateway.receipts.read(word) == receipt
            assert second.run(second.gateway.settle([receipt], AckType.ACCEPT)) == [None]


def test_a_key_that_is_configured_holds(start_gateway: StartGateway, name: str) -> None:
    ours, same, other = (start_gateway([routes], receipt_secret=word) for word in ("a", "a", "b"))
    receipt = ours.run(held(ours, name)).receipt
    word = ours.gateway.receipts.write(receipt)
    assert same.gateway.receipts.read(word) == receipt
    assert other.gateway.receipts.write(receipt) != word


async def test_every_gateway_gets_the_same_key(gateway: RunningGateway) -> None:
    async with Client(gateway.bootstrap) as client:
        key = await nodes.receipt_key(client)
        assert len(key) == 32
        assert await nodes.receipt_key(client) == key
