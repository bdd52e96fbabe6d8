"""What was sampled over REST: how figures were during the last hour or day, and how they are now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from postroad.gateway.history.ring import COARSE_SLOTS, COARSE_STEP_S, FINE_SLOTS, FINE_STEP_S, SeriesKey
from postroad.gateway.history.sampler import CLUSTER
from postroad.gateway.rest import paging
from postroad.gateway.rest.endpoint import Call, Nothing, endpoint
from postroad.gateway.rest.paging import Page
from postroad.gateway.rest.problems import NOT_FOUND, Refused
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import DESCRIBE, Rights

Kind = Literal["cluster", "node", "topic", "subscription", "group"]
SEEN: Final = Rights(by_handler="Describe on the topic, the group or the cluster")


class HistoryQuery(Struct, forbid_unknown_fields=True):
    of: Annotated[Kind, Meta(description="What the series are of.")]
    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=249)],
        Meta(description="Which one: a topic's, a subscription's or a group's name, or a node's number."),
    ] = CLUSTER
    last: Annotated[
        Literal["1h", "24h"],
        Meta(description="1h: steps of 5 seconds. 24h: the means of whole minutes."),
    ] = "1h"


class HistoryAnswer(Struct):
    """`end_ms` is the time of the newest value; those before it are `step_ms` apart. Where nothing was
    sampled there is null. Rates are a second's."""

    of: Kind
    name: str
    step_ms: int
    end_ms: int
    series: Annotated[dict[str, list[float | None]], Meta(description="Values by measure.")]


class FiguresQuery(Page, forbid_unknown_fields=True):
    of: Annotated[Kind, Meta(description="What the figures are of.")] = "topic"


class TopicReader(Struct):
    kind: Literal["subscription", "group"]
    name: str


class Figures(Struct, omit_defaults=True):
    name: str
    values: Annotated[dict[str, float], Meta(description="By measure; rates are a second's.")]
    readers: Annotated[list[TopicReader], Meta(description="Of a topic: who reads it.")] = []


class FiguresAnswer(Struct):
    """`sampled_at_ms` is 0 while nothing has been sampled."""

    of: Kind
    sampled_at_ms: int
    figures: list[Figures]
    next: str | None


@endpoint(
    "GET", "/v1/history", "Get what was sampled during the last hour or day.", SEEN, problems=(NOT_FOUND,)
)
async def get_history(call: Call[Nothing, HistoryQuery]) -> HistoryAnswer:
    """This gateway's samples, since it was started. There are 2,000 series at most."""
    asked, ring = call.query, call.gateway.history.ring
    if not may_see(call.access, asked.of, asked.name):
        _refuse(call.access, asked.of, asked.name)
    measures = ring.measures(asked.of, asked.name)
    if not measures:
        raise Refused(NOT_FOUND, f"Nothing was sampled of the {asked.of} {asked.name}.")
    keys = {measure: SeriesKey(asked.of, asked.name, measure) for measure in measures}
    if asked.last == "1h":
        fine: Mapping[str, Any] = {name: ring.fine(key, FINE_SLOTS) for name, key in keys.items()}
        return HistoryAnswer(asked.of, asked.name, FINE_STEP_S * 1000, ring.end_s * 1000, dict(fine))
    coarse: Mapping[str, Any] = {name: ring.coarse(key, COARSE_SLOTS) for name, key in keys.items()}
    end_s = ring.end_s // COARSE_STEP_S * COARSE_STEP_S - COARSE_STEP_S
    return HistoryAnswer(asked.of, asked.name, COARSE_STEP_S * 1000, end_s * 1000, dict(coarse))


@endpoint("GET", "/v1/figures", "Get the newest figures of topics, subscriptions, groups or nodes.", SEEN)
async def list_figures(call: Call[Nothing, FiguresQuery]) -> FiguresAnswer:
    """As this gateway sampled them some seconds ago, those that the caller may describe."""
    asked, history = call.query, call.gateway.history
    known = history.latest[asked.of]
    seen = [name for name in known if may_see(call.access, asked.of, name)]
    names, following = paging.cut(seen, asked)
    figures = [
        Figures(name, known[name], _readers(call, name) if asked.of == "topic" else []) for name in names
    ]
    return FiguresAnswer(asked.of, history.sampled_at_ms, figures, following)


def _readers(call: Call[Nothing, FiguresQuery], topic: str) -> list[TopicReader]:
    found = sorted(call.gateway.history.readers.get(topic, ()))
    return [
        TopicReader("group" if kind == "group" else "subscription", name)
        for kind, name in found
        if call.access.may_group(name, DESCRIBE)
    ]


def may_see(access: Access, kind: Kind, name: str) -> bool:
    """Whether the caller may know of it."""
    if kind == "topic":
        return access.may_topic(name, DESCRIBE)
    if kind in ("subscription", "group"):
        return access.may_group(name, DESCRIBE)
    return access.may_cluster(DESCRIBE)


def _refuse(access: Access, kind: Kind, name: str) -> None:
    """Raises an AuthorizationFailed of the resource."""
    if kind == "topic":
        access.check_topic(name, DESCRIBE)
    elif kind in ("subscription", "group"):
        access.check_group(name, DESCRIBE)
    else:
        access.check_cluster(DESCRIBE)
