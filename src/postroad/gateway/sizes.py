"""How much memory messages take, for the bounds of receives."""

from __future__ import annotations

from typing import Final

from postroad.client.share_message import ShareMessage

OVERHEAD_BYTES: Final = 100  # besides what it says: a batch's header, its range in an answer


def of_message(message: ShareMessage) -> int:
    """About how many bytes a message takes."""
    size = OVERHEAD_BYTES + len(message.value or b"") + len(message.key or b"")
    for name, value in message.headers:
        size += len(name) + len(value or b"")
    return size
