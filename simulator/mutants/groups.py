"""Mutants of consumer groups and of their coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from postroad.broker.groups.coordinator import Coordinator, Token
from postroad.errors import ApiError
from postroad.groups.answers import Outcome
from postroad.groups.consumer import Draft
from postroad.groups.coordinator import Fetched, Groups
from postroad.groups.group import Group
from postroad.groups.requests import CommitRequest, TopicPartition
from postroad.now import Now
from simulator.mutants.mutant import Mutant


def _take_any_generation(check: Callable[..., Any]) -> Callable[..., Any]:
    def check_operators_only(self: Groups, group: Group, request: CommitRequest, now: Now) -> None:
        if request.generation < 0:
            check(self, group, request, now)

    return check_operators_only


def _ignore(error: ApiError | None) -> None:
    """Nobody waits for it any more."""


def _answer_first(_: Callable[..., Any]) -> Callable[..., Any]:
    def answer_first(self: Coordinator, outcome: Outcome, after: Callable[[], None]) -> None:
        self._log.append(outcome.records, _ignore)
        for record in outcome.records:
            self.groups.apply(record)
        for reply in outcome.replies:
            token: Token = reply.token  # type: ignore[assignment]
            token(reply.answer)
        after()

    return answer_first


def _always_free(_: Callable[..., Any]) -> Callable[..., Any]:
    def is_free_for(self: Draft, member_id: str, partition: TopicPartition) -> bool:
        return True

    return is_free_for


def _begin_early(fetch: Callable[..., Any]) -> Callable[..., Any]:
    def fetch_early(self: Groups, *request: Any) -> list[Fetched]:
        return [
            each
            if each.value is None
            else each._replace(value=replace(each.value, offset=max(0, each.value.offset - 1)))
            for each in fetch(self, *request)
        ]

    return fetch_early


ALL: Final = (
    Mutant(
        "stale-commit",
        "an offset commit of a stale generation or member epoch is taken",
        Groups,
        "_check_commit",
        _take_any_generation,
    ),
    Mutant(
        "commit-before-durable",
        "what a group decides is applied and answered before it is committed",
        Coordinator,
        "_append",
        _answer_first,
    ),
    Mutant(
        "two-owners",
        "a partition goes to its next owner before the last one has given it up",
        Draft,
        "is_free_for",
        _always_free,
    ),
    Mutant(
        "begin-early",
        "members begin at the last message that their group committed, not behind it",
        Groups,
        "fetch",
        _begin_early,
    ),
)
