"""What a group's coordinator is not sure of: state that was damaged on its disk. Postroad's own."""

from __future__ import annotations

import re
from typing import Final

from postroad.client import nodes
from postroad.client.client import Client
from postroad.errors import PostroadError

GROUP: Final = "group"
SUBSCRIPTION: Final = "subscription"
TIMEOUT_S: Final = 5.0

_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


async def in_doubt(client: Client, kind: str, name: str, node: int) -> list[str]:
    """What of this group or subscription is in doubt: partitions as `orders-0`, or `everything`."""
    try:
        page = await nodes.metrics(client, node, TIMEOUT_S)
    except PostroadError:  # a broker that is not ours
        return []
    lines = [line for line in page.splitlines() if line.startswith(f"postroad_{kind}_in_doubt{{")]
    found = [dict(_LABEL.findall(line)) for line in lines]
    return [_partition_text(labels) for labels in found if labels.get(kind) == _escaped(name)]


def _partition_text(labels: dict[str, str]) -> str:
    return f"{labels['topic']}-{labels['partition']}" if "topic" in labels else "everything"


def _escaped(name: str) -> str:
    """As a label's value is written."""
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
