"""Which configs topics and subscriptions have, what they mean and which values they take."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from postroad.config.catalogue import catalogue
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.promises import WITHHELD
from postroad.gateway.security.rights import PUBLIC


class ConfigsQuery(Struct, forbid_unknown_fields=True):
    of: Annotated[Literal["topic", "group"] | None, Meta(description="Only those; by default both.")] = None


class ConfigDetails(Struct):
    """`default` holds where neither the topic or group nor the node's setting `default_from` says otherwise.
    `minimum`, `maximum` and `choices` are what `range` says, for forms."""

    of: Annotated[str, Meta(description="topic, or group: a subscription.")]
    name: str
    type: Annotated[str, Meta(description="boolean, string, int, short, long, double or list.")]
    default: str
    default_from: str
    meaning: str
    has_effect: Annotated[bool, Meta(description="False: known to Kafka's tools, and accepted.")]
    range: Annotated[
        str, Meta(description="Which values are right, in words; empty: it is checked when set.")
    ]
    minimum: float | None
    maximum: float | None
    choices: list[str]


class ConfigList(Struct):
    configs: list[ConfigDetails]


@endpoint("GET", "/v1/configs", "List the configs that topics and subscriptions have.", PUBLIC)
async def list_configs(call: Call[Nothing, ConfigsQuery]) -> ConfigList:
    """The same for all; what holds for one topic or subscription it says itself."""
    return ConfigList(
        [
            ConfigDetails(
                each.of, each.name, each.type, each.default, each.default_from, each.meaning, each.has_effect,
                each.range, each.low, each.high, list(each.choices),
            )
            for each in catalogue()
            if call.query.of in (None, each.of) and each.name not in WITHHELD
        ]
    )  # fmt: skip
