"""`Following`: the rules of the nodes, as this gateway has heard of them.

One request waits at a node for news, and is asked again as soon as it is answered. Where no node has
answered for `STALE_S` nobody is let in any more: a denial may have been missed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from postroad.client.client import Client
from postroad.errors import CoordinatorNotAvailable, PostroadError, TryAgain, by_code
from postroad.gateway.security.sessions import Sessions, Standing
from postroad.security.resources import ResourcePattern
from postroad.security.rules import AclRule, Rules
from postroad.wire import callers as api

LANE: Final = "rules"  # its answers take seconds, which nobody else should wait for
ANSWER_S: Final = 8.0  # the node's own patience, and some for the way
AGAIN_S: Final = 0.5
STALE_S: Final = 30.0
REVIEW_S: Final = 60.0  # so often it is asked how users with sessions stand, whatever was heard
USERS_MAX: Final = 10_000  # in one question

log = logging.getLogger(__name__)


class Following:
    def __init__(self, client: Client, sessions: Sessions) -> None:
        self.rules = Rules()
        self._client = client
        self._sessions = sessions
        self._incarnation = ""
        self.revision = 0
        self.takes_tokens = False  # whether nodes say whose a token is
        self._changed: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._heard_at = self._reviewed_at = 0.0

    async def start(self) -> None:
        """The rules are known when this returns. Raises PostroadError."""
        await self._ask([])
        self._reviewed_at = self._heard_at
        self._task = asyncio.create_task(self._run(), name="follow rules")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def check_current(self) -> None:
        """Raises CoordinatorNotAvailable where the nodes may have changed their minds long ago."""
        if asyncio.get_running_loop().time() - self._heard_at > STALE_S:
            raise CoordinatorNotAvailable("No node says what callers may do: try again later.")

    async def changed(self) -> None:
        """Until something may have become allowed or forbidden."""
        if self._changed is None or self._changed.done():
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._changed)

    # --- hearing

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            review = loop.time() - self._reviewed_at > REVIEW_S
            try:
                await self._ask(self._sessions.users()[:USERS_MAX] if review else [])
            except PostroadError as error:
                level = logging.INFO if isinstance(error, TryAgain) else logging.WARNING
                log.log(level, "the rules could not be asked for: %s", error)
                await asyncio.sleep(AGAIN_S)
            else:
                self._reviewed_at = loop.time() if review else self._reviewed_at

    async def _ask(self, users: list[str]) -> None:
        question = api.FollowRules(self._incarnation, self.revision, users)
        answer = await self._client.call(
            api, question, lane=LANE, timeout_s=ANSWER_S, version=api.MAX_VERSION
        )
        if answer.error_code:
            raise by_code(answer.error_code, answer.error_message)
        if answer.complete and not users and self._sessions.users():
            # Another node, or one that has forgotten: what became of users meanwhile is asked, too.
            await self._review()
        self._take(answer)

    async def _review(self) -> None:
        question = api.FollowRules(users=self._sessions.users()[:USERS_MAX])
        answer = await self._client.call(
            api, question, lane=LANE, timeout_s=ANSWER_S, version=api.MAX_VERSION
        )
        if answer.error_code:
            raise by_code(answer.error_code, answer.error_message)
        self._take_users(answer)

    def _take(self, answer: api.CallersAnswer) -> None:
        rules = self.rules
        before = rules.super_users, rules.open_without_rules
        rules.super_users = frozenset(answer.super_users)
        rules.open_without_rules = answer.open_without_rules
        self.takes_tokens = answer.takes_tokens
        told = {_pattern(each): [AclRule(*_fields(rule)) for rule in each.rules] for each in answer.rules}
        if answer.complete:
            rules.replace({pattern: tuple(found) for pattern, found in told.items()})
        else:
            for pattern, found in told.items():
                rules.put(pattern, found)
        self._take_users(answer)
        self._incarnation, self.revision = answer.incarnation, answer.revision
        self._heard_at = asyncio.get_running_loop().time()
        is_new = answer.complete or told or before != (rules.super_users, rules.open_without_rules)
        if is_new or answer.users:
            rules.revision += 1
            self._wake()

    def _take_users(self, answer: api.CallersAnswer) -> None:
        self._sessions.review(
            {
                name: Standing(frozenset(found.passwords), frozenset(found.keys))
                for name, found in answer.users.items()
            }
        )

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)


def _pattern(rules: api.ResourceRules) -> ResourcePattern:
    return ResourcePattern(rules.type, rules.pattern, rules.name)


def _fields(rule: api.RuleText) -> tuple[str, str, int, int]:
    return rule.principal, rule.host, rule.operation, rule.permission
