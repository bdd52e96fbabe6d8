"""A node that asks who its clients are, and a gateway in front of it whose callers are the node's users."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from postroad.cluster.keys import AccessKeyValue
from postroad.cluster.users import create_key, delete_key, enable_key
from postroad.gateway.dialects import CONTEXTS, DIALECTS
from postroad.security import access_keys
from postroad.security.access_keys import FIRST_VERSION, secret_of
from tests.broker.secured import Secured, secured_node
from tests.clients.wait import until
from tests.gateway.conftest import RunningGateway, gateway_in_thread

Right = tuple[int, int, str]  # operation, type of the resource, its name
ADMIN, WORKER, STRANGER = "admin", "worker", "stranger"


class House:
    """Node and gateway. All users have the same password, and an access key each."""

    def __init__(self, node: Secured, running: RunningGateway) -> None:
        self.node = node
        self.running = running
        self.keys: dict[str, str] = {}  # ids, by user

    @property
    def url(self) -> str:
        return self.running.url

    def add_user(self, name: str) -> None:
        self.node.add_user(name)
        self.keys[name] = self.add_key(name)

    def add_key(self, name: str) -> str:
        key_id = access_keys.new_id(self.node.node.runtime.random.randbytes(access_keys.ID_BYTES))
        make = partial(create_key, name=name, key_id=key_id, key=AccessKeyValue(FIRST_VERSION))
        self.node.run(self.node.node.topics.decide(make))
        return key_id

    def enable_key(self, key_id: str, *, enabled: bool) -> None:
        change = partial(enable_key, key_id=key_id, enabled=enabled)
        self.node.run(self.node.node.topics.decide(change))
        self.settle()

    def delete_key(self, key_id: str) -> None:
        self.node.run(self.node.node.topics.decide(partial(delete_key, key_id=key_id)))
        self.settle()

    def secret(self, key_id: str) -> str:
        return secret_of(self.node.node.security.master_key, key_id, FIRST_VERSION)

    def allow(self, user: str, *rights: Right) -> None:
        for right in rights:
            self.node.allow(user, *right)
        self.settle()

    def disallow(self, user: str, *rights: Right) -> None:
        for right in rights:
            self.node.disallow(user, *right)
        self.settle()

    def settle(self) -> None:
        """Until the gateway has heard of all that has changed at the node."""
        following = self.running.gateway.identities.following
        assert following is not None
        until(lambda: following.revision >= self.node.node.security.revision, "the gateway follows the rules")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("house")) as node:
        yield node


@pytest.fixture(scope="module")
def house(secured: Secured) -> Iterator[House]:
    key = secured.node.security.master_key
    with gateway_in_thread(
        secured.bootstrap, DIALECTS, contexts=CONTEXTS, master_key=key, webhooks_private=True
    ) as running:
        house = House(secured, running)
        for name in (ADMIN, WORKER, STRANGER):
            house.add_user(name)
        house.settle()
        yield house
