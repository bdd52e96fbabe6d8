"""What a subscription promises, as options of `create` and `alter`: each is one of the group's configs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from postroad.cli.duration import DurationType, shortened
from postroad.cli.numbers import COUNT, DecimalNumber
from postroad.cli.param_type import ParamType
from postroad.cli.start import parse as parse_start
from postroad.cli.topic import pairs
from postroad.wire.subscription_names import (
    DEAD_LETTER_TOPIC_CONFIG,
    DEAD_LETTERS_CONFIG,
    DELIVERY_LIMIT_CONFIG,
    LOCK_CONFIG,
    START_CONFIG,
)

NO_DEAD_LETTERS: Final = "none"
ATTEMPTS_DIGITS_MAX: Final = 4
CONFIG_STARTS: Final = ("at:", "by_duration:")  # as the config itself is written
LOCK_MS_MAX: Final = 43_200_000  # 12 hours, which the node allows
DURATION: Final = DurationType()

# Options whose value is the config's, as it is.
CONFIGS: Final = {
    "lock": LOCK_CONFIG,
    "attempts": DELIVERY_LIMIT_CONFIG,
    "backoff": "postroad.backoff.initial.ms",
    "backoff_factor": "postroad.backoff.factor",
    "backoff_max": "postroad.backoff.max.ms",
    "backoff_jitter": "postroad.backoff.jitter",
    "order": "postroad.order",
    "fair_by": "postroad.fair.by",
    "delivery": "postroad.delivery",
    "max_locks": "postroad.max.record.locks",
    "partition_max_locks": "share.partition.max.record.locks",
    "member_max_locks": "postroad.member.max.record.locks",
}

F = TypeVar("F", bound=Callable[..., Any])


class AttemptsType(ParamType[int]):
    name = "attempts"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "none":
            return 0
        text = str(value)
        if not text.isdecimal() or len(text) > ATTEMPTS_DIGITS_MAX:
            self.fail(f"{shortened(text)} is neither a number from 1 to 1000 nor `none`", param, ctx)
        return int(text)


class BeginningType(ParamType[str]):
    """A start that means something before there are any messages, as the config has it: no offsets."""

    name = "start"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if text.startswith(CONFIG_STARTS):
            return text
        start = parse_start(text, int(time.time() * 1000))
        if start is None or start.kind not in ("beginning", "end", "time"):
            self.fail(
                f"{shortened(text)} is none of: earliest (or beginning), latest (or end), "
                "a time ago (30s, 15m, 2h, 7d), a date and time (2026-03-01T08:00)",
                param,
                ctx,
            )
        return {"beginning": "earliest", "end": "latest"}.get(start.kind, f"at:{start.value}")


_OPTIONS: Final = (
    click.option(
        "--start",
        type=BeginningType(),
        metavar="START",
        help="Where to start on new partitions: latest (default), earliest, 2h (ago), 2026-03-01T08:00.",
    ),
    click.option(
        "--lock",
        type=DurationType(LOCK_MS_MAX, 1, ": the lock would end before the consumer has the message"),
        metavar="DURATION",
        help="How long a consumer may hold a message: 30s by default, 12h at most.",
    ),
    click.option(
        "--attempts",
        type=AttemptsType(),
        metavar="N|none",
        help="How often a message is delivered before it is given up: 1 to 1000, or none for no limit.",
    ),
    click.option(
        "--backoff",
        type=DURATION,
        metavar="DURATION",
        help="Delay after the first failed delivery of a message.",
    ),
    click.option(
        "--backoff-factor",
        type=DecimalNumber(1, 100),
        help="How much the delay grows with each further failure.",
    ),
    click.option("--backoff-max", type=DURATION, metavar="DURATION", help="Longest delay."),
    click.option(
        "--backoff-jitter",
        type=DecimalNumber(0, 1),
        help="Shorten each delay at random, by up to this part (0 to 1).",
    ),
    click.option(
        "--order",
        type=click.Choice(["none", "key", "partition"]),
        help="key: one message of a key at a time; partition: one message of a partition at a time.",
    ),
    click.option(
        "--fair-by",
        metavar="HEADER",
        help="Header that names the tenant: who holds fewer messages is served first. '' turns it off.",
    ),
    click.option(
        "--delivery", type=click.Choice(["at-least-once", "at-most-once"]), help="At least once by default."
    ),
    click.option(
        "--dead-letters",
        metavar="TOPIC|none",
        help="Topic for messages that are given up, NAME.dead by default; none drops them.",
    ),
    click.option("--max-locks", type=COUNT, help="Most messages in flight in all."),
    click.option("--partition-max-locks", type=COUNT, help="Most messages in flight of a partition."),
    click.option("--member-max-locks", type=COUNT, help="Most messages in flight at a consumer."),
    click.option(
        "-c",
        "--config",
        "configs",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set any other config, such as postroad.deduplicate.ms=300000. May be repeated.",
    ),
)


def promise_options(command: F) -> F:
    """They arrive as keyword arguments of these names; `changes` makes configs of them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def changes(given: Mapping[str, Any]) -> dict[str, str]:
    """The configs that the options set; --config comes last, so it wins."""
    found = {
        CONFIGS[name]: str(value) for name, value in given.items() if name in CONFIGS and value is not None
    }
    if given["start"] is not None:
        found[START_CONFIG] = given["start"]
    if given["dead_letters"] is not None:
        wanted = given["dead_letters"] != NO_DEAD_LETTERS
        found[DEAD_LETTERS_CONFIG] = str(wanted).lower()
        if wanted:
            found[DEAD_LETTER_TOPIC_CONFIG] = given["dead_letters"]
    return found | pairs(given["configs"])
