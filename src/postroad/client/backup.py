"""What a backup asks nodes for. Each call is one try: a backup begins anew what does not fit together."""

from __future__ import annotations

from typing import Final

from postroad.client.client import Client
from postroad.errors import by_code
from postroad.wire import backup as api
from postroad.wire.backup import AnyQuestion, BackupAnswer, LogFacts, StoreKey

LANE: Final = "backup"  # large answers hold up nobody else
TIMEOUT_S: Final = 30.0


async def ask(client: Client, question: AnyQuestion, node: int | None = None) -> BackupAnswer:
    """One node's answer. Raises what it says if it can't."""
    where = {} if node is None else {"node": node}
    answer: BackupAnswer = await client.call(
        api, question, lane=LANE, timeout_s=TIMEOUT_S, version=api.MAX_VERSION, **where
    )
    if answer.error_code:
        raise by_code(answer.error_code, answer.error_message)
    return answer


async def store(client: Client) -> list[StoreKey]:
    """The keys of the coordination store that a new cluster needs; those with secrets may be sealed."""
    return (await ask(client, api.ReadStore())).keys


async def logs(client: Client, node: int, kind: str) -> list[LogFacts]:
    """The logs of this kind that the node leads."""
    return (await ask(client, api.FindLogs(kind), node)).logs


async def hold(client: Client, node: int, name: str, hold_ms: int) -> None:
    """No transaction that the node coordinates ends for so long."""
    await ask(client, api.HoldVerdicts(name, hold_ms), node)


async def release(client: Client, node: int, name: str) -> bool:
    """Whether transactions were held until now; they are not any more."""
    return (await ask(client, api.ReleaseVerdicts(name), node)).unbroken


async def read(client: Client, node: int, log: LogFacts, offset: int, bytes_max: int) -> BackupAnswer:
    """Committed batches from the one on that holds the offset; none where the log does not have it."""
    return await ask(client, api.ReadLog(log.log_id, log.index, offset, bytes_max), node)
