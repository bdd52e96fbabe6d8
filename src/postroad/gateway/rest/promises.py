"""What a subscription promises, as fields with friendly names; each stands for one config of its group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, ValidationError, convert

from postroad.gateway.rest import problems
from postroad.gateway.rest.fields import LockMs
from postroad.gateway.rest.problems import Refused

DAY_MS: Final = 86_400_000

CONFIGS: Final[Mapping[str, str]] = {
    "start": "share.auto.offset.reset",
    "lock_ms": "share.record.lock.duration.ms",
    "attempts": "share.delivery.count.limit",
    "backoff_ms": "postroad.backoff.initial.ms",
    "backoff_factor": "postroad.backoff.factor",
    "backoff_max_ms": "postroad.backoff.max.ms",
    "backoff_jitter": "postroad.backoff.jitter",
    "order": "postroad.order",
    "fair_by": "postroad.fair.by",
    "delivery": "postroad.delivery",
    "dead_letters": "postroad.dead.letters",
    "dead_letter_topic": "errors.deadletterqueue.topic.name",
    "deduplicate_ms": "postroad.deduplicate.ms",
    "max_locks": "postroad.max.record.locks",
    "partition_max_locks": "share.partition.max.record.locks",
    "member_max_locks": "postroad.member.max.record.locks",
}
# They belong to other parts of the gateway, which check what is written there, or hold secrets.
WITHHELD: Final = frozenset(
    {
        "postroad.topics",
        "postroad.sqs",
        "postroad.webhook",
        "postroad.redrives",
        "postroad.redrives.cancel",
    }
)

BackoffMs = Annotated[int, Meta(ge=0, le=DAY_MS)]
Locks = Annotated[int, Meta(ge=1, le=1_000_000)]


class Promises(Struct, forbid_unknown_fields=True):
    """All may be left out."""

    start: Annotated[
        str | None,
        Meta(
            description="Where to begin on partitions that are new to it: latest, earliest, "
            "by_duration:PT2H (so long before now), at:1735689600000 (milliseconds since 1970)."
        ),
    ] = None
    lock_ms: Annotated[LockMs | None, Meta(description="How long a consumer has for a message.")] = None
    attempts: Annotated[
        Annotated[int, Meta(ge=0, le=1000)] | None,
        Meta(description="Deliveries before a message becomes a dead letter; 0: any number."),
    ] = None
    backoff_ms: Annotated[BackoffMs | None, Meta(description="The wait after a failed delivery.")] = None
    backoff_factor: Annotated[
        Annotated[float, Meta(ge=1, le=100)] | None,
        Meta(description="The wait grows by this factor."),
    ] = None
    backoff_max_ms: Annotated[BackoffMs | None, Meta(description="The longest wait.")] = None
    backoff_jitter: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None, Meta(description="The part of the wait that is random.")
    ] = None
    order: Annotated[
        Literal["none", "key", "partition"] | None,
        Meta(description="key: messages of one key one after the other. partition: one at a time."),
    ] = None
    fair_by: Annotated[
        Annotated[str, Meta(max_length=249)] | None,
        Meta(description="The header that names the tenant; empty: no tenants."),
    ] = None
    delivery: Literal["at-least-once", "at-most-once"] | None = None
    dead_letters: Annotated[bool | None, Meta(description="Keep what is given up as dead letters.")] = None
    dead_letter_topic: Annotated[
        Annotated[str, Meta(pattern="^[a-zA-Z0-9._-]{0,249}$")] | None,
        Meta(description="The dead-letter topic; empty: the subscription's name with .dead after it."),
    ] = None
    deduplicate_ms: Annotated[
        Annotated[int, Meta(ge=0, le=3_600_000)] | None,
        Meta(description="A message is left out if its postroad-dedup-id header was seen within this time."),
    ] = None
    max_locks: Annotated[
        Annotated[int, Meta(ge=1, le=10_000_000)] | None,
        Meta(description="Messages in flight in total."),
    ] = None
    partition_max_locks: Annotated[Locks | None, Meta(description="Messages in flight of a partition.")] = (
        None
    )
    member_max_locks: Annotated[Locks | None, Meta(description="Messages in flight at one consumer.")] = None


def configs_of(given: Struct, raw: Mapping[str, str | None]) -> dict[str, str | None]:
    """The configs that the fields and `raw` set; null in `raw` is back to the default."""
    found: dict[str, str | None] = {
        config: _text(value)
        for name, config in CONFIGS.items()
        if (value := getattr(given, name)) is not None
    }
    for config in raw:
        if config in WITHHELD:
            raise Refused(problems.REFUSED, f"{config} can't be set here.")
        if config in found:
            raise Refused(problems.REFUSED, f"{config} is given both as a field and as a config.")
    return found | dict(raw)


def promises_of(config: Mapping[str, str]) -> dict[str, Any]:
    """The fields, from what holds for a subscription. A value that a later Postroad may have is left out."""
    found: dict[str, Any] = {}
    for name, key in CONFIGS.items():
        text = config.get(key)
        if text is None:
            continue
        try:
            found[name] = getattr(convert({name: text}, Promises, strict=False), name)
        except ValidationError:
            continue
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
