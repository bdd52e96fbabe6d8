"""What a request may touch: each API declares its rights, and its handler asks before it acts.

    RIGHTS: Final = Rights(topic=Operation.WRITE)            in `broker/api/produce.py`, beside KEY

`Rights.cluster` is demanded of the request as a whole, before it is read. The other fields say which
operation the handler asks for each resource that the request names: `call.access.check_topic(name)` raises
what stands in that resource's field of the answer, `call.access.may_topic(name)` leaves it out.

Where nobody asks who a client is, `call.access` is `OPEN`, which allows everything without a look.

Topics by id: whoever may not know of a topic (Describe) hears that there is no such id, else ids could be
guessed. By name he hears that he may not, whether there is such a topic or not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from postroad.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownTopicId,
)
from postroad.security.principals import Principal
from postroad.security.resources import CLUSTER_NAME, OPERATIONS, Operation, ResourceType

if TYPE_CHECKING:
    from postroad.cluster.image import Image
    from postroad.security.rules import Rules

NOT_ASKED: Final = -(1 << 31)  # where an answer may have a bit set of operations
DECISIONS_MAX: Final = 10_000  # remembered for a connection; then it begins anew

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
CLUSTER, TRANSACTIONAL_ID = ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID


class Rights(NamedTuple):
    """What an API asks for. All None: everybody may call it, also before login if it says so."""

    topic: Operation | None = None
    group: Operation | None = None
    transactional_id: Operation | None = None
    cluster: Operation | None = None  # of the request as a whole
    before_login: bool = False


class Access:
    """What may be touched; this one allows everything."""

    __slots__ = ()

    def allows(self, type_: int, name: str, operation: Operation | None = None) -> bool:
        """Whether it may, where nobody is refused anything if it may not."""
        return True

    def refusal(self, type_: int, name: str, operation: Operation | None = None) -> ApiError | None:
        """Why not, which the audit log tells; None: it may. The operation is the API's own unless named."""
        return None

    def topic_refusal(self, topic: str | bytes, operation: Operation | None = None) -> ApiError | None:
        """The same of a topic, by its name or by its id."""
        return None

    def changed(self, event: str, **facts: object) -> None:
        """What was asked for is done: a line for the audit log."""

    def operations(self, type_: int, name: str) -> int:
        """The operations that may be done with the resource, as a bit set (KIP-430)."""
        return bits(OPERATIONS[ResourceType(type_)])

    # --- each kind of resource

    def may_topic(self, name: str, operation: Operation | None = None) -> bool:
        return self.allows(TOPIC, name, operation)

    def may_group(self, name: str, operation: Operation | None = None) -> bool:
        return self.allows(GROUP, name, operation)

    def may_transactional_id(self, name: str, operation: Operation | None = None) -> bool:
        return self.allows(TRANSACTIONAL_ID, name, operation)

    def may_cluster(self, operation: Operation) -> bool:
        return self.allows(CLUSTER, CLUSTER_NAME, operation)

    def check_topic(self, topic: str | bytes, operation: Operation | None = None) -> None:
        """Raises TopicAuthorizationFailed; UnknownTopicId where the topic may not be known."""
        _raise(self.topic_refusal(topic, operation))

    def check_group(self, name: str, operation: Operation | None = None) -> None:
        _raise(self.refusal(GROUP, name, operation))

    def check_transactional_id(self, name: str, operation: Operation | None = None) -> None:
        _raise(self.refusal(TRANSACTIONAL_ID, name, operation))

    def check_cluster(self, operation: Operation) -> None:
        _raise(self.refusal(CLUSTER, CLUSTER_NAME, operation))

    def may_write_any_topic(self) -> bool:
        return True


OPEN: Final = Access()


class Guard:
    """What one principal may do, asked over one connection: decisions, kept while the rules stand still."""

    __slots__ = (
        "_accesses",
        "_decided",
        "_denied",
        "_revision",
        "host",
        "image",
        "note",
        "principal",
        "rules",
    )

    def __init__(
        self, principal: Principal, host: str, rules: Rules, image: Image, note: Callable[..., None]
    ) -> None:
        """`note` writes into the audit log."""
        self.principal = principal
        self.host = host
        self.rules = rules
        self.image = image
        self._revision = rules.revision
        self.note = note
        self._decided: dict[tuple[int, int, str], bool] = {}
        self._denied: set[tuple[int, int, str]] = set()  # of those, what the audit log has
        self._accesses: dict[Rights, GuardedAccess] = {}

    def allows(self, operation: int, type_: int, name: str) -> bool:
        decided = self._decided
        if self._revision != self.rules.revision or len(decided) > DECISIONS_MAX:
            self._revision = self.rules.revision
            decided.clear()
            self._denied.clear()
        question = operation, type_, name
        found = decided.get(question)
        if found is None:
            found = decided[question] = self.rules.allows(self.principal, self.host, *question)
        return found

    def note_denial(self, operation: Operation, type_: int, name: str) -> None:
        """Once for each question, while the rules stand still: clients ask again and again."""
        question = operation, type_, name
        if question not in self._denied:
            self._denied.add(question)
            kind = ResourceType(type_).name.lower()
            self.note("denied", operation=operation.name.lower(), resource=kind, name=name)

    def access(self, rights: Rights) -> GuardedAccess:
        found = self._accesses.get(rights)
        if found is None:
            found = self._accesses[rights] = GuardedAccess(self, rights)
        return found


class GuardedAccess(Access):
    """What a principal may touch by one API."""

    __slots__ = ("_guard", "_own")

    def __init__(self, guard: Guard, rights: Rights) -> None:
        self._guard = guard
        asked = {
            TOPIC: rights.topic,
            GROUP: rights.group,
            TRANSACTIONAL_ID: rights.transactional_id,
            CLUSTER: rights.cluster,
        }
        # What the API asks of each kind of resource; it asks for no other kind without naming the operation.
        self._own: dict[int, Operation] = {type_: each for type_, each in asked.items() if each is not None}

    def allows(self, type_: int, name: str, operation: Operation | None = None) -> bool:
        wanted = self._own[type_] if operation is None else operation
        return self._guard.allows(wanted, type_, name)

    def refusal(self, type_: int, name: str, operation: Operation | None = None) -> ApiError | None:
        wanted = self._own[type_] if operation is None else operation
        if self._guard.allows(wanted, type_, name):
            return None
        self._guard.note_denial(wanted, type_, name)
        return _REFUSALS[type_]

    def changed(self, event: str, **facts: object) -> None:
        self._guard.note(event, **facts)

    def topic_refusal(self, topic: str | bytes, operation: Operation | None = None) -> ApiError | None:
        if isinstance(topic, str):
            return self.refusal(TOPIC, topic, operation)
        known = self._guard.image.topics_by_id.get(topic)
        if known is None:
            return None  # the handler finds that out
        if self.refusal(TOPIC, known.name, Operation.DESCRIBE) is not None:
            return _UNKNOWN_ID
        return self.refusal(TOPIC, known.name, operation)

    def operations(self, type_: int, name: str) -> int:
        known = OPERATIONS[ResourceType(type_)]
        return bits(tuple(each for each in known if self._guard.allows(each, type_, name)))

    def may_write_any_topic(self) -> bool:
        guard = self._guard
        return guard.rules.allows_any(guard.principal, guard.host, Operation.WRITE, TOPIC)


_UNKNOWN_ID: Final = UnknownTopicId()
_REFUSALS: Final[dict[int, ApiError]] = {
    TOPIC: TopicAuthorizationFailed(),
    GROUP: GroupAuthorizationFailed(),
    TRANSACTIONAL_ID: TransactionalIdAuthorizationFailed(),
    CLUSTER: ClusterAuthorizationFailed(),
}


def _raise(refusal: ApiError | None) -> None:
    if refusal is not None:
        raise refusal.with_traceback(None)  # or each raise would make it longer


def bits(operations: tuple[Operation, ...]) -> int:
    return sum(1 << operation for operation in operations)
