"""Which changes of a subscription can lose messages that others count on: they need an admin key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from postroad.gateway.rest import problems
from postroad.gateway.rest.problems import Refused
from postroad.wire.subscription_names import DEAD_LETTERS_CONFIG, DELIVERY_LIMIT_CONFIG

DELIVERY_CONFIG: Final = "postroad.delivery"
AT_MOST_ONCE: Final = "at-most-once"
ENDLESS: Final = 0  # attempts


def check(
    admin: bool, before: Mapping[str, str], changes: Mapping[str, str | None], gone: Sequence[str]
) -> None:
    """`gone` are topics that the subscription is to read no longer. Raises Refused."""
    if admin:
        return
    what = f"To take the topic {gone[0]} away from it" if gone else _loss(before, changes)
    if what:
        raise Refused(problems.FORBIDDEN, f"{what} needs an admin key: messages would be lost.")


def _loss(before: Mapping[str, str], changes: Mapping[str, str | None]) -> str:
    """The change that loses messages; empty if there is none."""
    if changes.get(DEAD_LETTERS_CONFIG) == "false" and before.get(DEAD_LETTERS_CONFIG) != "false":
        return "To keep no dead letters"
    if changes.get(DELIVERY_CONFIG) == AT_MOST_ONCE and before.get(DELIVERY_CONFIG) != AT_MOST_ONCE:
        return "To deliver at most once"
    keeps_letters = before.get(DEAD_LETTERS_CONFIG) != "false"
    if (
        not keeps_letters
        and DELIVERY_LIMIT_CONFIG in changes
        and _is_fewer(before, changes[DELIVERY_LIMIT_CONFIG])
    ):
        return "To try less often, where no dead letters are kept,"
    return ""


def _is_fewer(before: Mapping[str, str], attempts: str | None) -> bool:
    """Back to the default counts as fewer: what that is the node knows. What is no number it refuses."""
    if attempts is None or not attempts.isdecimal():
        return attempts is None
    was, now = int(before.get(DELIVERY_LIMIT_CONFIG, ENDLESS)), int(attempts)
    return now != ENDLESS and (was == ENDLESS or now < was)
