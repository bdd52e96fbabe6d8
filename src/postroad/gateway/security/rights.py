"""What an action, an endpoint or a page asks for, declared beside it and checked before anything is done.

    Rights(group=READ, topics=READ)         receive: the subscription's group, and each topic that it reads
    Rights(topic=WRITE)                     the topic that the path names
    Rights(by_handler="…")                  what is asked depends on more than names: the handler asks itself
    Rights(public=True)                     nothing: it shows nobody's messages and no names

Names are asked about before it is looked whether there is such a thing: whoever may not know of it hears
the same of one that is there and of one that is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from postroad.gateway.directory import Directory
from postroad.gateway.security.access import Access
from postroad.security.resources import Operation

H = TypeVar("H", bound=Callable[..., object])

READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE, CLUSTER_ACTION = Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION
ALTER_CONFIGS, DESCRIBE_CONFIGS = Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS

ATTRIBUTE: Final = "rights"  # of a handler that is no endpoint of REST


class Rights(NamedTuple):
    group: Operation | None = None
    topics: Operation | None = None  # of each topic of the subscription
    topic: Operation | None = None
    cluster: Operation | None = None
    by_handler: str = ""  # what the handler asks for
    public: bool = False

    @property
    def is_declared(self) -> bool:
        return self != Rights()

    @property
    def words(self) -> str:
        """For people."""
        asked = {
            "the group": self.group,
            "each of its topics": self.topics,
            "the topic": self.topic,
            "the cluster": self.cluster,
        }
        found = [f"{_word(right)} on {what}" for what, right in asked.items() if right is not None]
        return ", ".join([*found, self.by_handler] if self.by_handler else found) or "none"


def _word(operation: Operation) -> str:
    return operation.name.title().replace("_", "")


PUBLIC: Final = Rights(public=True)
RECEIVE: Final = Rights(group=READ, topics=READ)
BY_ACTION: Final = Rights(by_handler="each action declares its own")


def declared(rights: Rights) -> Callable[[H], H]:
    """For handlers of pages and streams."""

    def declare(handler: H) -> H:
        setattr(handler, ATTRIBUTE, rights)
        return handler

    return declare


async def check(
    access: Access, rights: Rights, directory: Directory, *, group: str = "", topic: str = ""
) -> None:
    """Raises an AuthorizationFailed of the resource; GroupIdNotFound for a subscription that is not there."""
    if not access.is_guarded:
        return
    if rights.cluster is not None:
        access.check_cluster(rights.cluster)
    if rights.topic is not None:
        access.check_topic(topic, rights.topic)
    if rights.group is not None:
        access.check_group(group, rights.group)
    if rights.topics is not None:
        for name in (await directory.subscription(group)).topics:
            access.check_topic(name, rights.topics)


async def check_receive(access: Access, directory: Directory, group: str) -> None:
    await check(access, RECEIVE, directory, group=group)


def may_receive(access: Access, group: str, topics: tuple[str, ...]) -> bool:
    """The same of a subscription that is known; for what has waited, and goes on."""
    return access.may_group(group, READ) and all(access.may_topic(name, READ) for name in topics)
