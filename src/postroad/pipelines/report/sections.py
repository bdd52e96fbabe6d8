"""The parts of the page, each from its tables. A part with nothing to show says why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from postroad.markup import Html, Node, tag
from postroad.pipelines.report import latency, words
from postroad.pipelines.report.charts import HALF_SIZES, Column, columns_chart, time_labels
from postroad.pipelines.report.findings import is_hot, is_skewed
from postroad.pipelines.report.measured import Measured, Row, Story, summed, total_of
from postroad.pipelines.report.timeline import Timeline, timeline

PARTITIONS_MAX: Final = 64  # of a topic, that are drawn; the fullest if there are more
REASONS_MAX: Final = 50  # rows of dead letters; the others are counted
DELIVERIES_MAX: Final = 12  # columns; more deliveries are drawn together


def section(title: str, *content: Node) -> Html:
    return tag("section", tag("h2", title), *content)


def table(heads: Sequence[tuple[str, str]], rows: Iterable[Sequence[Node]]) -> Html:
    """`heads` are (title, class): the class is that of the whole column."""
    body = [
        tag("tr", [tag("td", cell, class_=kind or None) for cell, (_, kind) in zip(row, heads, strict=True)])
        for row in rows
    ]
    head = tag("tr", [tag("th", title, class_=kind or None, scope="col") for title, kind in heads])
    return tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="scroll")


def bar(part: float, whole: float, *, is_hot: bool = False) -> Html:
    width = 100 * part / whole if whole else 0
    filled = tag("i", style=f"width:{width:.1f}%") if part else None
    return tag("span", filled, class_="bar hot" if is_hot else "bar", aria_hidden="true")


# --- traffic ---------------------------------------------------------------------------------------


def traffic(measured: Measured) -> Html | None:
    drawn = timeline(measured.minutes.to_pylist())
    if drawn is None:
        return None
    mean = "" if drawn.step_min == 1 else f", mean of {words.duration(drawn.step_min * 60_000)}"
    return section(
        "Traffic",
        tag(
            "figure",
            tag("figcaption", tag("b", "Messages per minute"), f"{mean}, by time of message (UTC)"),
            _over_time(drawn, "messages"),
        ),
        tag(
            "figure",
            tag(
                "figcaption", tag("b", "Bytes per minute"), f"{mean}: keys, values and headers, uncompressed"
            ),
            _over_time(drawn, "bytes"),
        ),
        _legend([series.name for series in drawn.series]) if len(drawn.series) > 1 else None,
        tag("p", f"{_are(drawn.undrawn)} not drawn: their times lie far from all others.", class_="faint")
        if drawn.undrawn
        else None,
    )


def _are(messages: int) -> str:
    return f"{words.some(messages, 'message')} {'is' if messages == 1 else 'are'}"


def _over_time(drawn: Timeline, what: str) -> Html:
    starts = drawn.starts()
    labels = time_labels(starts, drawn.step_min)
    show = words.size if what == "bytes" else words.short
    columns = []
    for topic_partition, (at, label) in enumerate(zip(starts, labels, strict=True)):
        parts = [getattr(series, what)[topic_partition] for series in drawn.series]
        exact = words.size(sum(parts)) if what == "bytes" else words.count(sum(parts))
        columns.append(Column(label, parts, f"{words.moment(at)[:16]}: {exact} per minute"))
    describe = f"{what.capitalize()} per minute over time"
    return columns_chart(columns, describe, show, base=1024 if what == "bytes" else 10, labels=drawn.labels())


def _legend(names: Sequence[str]) -> Html:
    return tag(
        "ul",
        [
            tag(
                "li",
                tag("svg", tag("rect", width=10, height=10, rx=2, class_=f"s{n}"), viewBox="0 0 10 10"),
                name,
            )
            for n, name in enumerate(names)
        ],
        class_="legend",
    )


def topics(measured: Measured) -> Html:
    heads = [
        ("Topic", ""),
        *(("Messages", "number"), ("Data", "number"), ("Keys, about", "number spare")),
        *(("Without key", "number spare"), ("Tombstones", "number spare")),
    ]
    rows = [
        [
            row["topic"],
            words.count(row["messages"]),
            words.size(row["bytes"]),
            words.count(row["keys"]),
            words.percent(row["without_key"], row["messages"]),
            words.count(row["tombstones"]),
        ]
        for row in measured.by_topic()
    ]
    return section("Topics", table(heads, rows))


# --- sizes and latency -------------------------------------------------------------------------------


def sizes(measured: Measured) -> Html:
    sums = {
        bottom: messages for (bottom,), messages in summed(measured.sizes.to_pylist(), "from_bytes").items()
    }
    heads = [("Topic", ""), *((name, "number") for name in ("p50", "p95", "p99", "Largest"))]
    rows = [
        [row["topic"], *(words.size(row[f"{name}_bytes"]) for name in ("p50", "p95", "p99", "max"))]
        for row in measured.by_topic()
    ]
    return section(
        "Message sizes",
        tag(
            "div",
            tag(
                "figure",
                tag(
                    "figcaption", tag("b", "Messages by size"), ": each column up to the double of its label"
                ),
                _doubling(sums, "Messages by size", words.size),
            ),
            tag(
                "figure",
                tag("figcaption", tag("b", "Key, value and headers"), ", uncompressed"),
                table(heads, rows),
            ),
            class_="pair",
        ),
    )


def _doubling(sums: dict[int, int], describe: str, show: Callable[[float], str]) -> Html:
    """Columns for powers of two, the empty ones between them, too."""
    columns = []
    bottom = min(sums)
    while bottom <= max(sums):
        messages = sums.get(bottom, 0)
        least = 0 if bottom == 1 else bottom
        title = f"{show(least)} to {show(bottom * 2)}: {words.some(messages, 'message')}"
        columns.append(Column(show(least), [messages], title))
        bottom *= 2
    return columns_chart(columns, describe, words.short, HALF_SIZES)


def latencies(measured: Measured) -> Html:
    rows = measured.latency.to_pylist()
    known = [row for step in latency.STEPS for row in rows if row["step"] == step and row["messages"]]
    not_known = tag(
        "p",
        "Only what is written down can be told: messages with a header that says when they were created "
        "(ce_time of CloudEvents, or one you name with --time-header), and dead letters. When a message was "
        "delivered that somebody accepted is written down nowhere.",
        class_="faint",
    )
    if not known:
        return section("Latency", tag("p", "Not known for any of these messages."), not_known)
    heads = [
        *(("Step", ""), ("Topic", ""), ("Messages", "number spare")),
        *(("p50", "number"), ("p95", "number spare"), ("p99", "number"), ("Longest", "number")),
    ]
    cells = [
        [
            row["step"] + (" (dead letters)" if row["step"] in latency.OF_LETTERS else ""),
            words.name(row["topic"]),
            words.count(row["messages"]),
            *(words.duration(row[f"{name}_ms"]) for name in ("p50", "p95", "p99", "max")),
        ]
        for row in known
    ]
    return section("Latency", _latency_charts(measured), table(heads, cells), not_known)


def _latency_charts(measured: Measured) -> Html:
    rows = measured.latency_histogram.to_pylist()
    figures = []
    for step, about in _DRAWN.items():
        sums = {
            low: n for (low,), n in summed((row for row in rows if row["step"] == step), "from_ms").items()
        }
        if sums:
            chart = _doubling(sums, f"Messages by time {step}", words.rough)
            figures.append(tag("figure", tag("figcaption", tag("b", step.capitalize()), about), chart))
    return tag("div", figures, class_="pair")


_DRAWN: Final = {
    latency.STORED: ": end to end, up to the broker",
    latency.PUBLISHED: ": until the producer sent it",
    latency.DELIVERED: ": time in the queue, of dead letters",
}

# --- readers -----------------------------------------------------------------------------------------


def lag(story: Story) -> Html:
    title = "Lag of consumers"
    if story.unknown:
        return section(title, tag("p", f"Not known: {story.unknown}."))
    found = story.measured.behind()
    if not found:
        return section(title, tag("p", "No consumer group and no subscription reads these topics."))
    most = max(each.messages for each in found)
    heads = [
        *(("Consumer", ""), ("Kind", "spare"), ("Topic", ""), ("Behind", "number"), ("", "share spare")),
        ("Oldest waits", "number"),
    ]
    rows = [
        [
            words.name(each.name),
            each.kind,
            each.topic,
            words.count(each.messages),
            bar(each.messages, most),
            words.duration(None if each.seconds is None else each.seconds * 1000),
        ]
        for each in found
    ]
    note = "When the report was made; messages that are not handled yet, whatever their time."
    return section(title, tag("p", note, class_="faint"), table(heads, rows))


def dead_letters(story: Story) -> Html:
    measured = story.measured
    rows = sorted(measured.reasons.to_pylist(), key=lambda row: -row["messages"])
    if not rows:
        looked_at = ", ".join(story.dead_letter_topics)
        if looked_at:
            return section("Dead letters", tag("p", f"None of these topics in {looked_at}."))
        none = "None is known: no topic with dead letters of these topics was looked at."
        return section("Dead letters", tag("p", none))
    dead = total_of(rows)
    heads = [
        *(("Subscription", ""), ("Topic", ""), ("Reason", ""), ("Messages", "number"), ("", "share spare")),
        ("Last (UTC)", "spare"),
    ]
    cells = [
        [
            words.name(row["subscription"]),
            words.name(row["topic"]),
            words.name(row["reason"]),
            words.count(row["messages"]),
            bar(row["messages"], dead),
            words.moment(row["last"]),
        ]
        for row in rows[:REASONS_MAX]
    ]
    if others := rows[REASONS_MAX:]:
        last = words.moment(max(row["last"] for row in others))
        left = total_of(others)
        name = f"{words.count(len(others))} others"
        cells.append([name, "", "", words.count(left), bar(left, dead), last])
    return section(
        "Dead letters",
        table(heads, cells),
        tag(
            "figure",
            tag("figcaption", tag("b", "Delivery attempts"), " before a message was given up"),
            _attempts(measured),
            class_="half",
        ),
    )


def _attempts(measured: Measured) -> Html:
    sums = summed(measured.deliveries.to_pylist(), "deliveries")
    counts: dict[int, int] = {}
    for (tries,), messages in sums.items():
        drawn = max(0, min(tries or 0, DELIVERIES_MAX))
        counts[drawn] = counts.get(drawn, 0) + messages
    columns = []
    for tries in range(min(counts), max(counts) + 1):
        label = f"{tries} or more" if tries == DELIVERIES_MAX else str(tries)
        messages = counts.get(tries, 0)
        columns.append(Column(label, [messages], f"{label} deliveries: {words.some(messages, 'message')}"))
    return columns_chart(columns, "Dead letters by delivery attempts", words.short, HALF_SIZES)


# --- keys and partitions -----------------------------------------------------------------------------


def keys(measured: Measured) -> Html:
    rows = measured.keys.to_pylist()
    if not rows:
        return section("Hottest keys", tag("p", "No message has a key."))
    of_topic = {row["topic"]: row["messages"] for row in measured.by_topic()}
    most = max(row["messages"] for row in rows)
    heads = [
        *(("Key", "key"), ("Topic", ""), ("Messages", "number"), ("", "share spare")),
        *(("Of its topic", "number"), ("Data", "number spare")),
    ]
    cells = [
        [
            words.key(row["key"]),
            row["topic"],
            words.count(row["messages"]),
            bar(row["messages"], most, is_hot=is_hot(row["messages"], of_topic[row["topic"]])),
            words.percent(row["messages"], of_topic[row["topic"]]),
            words.size(row["bytes"]),
        ]
        for row in rows
    ]
    return section("Hottest keys", table(heads, cells))


def partitions(measured: Measured) -> Html | None:
    rows = measured.partitions.to_pylist()
    parts = [
        _partitions_of(topic, [row for row in rows if row["topic"] == topic])
        for (topic,) in summed(rows, "topic")
    ]
    about = tag(
        "p", "The fair share of a partition is the mean of those that got any messages.", class_="faint"
    )
    return section("Balance of partitions", about, parts) if parts else None


def _partitions_of(topic: str, rows: Sequence[Row]) -> list[Html]:
    fair, most = total_of(rows) / len(rows), max(row["messages"] for row in rows)
    shown = sorted(rows, key=lambda row: -row["messages"])[:PARTITIONS_MAX]
    heads = [
        *(("Partition", "number"), ("Messages", "number"), ("", "share")),
        *(("To fair share", "number"), ("Data", "number spare")),
    ]
    cells = []
    for row in sorted(shown, key=lambda row: row["partition"]):
        is_full = is_skewed(row["messages"], fair)
        ratio = words.times(row["messages"] / fair)
        cells.append(
            [
                str(row["partition"]),
                words.count(row["messages"]),
                bar(row["messages"], most, is_hot=is_full),
                tag("span", ratio, class_="hot-text") if is_full else ratio,
                words.size(row["bytes"]),
            ]
        )
    left = f" (the fullest {len(shown)} of {len(rows)})" if len(shown) < len(rows) else ""
    return [tag("h3", topic + left), table(heads, cells)]
