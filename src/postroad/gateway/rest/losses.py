"""Which changes of a subscription can lose messages that others count on.

They need an admin key; Delete on the group, where users are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from postroad.gateway.rest import problems
from postroad.gateway.rest.problems import Refused
from postroad.gateway.security.access import Access
from postroad.wire.subscription_names import DEAD_LETTERS_CONFIG, DELIVERY_LIMIT_CONFIG

DELIVERY_CONFIG: Final = "postroad.delivery"
AT_MOST_ONCE: Final = "at-most-once"
ENDLESS: Final = 0  # attempts


def check(
    access: Access,
    name: str,
    before: Mapping[str, str],
    changes: Mapping[str, str | None],
    gone: Sequence[str],
) -> None:
    """`gone` are topics that the subscription is to read no longer. Raises Refused."""
    if access.may_discard(name):
        return
    what = f"To take the topic {gone[0]} away from it" if gone else _loss(before, changes)
    if what:
        needed = "Delete on its group" if access.is_guarded else "an admin key"
        raise Refused(problems.FORBIDDEN, f"{what} needs {needed}: messages would be lost.")


def _loss(before: Mapping[str, str], changes: Mapping[str, str | None]) -> str:
    """The change that loses messages; empty if there is none."""
    keeps_letters = _word(before.get(DEAD_LETTERS_CONFIG)) != "false"
    if keeps_letters and _word(changes.get(DEAD_LETTERS_CONFIG, "true")) != "true":
        return "To keep no dead letters"
    if (
        _word(changes.get(DELIVERY_CONFIG)) == AT_MOST_ONCE
        and _word(before.get(DELIVERY_CONFIG)) != AT_MOST_ONCE
    ):
        return "To deliver at most once"
    if (
        not keeps_letters
        and DELIVERY_LIMIT_CONFIG in changes
        and _is_fewer(before, changes[DELIVERY_LIMIT_CONFIG])
    ):
        return "To try less often, where no dead letters are kept,"
    return ""


def _word(text: str | None) -> str:
    """As the node reads it, which minds neither blanks around it nor capitals. Empty: back to the default,
    which only the node knows."""
    return "" if text is None else text.strip().lower()


def _is_fewer(before: Mapping[str, str], attempts: str | None) -> bool:
    """Back to the default counts as fewer: what that is the node knows. What is no number it refuses."""
    if attempts is None:
        return True
    try:
        was, now = int(before.get(DELIVERY_LIMIT_CONFIG, ENDLESS)), int(attempts)
    except ValueError:
        return False
    return now != ENDLESS and (was == ENDLESS or now < was)
