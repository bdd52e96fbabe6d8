"""What rights are about: resources, patterns of their names, operations. The numbers are Kafka's, on the
wire.

A pattern names one resource (literal), all whose names begin so (prefixed), or, as the literal `*`, all of
its kind.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from postroad.errors import InvalidRequest

WILDCARD: Final = "*"
CLUSTER_NAME: Final = "kafka-cluster"  # the one resource of its kind, called so by every client


class ResourceType(IntEnum):
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class PatternType(IntEnum):
    ANY = 1
    MATCH = 2  # in a filter: whatever pattern covers the name
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class Permission(IntEnum):
    ANY = 1
    DENY = 2
    ALLOW = 3


_READ, _WRITE, _CREATE, _DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
_ALTER, _DESCRIBE = Operation.ALTER, Operation.DESCRIBE
_DESCRIBE_CONFIGS, _ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS

# What may be done with a resource of each kind; an ACL about anything else would never hold.
OPERATIONS: Final[dict[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        *(_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS),
    ),
    ResourceType.GROUP: (_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS),
    ResourceType.CLUSTER: (
        *(_CREATE, _ALTER, _DESCRIBE, Operation.CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS),
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (_WRITE, _DESCRIBE),
}

# Whoever is allowed one of these is allowed the key, too. A DENY implies nothing.
IMPLIED_BY: Final[dict[int, tuple[int, ...]]] = {
    _DESCRIBE: (_READ, _WRITE, _DELETE, _ALTER),
    _DESCRIBE_CONFIGS: (_ALTER_CONFIGS,),
}


class ResourcePattern(NamedTuple):
    type: int  # a ResourceType
    pattern: int  # LITERAL or PREFIXED
    name: str

    def covers(self, type_: int, name: str) -> bool:
        if self.type != type_:
            return False
        if self.pattern == PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)

    def __str__(self) -> str:
        kind = ResourceType(self.type).name.lower().replace("_", "-")
        name = f"{self.name}*" if self.pattern == PatternType.PREFIXED else self.name
        return kind if self.type == ResourceType.CLUSTER else f"{kind} {name}"


def check_pattern(pattern: ResourcePattern) -> None:
    """Raises InvalidRequest where an ACL can't be about this."""
    if pattern.type not in OPERATIONS:
        raise InvalidRequest(f"There are no ACLs about resources of type {pattern.type}.")
    if pattern.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidRequest("An ACL's pattern is literal (3) or prefixed (4).")
    if not pattern.name or "\0" in pattern.name:
        raise InvalidRequest("An ACL names a resource, a prefix, or *.")
    if pattern.type == ResourceType.CLUSTER and pattern[1:] != (PatternType.LITERAL, CLUSTER_NAME):
        raise InvalidRequest(f"There is one cluster: name it {CLUSTER_NAME}, literally.")
