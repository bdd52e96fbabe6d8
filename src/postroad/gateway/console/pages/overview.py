"""The first page: how much comes and goes, and what to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from postroad import __version__
from postroad.errors import PostroadError
from postroad.gateway.console import widgets, words
from postroad.gateway.console.charts import chart
from postroad.gateway.console.page import View, page
from postroad.gateway.console.visit import Visit
from postroad.gateway.history.sampler import CLUSTER
from postroad.gateway.rest import history, webhooks
from postroad.gateway.rest.history import Figures
from postroad.gateway.rest.problems import Refused
from postroad.gateway.security.rights import DESCRIBE, DESCRIBE_CONFIGS
from postroad.gateway.webhooks.supervisor import SUPERVISOR
from postroad.markup import Html, Node, tag

NAMES_MAX: Final = 1000
HOOKS_MAX: Final = 50  # each is asked for by itself
TREND_SLOTS: Final = 60  # five minutes
FULL_SOON_S: Final = 24 * 3600
NEARLY_FULL: Final = 0.1
STUCK_S: Final = 600.0
MEASURES: Final = {"in": "in", "delivered_rate": "delivered", "accepted_rate": "done"}
COLUMNS: Final = ("How bad", "What", "What to do")


class Finding(NamedTuple):
    """Something to look at, and where its remedy is."""

    key: str
    kind: str
    what: Node
    remedy: Node


@page("/console", "overview")
async def overview_page(visit: Visit) -> View:
    subscriptions = await _figures(visit, "subscription")
    groups = await _figures(visit, "group")
    nodes = await _figures(visit, "node")
    findings = [
        *_of_nodes(visit, nodes),
        *_of_subscriptions(visit, subscriptions),
        *_of_groups(visit, groups),
        *await _of_hooks(visit, subscriptions),
    ]
    rows = [(each.key, [widgets.badge(each.kind, each.kind), each.what, each.remedy]) for each in findings]
    return View(
        "Overview",
        [
            _sums(visit, nodes),
            widgets.section(
                "Things to look at",
                widgets.table(
                    visit, "findings", COLUMNS, rows, caption="Things to look at",
                    empty="Nothing: as far as can be seen all is well.",
                ),
            ),
            chart("cluster", CLUSTER, MEASURES, "Messages, a second"),
            tag("p", f"Postroad {__version__}. ", tag("a", "REST reference", href="/docs"), class_="soft"),
        ],
    )  # fmt: skip


async def _figures(visit: Visit, kind: str) -> list[Figures]:
    """Those of the first names, which is all of them unless there are very many."""
    found = await visit.call(history.list_figures, {"of": kind, "limit": NAMES_MAX})
    figures: list[Figures] = found.figures
    return figures


# --- how much comes and goes


def _sums(visit: Visit, nodes: list[Figures]) -> Html:
    sums = (
        visit.gateway.history.latest["cluster"].get(CLUSTER, {}) if visit.access.may_cluster(DESCRIBE) else {}
    )
    free = [each.values["disk_free_bytes"] for each in nodes if "disk_free_bytes" in each.values]
    return widgets.figures(
        widgets.figure(visit, "in", "In, a second", words.rate(sums.get("in"))),
        widgets.figure(visit, "out", "To consumers, a second", words.rate(sums.get("delivered_rate"))),
        widgets.figure(visit, "done", "Done, a second", words.rate(sums.get("accepted_rate"))),
        widgets.figure(visit, "lag", "Not done", words.count(sums.get("lag")), "in all subscriptions"),
        widgets.figure(visit, "stored", "Stored", words.size(sums.get("size_bytes"))),
        widgets.figure(
            visit, "disk", "Disk, free", words.size(min(free) if free else None), _when_full(visit)
        ),
    )


def _when_full(visit: Visit) -> str | None:
    names = visit.gateway.history.latest["node"]
    times = [left for name in names if (left := _full_in_s(visit, name)) is not None]
    seconds = min(times, default=None)
    return None if seconds is None or seconds > FULL_SOON_S else f"full in {words.span(seconds)}"


def _full_in_s(visit: Visit, node: str) -> float | None:
    """As it went during the last minutes; None: it is not getting fuller."""
    recent = visit.recent("node", node, "disk_free_bytes", TREND_SLOTS)
    known = [value for value in recent if value is not None]
    if len(known) < TREND_SLOTS // 2 or known[-1] >= known[0]:
        return None
    return known[-1] / ((known[0] - known[-1]) / (5.0 * (len(known) - 1)))


# --- what to look at


def _of_nodes(visit: Visit, nodes: list[Figures]) -> Iterator[Finding]:
    wrong = {
        "partitions_offline": ("bad", "partitions are offline", "See the nodes' logs."),
        "partitions_leaderless": ("bad", "partitions have no leader", "Start the nodes that have them."),
        "partitions_below_minimum": ("bad", "partitions refuse acks=all", "Start the nodes that are away."),
        "partitions_under_replicated": ("warn", "partitions lack replicas", "See postroad cluster status."),
    }
    for measure, (kind, text, remedy) in wrong.items():
        count = sum(each.values.get(measure, 0) for each in nodes)
        if count:
            yield Finding(measure, kind, f"{words.count(count)} {text}", remedy)
    for each in nodes:
        free, size = each.values.get("disk_free_bytes"), each.values.get("disk_bytes")
        left_s = _full_in_s(visit, each.name)
        if free is None or not size:
            continue
        is_full = free < NEARLY_FULL * size
        if is_full or (left_s is not None and left_s < FULL_SOON_S):
            soon = f", full in {words.span(left_s)} as it goes" if left_s is not None else ""
            text = f"The disk of node {each.name} has {words.size(free)} left{soon}"
            advice = [widgets.link("Keep less", "topics"), " (retention.ms), or add room."]
            yield Finding(f"disk-{each.name}", "bad" if is_full else "warn", text, advice)


def _of_subscriptions(visit: Visit, found: list[Figures]) -> Iterator[Finding]:
    for each in found:
        name, values = each.name, each.values
        link = widgets.link(name, "subscriptions", name)
        if values.get("dead_rate"):
            letters = widgets.link("See why", "subscriptions", name, "dead-letters")
            yield Finding(f"dead-{name}", "warn", ["New dead letters in ", link], letters)
        lag = values.get("lag", 0)
        if lag and not values.get("delivered_rate") and not values.get("in_flight") and _waits(values):
            what: Node = [words.count(lag), " messages wait in ", link, ", and nobody asks for them"]
            yield Finding(f"idle-{name}", "warn", what, "Start a consumer, or delete the subscription.")
        elif _rises(visit, "subscription", name):
            what = [link, " falls behind: ", words.count(lag), " messages are not done"]
            yield Finding(f"lag-{name}", "warn", what, "Start more consumers.")
        held = values.get("in_flight", 0)
        if held and not values.get("accepted_rate") and values.get("oldest_seconds", 0) > STUCK_S:
            what = [words.count(held), " messages are held in ", link, " and none gets done"]
            remedy = widgets.link("See who holds them", "subscriptions", name)
            yield Finding(f"stuck-{name}", "warn", what, remedy)


def _waits(values: dict[str, float]) -> bool:
    return values.get("lag_seconds", 0) > STUCK_S


def _of_groups(visit: Visit, found: list[Figures]) -> Iterator[Finding]:
    for each in found:
        if _rises(visit, "group", each.name):
            what = ["The group ", widgets.link(each.name, "groups", each.name), " falls behind"]
            yield Finding(f"group-{each.name}", "warn", what, "Start more consumers.")


def _rises(visit: Visit, kind: str, name: str) -> bool:
    """All of the last minutes through, and by more than a little."""
    known = [value for value in visit.recent(kind, name, "lag", TREND_SLOTS) if value is not None]
    if len(known) < TREND_SLOTS // 2 or known[-1] < 100:
        return False
    thirds = [known[: len(known) // 3], known[len(known) // 3 : -len(known) // 3], known[-len(known) // 3 :]]
    first, second, third = (sum(part) / len(part) for part in thirds)
    return third > second * 1.1 > first * 1.21


async def _of_hooks(visit: Visit, found: list[Figures]) -> list[Finding]:
    findings: list[Finding] = []
    supervisor = visit.request.app.get(SUPERVISOR)
    configured = supervisor.subscriptions if supervisor is not None else frozenset()
    for name in [each.name for each in found if each.name in configured][:HOOKS_MAX]:
        if not visit.may_group(name, DESCRIBE_CONFIGS):
            continue
        try:
            hook: Any = await visit.call(webhooks.get_webhook, subscription=name)
        except (Refused, PostroadError):
            continue
        is_failing = hook.health is not None and hook.health.state != "closed"
        if hook.enabled and (not hook.verified or is_failing):
            why = hook.note or (hook.health.last_error if hook.health is not None else "")
            what = ["The web hook of ", widgets.link(name, "subscriptions", name), f" fails: {why}"]
            remedy = widgets.link("See its deliveries", "subscriptions", name, "webhook")
            findings.append(Finding(f"hook-{name}", "bad", what, remedy))
    return findings
