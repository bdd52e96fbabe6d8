"""Figures of nodes, read from their pages of metrics and summed up by what people look at.

A partition stands on the page of every node that has a replica of it: what concerns its messages is taken
from the one that is furthest. Of subscriptions and groups only the leader tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

Values = dict[str, float]
"""By measure, as `ring.SeriesKey` has it."""

_WANTED: Final = re.compile(
    r"^postroad_("
    r"partition_end_offset|partition_start_offset|partition_size_bytes|"
    r"subscription_(?:lag_messages|oldest_seconds|lag_seconds|in_flight|ready|delayed|waiting|dying)|"
    r"subscription_(?:delivered|accepted|dead|expired)_total|"
    r"group_lag_messages|group_lag_seconds|"
    r"node_(?:cpu_seconds_total|memory_bytes|disk_free_bytes|disk_bytes|connections)|"
    r"partitions_(?:offline|under_replicated|below_minimum|leaderless)"
    r")(?:\{(.*)\})? (\S+)$",
    re.MULTILINE,
)
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
_ESCAPE: Final = re.compile(r'\\[\\"n]')
OLDEST: Final = frozenset({"oldest_seconds", "lag_seconds"})  # the worst partition's, not the sum


class Reading(NamedTuple):
    """Figures by name. Counters are as they stand; `Sampler` makes rates of them."""

    topics: dict[str, Values]
    subscriptions: dict[str, Values]
    groups: dict[str, Values]
    nodes: dict[str, Values]
    readers: dict[str, set[tuple[str, str]]]  # by topic: `subscription` or `group`, and its name


def read(pages: Mapping[int, str]) -> Reading:
    """`pages`: by node."""
    reading = Reading({}, {}, {}, {}, {})
    partitions: dict[tuple[str, str, str], float] = {}
    for node, page in pages.items():
        for name, given, value in _samples(page):
            family, _, measure = name.partition("_")
            if family == "partition":
                key = measure, given.get("topic", ""), given.get("partition", "")
                partitions[key] = max(partitions.get(key, 0.0), value)
            elif family == "subscription":
                _note_reader(reading, family, given)
                measure = measure.removesuffix("_messages").removesuffix("_total")
                _put(reading.subscriptions, given.get("subscription", ""), measure, value)
            elif family == "group":
                _note_reader(reading, family, given)
                _put(reading.groups, given.get("group", ""), measure.removesuffix("_messages"), value)
            else:
                _put(reading.nodes, str(node), measure if family == "node" else name, value)
    for (measure, topic, _), value in partitions.items():
        values = reading.topics.setdefault(topic, {})
        values[measure] = values.get(measure, 0.0) + value
        values["partitions"] = values.get("partitions", 0.0) + (measure == "end_offset")
    return reading


def _note_reader(reading: Reading, kind: str, given: Mapping[str, str]) -> None:
    if "topic" in given:
        reading.readers.setdefault(given["topic"], set()).add((kind, given[kind]))


def _put(named: dict[str, Values], name: str, measure: str, value: float) -> None:
    values = named.setdefault(name, {})
    before = values.get(measure, 0.0)
    values[measure] = max(before, value) if measure in OLDEST else before + value


def _samples(page: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for found in _WANTED.finditer(page):  # step by step: other threads go on while a long page is read
        name, given, value = found.groups(default="")
        labels = {
            key: _ESCAPE.sub(lambda escaped: _ESCAPED[escaped[0]], text) if "\\" in text else text
            for key, text in _LABEL.findall(given)
        }
        yield name, labels, float(value)
