"""When messages were received first, as far as this gateway saw it: ApproximateFirstReceiveTimestamp.

Nodes don't tell it. A message that is received for the first time is noted, if the receiver wants to know;
one that comes again and is not known here was received by now at the latest.
"""

from __future__ import annotations

from typing import Final

ENTRIES_MAX: Final = 100_000


class FirstReceives:
    def __init__(self) -> None:
        self._times: dict[str, int] = {}

    def time_ms(self, message_id: str, deliveries: int, now_ms: int) -> int:
        if deliveries > 1:
            return self._times.get(message_id, now_ms)
        if len(self._times) >= ENTRIES_MAX:
            del self._times[next(iter(self._times))]
        self._times[message_id] = now_ms
        return now_ms
