"""What a mirror tells of itself: a page for Prometheus, and the same as plain facts."""

from __future__ import annotations

import asyncio
from typing import Any

from postroad.metrics.page import COUNTER, GAUGE, Page, labels
from postroad.mirrors.mirror import Mirror
from postroad.mirrors.watched import Watched


def lag_seconds(each: Watched, now: float, now_ms: int, began: float) -> float:
    """How long ago all was mirrored that the source had: what is younger may be missing at the target.

    Before the first such moment: as old as the first message that waits, and at least as this run.
    """
    if each.is_ready:
        each.lag.reach(each.partition.at)
    if each.lag.caught_up_at is not None:
        return max(0.0, now - each.lag.caught_up_at)
    pending = each.partition.pending
    oldest_ms = pending[0].records[0].timestamp if pending and pending[0].records else now_ms
    return max(now - began, (now_ms - oldest_ms) / 1000)


def page(mirror: Mirror, now_ms: int, began: float) -> str:
    now = asyncio.get_running_loop().time()
    out = Page()
    by_topic: dict[str, list[Watched]] = {}
    for at, each in mirror.watched.items():
        by_topic.setdefault(at.topic, []).append(each)
    lag = out.family(
        "postroad_mirror_lag_seconds", GAUGE, "Age of the last moment when all was mirrored: the RPO."
    )
    behind = out.family(
        "postroad_mirror_lag_messages", GAUGE, "Offsets of the source that are not mirrored yet."
    )
    written = out.family("postroad_mirror_messages_total", COUNTER, "Messages that were copied.")
    skipped = out.family(
        "postroad_mirror_returned_messages_total",
        COUNTER,
        "Messages that came from the target, and stay here.",
    )
    halted = out.family("postroad_mirror_halted_partitions", GAUGE, "Partitions that wait for a decision.")
    for topic, those in sorted(by_topic.items()):
        given = labels(topic=topic)
        lag.add(max(lag_seconds(each, now, now_ms, began) for each in those), given)
        behind.add(sum(max(0, each.source_end - each.partition.at) for each in those), given)
        written.add(sum(each.partition.written for each in those), given)
        skipped.add(sum(each.partition.skipped for each in those), given)
        halted.add(max(sum(bool(each.halted) for each in those), topic in mirror.halted_topics), given)
    for topic in sorted(mirror.halted_topics.keys() - by_topic.keys()):
        halted.add(1, labels(topic=topic))
    _carried(mirror, out, now, began)
    return out.text()


def _carried(mirror: Mirror, out: Page, now: float, began: float) -> None:
    carriage = mirror.carriage
    age = out.family(
        "postroad_mirror_positions_age_seconds", GAUGE, "Since positions of groups were last carried over."
    )
    age.add(now - (began if carriage.at is None else carriage.at))
    again = out.family(
        "postroad_mirror_group_again_messages",
        GAUGE,
        "Messages that the group has read and would get again at the target, at most.",
    )
    for kind, found in (("group", carriage.groups), ("subscription", carriage.subscriptions)):
        for name, carried in sorted(found.items()):
            again.add(carried.again, labels(kind=kind, group=name))
    if mirror.settings.rules:
        rules = out.family(
            "postroad_mirror_access_rules", GAUGE, "Access rules at the target that came from the source."
        )
        rules.add(carriage.rules.brought)


def facts(mirror: Mirror) -> dict[str, Any]:
    """What this run did, as JSON has it."""
    topics: dict[str, dict[str, int]] = {}
    for at, each in mirror.watched.items():
        of = topics.setdefault(at.topic, {"copied": 0, "behind": 0})
        of["copied"] += each.partition.written
        of["behind"] += max(0, each.source_end - each.partition.at)
    return {
        "topics": topics,
        "groups": {name: carried._asdict() for name, carried in mirror.carriage.groups.items()},
        "subscriptions": {name: each._asdict() for name, each in mirror.carriage.subscriptions.items()},
        "access_rules": mirror.carriage.rules._asdict() if mirror.settings.rules else None,
    }
