"""A node that asks who its clients are, and its users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from postroad.cluster.acls import add_acls, remove_acls
from postroad.cluster.keys import AclKey, AclValue, ScramValue
from postroad.cluster.users import change_user
from postroad.security import scram
from postroad.security.principals import user
from postroad.security.resources import PatternType, Permission
from postroad.security.sasl import SCRAM_SHA_256, SCRAM_SHA_512, ClientExchange, ScramClient
from postroad.wire.messages import sasl_authenticate, sasl_handshake
from tests.broker.harness import Running
from tests.faults.raw import RawConnection

ALL = 2  # every operation
PASSWORD = "open, sesame = yes"


def verifier(mechanism: str, password: str) -> ScramValue:
    """The fewest iterations, to be quick."""
    made = scram.make_verifier(mechanism, password, b"some salt", scram.ITERATIONS_MIN)
    return ScramValue(*made[1:])


class Secured(Running):
    """`admin` is a super user; other users are made by `add_user`. All have one password."""

    def add_user(self, name: str, password: str = PASSWORD) -> None:
        put = {each: verifier(each, password) for each in (SCRAM_SHA_256, SCRAM_SHA_512)}
        self.run(self.node.topics.decide(partial(change_user, name=name, put=put, deleted=[])))

    def delete_user(self, name: str) -> None:
        deleted = [SCRAM_SHA_256, SCRAM_SHA_512]
        self.run(self.node.topics.decide(partial(change_user, name=name, put={}, deleted=deleted)))

    def allow(self, name: str, operation: int, type_: int, resource: str, **rule: int) -> None:
        self._change(add_acls, name, operation, type_, resource, **rule)

    def disallow(self, name: str, operation: int, type_: int, resource: str, **rule: int) -> None:
        self._change(remove_acls, name, operation, type_, resource, **rule)

    def _change(
        self,
        change: Any,
        name: str,
        operation: int,
        type_: int,
        resource: str,
        pattern: int = PatternType.LITERAL,
        permission: int = Permission.ALLOW,
    ) -> None:
        about = AclKey(int(type_), int(pattern), resource)
        acl = AclValue(f"User:{name}", "*", int(operation), int(permission))
        self.run(self.node.topics.decide(partial(change, about=about, acls=[acl])))

    def connect_as(self, name: str) -> RawConnection:
        """A connection that is this user's, without the exchange of passwords."""
        client = self.connect()
        inside = self.inside(client)

        def identify() -> None:
            inside.login = None
            self.node.security.identify(inside, user(name))

        self.on_loop(identify)
        return client

    def connect(self, receive_buffer: int | None = None) -> RawConnection:
        return RawConnection(self.bootstrap, receive_buffer)

    def call(self, api: Any, version: int, body: Any) -> Any:
        """One request of a super user."""
        with self.connect_as("admin") as connection:
            return connection.call(api, version, body)


@contextmanager
def secured_node(directory: Path, **settings: Any) -> Iterator[Secured]:
    running = Secured(directory, security_enabled="true", http_enabled="false", **settings)
    running.start()
    try:
        running.add_user("admin")
        yield running
    finally:
        running.stop()


def log_in(connection: RawConnection, exchange: ClientExchange) -> int:
    """The code of the last answer."""
    handshake = sasl_handshake.SaslHandshakeRequest(exchange.mechanism)
    answer = connection.call(sasl_handshake, 1, handshake)
    if answer.error_code:
        return int(answer.error_code)
    message: bytes | None = exchange.begin()
    while message is not None:
        answer = connection.call(sasl_authenticate, 2, sasl_authenticate.SaslAuthenticateRequest(message))
        if answer.error_code:
            return int(answer.error_code)
        message = exchange.respond(bytes(answer.auth_bytes))
    return 0


def scram_client(name: str, password: str = PASSWORD) -> ScramClient:
    return ScramClient(SCRAM_SHA_256, name, password, "nonce of a test")
