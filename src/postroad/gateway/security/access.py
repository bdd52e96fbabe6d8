"""`Access`: what a caller may do. This one may do everything; `UserAccess` asks the rules.

`admin` is of access keys where nobody asks for users: what can lose messages needs an admin's key then.
"""

from __future__ import annotations

from typing import Final

from postroad.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
)
from postroad.gateway.security.sessions import FOR_EVER_S, Session
from postroad.security.principals import Principal
from postroad.security.resources import CLUSTER_NAME, Operation, ResourceType
from postroad.security.rules import Rules

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
DECISIONS_MAX: Final = 10_000  # remembered for a caller; then it begins anew

_REFUSALS: Final[dict[int, type[ApiError]]] = {
    TOPIC: TopicAuthorizationFailed,
    GROUP: GroupAuthorizationFailed,
    CLUSTER: ClusterAuthorizationFailed,
}


class Access:
    """`owner` says in whose name something goes on when the request is over; "" where nobody asks."""

    __slots__ = ("admin", "owner")
    is_guarded = False  # whether there is anything to ask

    def __init__(self, *, admin: bool = True, owner: str = "") -> None:
        self.admin = admin
        self.owner = owner

    def allows(self, operation: int, type_: int, name: str) -> bool:
        return True

    @property
    def left_s(self) -> float:
        """How long what the caller has shown is good, if nobody takes it away."""
        return FOR_EVER_S

    def may_topic(self, name: str, operation: Operation) -> bool:
        return self.allows(operation, TOPIC, name)

    def may_group(self, name: str, operation: Operation) -> bool:
        return self.allows(operation, GROUP, name)

    def may_cluster(self, operation: Operation) -> bool:
        return self.allows(operation, CLUSTER, CLUSTER_NAME)

    def may_create_topic(self, name: str) -> bool:
        return self.allows(Operation.CREATE, CLUSTER, CLUSTER_NAME) or self.may_topic(name, Operation.CREATE)

    def may_discard(self, group: str) -> bool:
        """Whether the caller may do with the subscription what can lose messages that others count on."""
        return self.admin

    # --- or a refusal

    def check_topic(self, name: str, operation: Operation) -> None:
        """Raises TopicAuthorizationFailed."""
        self._check(operation, TOPIC, name)

    def check_group(self, name: str, operation: Operation) -> None:
        """Raises GroupAuthorizationFailed."""
        self._check(operation, GROUP, name)

    def check_cluster(self, operation: Operation) -> None:
        """Raises ClusterAuthorizationFailed."""
        self._check(operation, CLUSTER, CLUSTER_NAME)

    def check_create_topic(self, name: str) -> None:
        """Raises TopicAuthorizationFailed."""
        if not self.may_create_topic(name):
            self._check(Operation.CREATE, TOPIC, name)

    def _check(self, operation: Operation, type_: ResourceType, name: str) -> None:
        if not self.allows(operation, type_, name):
            right = operation.name.title().replace("_", "")
            what = type_.name.lower() if type_ is CLUSTER else f"{type_.name.lower()} {name}"
            raise _REFUSALS[type_](f"Not authorized: it takes {right} on the {what}.")


OPEN: Final = Access()
ADMIN_KEY: Final = OPEN
USER_KEY: Final = Access(admin=False)


class UserAccess(Access):
    """What a user may do from one address: decisions, kept while the rules stand still. A session that has
    ended allows nothing, so whatever goes on in it ends with the next question."""

    __slots__ = ("_decided", "_revision", "_rules", "host", "principal", "session")
    is_guarded = True

    def __init__(self, principal: Principal, host: str, rules: Rules, session: Session) -> None:
        super().__init__(admin=False, owner=str(principal))
        self.principal = principal
        self.host = host
        self.session = session
        self._rules = rules
        self._revision = rules.revision
        self._decided: dict[tuple[int, int, str], bool] = {}

    def allows(self, operation: int, type_: int, name: str) -> bool:
        if self.session.has_ended:
            return False
        decided = self._decided
        if self._revision != self._rules.revision or len(decided) > DECISIONS_MAX:
            self._revision = self._rules.revision
            decided.clear()
        question = operation, type_, name
        found = decided.get(question)
        if found is None:
            found = decided[question] = self._rules.allows(self.principal, self.host, *question)
        return found

    @property
    def left_s(self) -> float:
        return self.session.left_s

    def may_discard(self, group: str) -> bool:
        return self.may_group(group, Operation.DELETE)
