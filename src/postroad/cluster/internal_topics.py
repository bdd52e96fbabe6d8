"""The topics that nodes keep for themselves, and the configs that they always have.

They hold the state of groups and subscriptions: whoever could shorten them, by retention or otherwise, could
make every group forget. So clients may read them, and neither write, create, delete, widen, shorten nor
configure them. What an older version let clients store as their configs is passed over (`image`).

`__schemas` is the gateways': they are clients, so clients may create it, with what stands here and nothing
else, and write to it, if ACLs let them. Nobody may delete or configure it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from postroad.errors import PolicyViolation

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"
SCHEMAS_TOPIC: Final = "__schemas"

INTERNAL_TOPICS: Final[Mapping[str, Mapping[str, str]]] = {
    OFFSETS_TOPIC: {
        "cleanup.policy": "compact",
        "segment.bytes": str(100 * 1024 * 1024),  # small segments: compaction works on closed ones
        "max.message.bytes": str(16 * 1024 * 1024),  # a generation of thousands of members is one record
        "compression.type": "producer",
    },
    TRANSACTIONS_TOPIC: {
        "cleanup.policy": "compact",
        "segment.bytes": str(100 * 1024 * 1024),
        "max.message.bytes": str(
            16 * 1024 * 1024
        ),  # a transaction over thousands of partitions is one record
        "compression.type": "producer",
    },
    SCHEMAS_TOPIC: {
        "cleanup.policy": "compact",
        "segment.bytes": str(16 * 1024 * 1024),
        "max.message.bytes": str(8 * 1024 * 1024),  # a schema of 1 MiB, and the tombstones before it
        "compression.type": "producer",
    },
    SHARE_STATE_TOPIC: {
        "cleanup.policy": "delete",
        "retention.ms": "-1",  # what is no longer needed goes by its offset (broker/subscriptions/states.py)
        "retention.bytes": "-1",
        "segment.bytes": str(16 * 1024 * 1024),
        "max.message.bytes": str(16 * 1024 * 1024),  # a snapshot's part is far smaller
        "compression.type": "producer",
    },
}

CLIENTS_WRITE: Final = frozenset({SCHEMAS_TOPIC})
"""Those that clients may create and write."""

LEDGER_CONFIG: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",  # what is no longer needed goes by its offset (broker/subscriptions/states.py)
    "retention.bytes": "-1",
    "segment.bytes": str(16 * 1024 * 1024),
    "max.message.bytes": str(16 * 1024 * 1024),  # a snapshot's part is far smaller
    "compression.type": "producer",
}
"""The configs of every ledger: what subscriptions are done with is as safe as `durability.flush` says."""


def refuse_internal(name: str, what: str) -> None:
    """Raises PolicyViolation if a client asks for a change of one of these topics."""
    if name in INTERNAL_TOPICS:
        raise PolicyViolation(f"{name!r} is kept by the nodes themselves; {what}.")
