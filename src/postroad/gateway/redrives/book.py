"""Where tasks are written down: two configs of the subscription whose letters they send back.

`postroad.redrives` is a JSON array of its tasks, the newest first. At most the first one runs, and only the
gateway that carries it out writes. So nothing that is written gets lost by another's writing, with one
exception: two gateways may begin a task of one subscription, or take one over, at the same moment. Then the
last to write has it, and the other sees that at its next beat and stops.

`postroad.redrives.cancel` is the id of the task that somebody wants to be cancelled: a word to its owner,
from anybody. It goes when the task ends.

Configs go with their subscription. A crash at any point leaves an array of some moment of the past: a task
in it that is over but for its last word is taken over, finds nothing left to do, and ends again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from postroad.client import subscriptions
from postroad.client.client import Client
from postroad.client.topics import ConfigEntry
from postroad.gateway.directory import Directory
from postroad.gateway.redrives.task import Task

TASKS_CONFIG: Final = "postroad.redrives"
CANCEL_CONFIG: Final = "postroad.redrives.cancel"
REMEMBERED_MAX: Final = 10  # of one subscription

_decoder: Final = msgspec.json.Decoder(list[Task])


class Page(NamedTuple):
    """`cancel`: the id of a task that is not wanted any more."""

    tasks: list[Task]
    cancel: str

    @property
    def running(self) -> Task | None:
        return self.tasks[0] if self.tasks and not self.tasks[0].has_ended else None


class Book:
    def __init__(self, client: Client, directory: Directory) -> None:
        self._client = client
        self._directory = directory

    async def read(self, subscription: str) -> Page:
        """As the nodes have it now. Empty for a subscription that is not there."""
        entries = {entry.name: entry.value or "" for entry in await self._config(subscription)}
        return Page(read_tasks(entries.get(TASKS_CONFIG, "")), entries.get(CANCEL_CONFIG, ""))

    async def write(self, subscription: str, tasks: Sequence[Task], clear_cancel: bool = False) -> None:
        text = msgspec.json.encode(tasks[:REMEMBERED_MAX]).decode()
        resets = [CANCEL_CONFIG] if clear_cancel else []
        await subscriptions.alter_config(self._client, subscription, {TASKS_CONFIG: text}, resets)

    async def ask_to_cancel(self, subscription: str, task_id: str) -> None:
        await subscriptions.alter_config(self._client, subscription, {CANCEL_CONFIG: task_id})

    async def texts(self) -> Mapping[str, str]:
        """The tasks of all subscriptions that have any, as they are written down."""
        return await subscriptions.config_of_all(self._client, await self._directory.names(), TASKS_CONFIG)

    async def _config(self, subscription: str) -> Sequence[ConfigEntry]:
        return await self._client.retry(lambda: subscriptions.config(self._client, subscription))


def read_tasks(text: str) -> list[Task]:
    """An operator may have written anything into the config: what is no array of tasks is none."""
    try:
        return _decoder.decode(text) if text else []
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return []
