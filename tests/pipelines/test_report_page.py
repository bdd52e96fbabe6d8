"""The page's parts on their own: words, times, scales, markup, and what counts as worth a look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest

from postroad.markup import Html, tag
from postroad.pipelines.report import words
from postroad.pipelines.report.charts import Column, columns_chart, nice_step
from postroad.pipelines.report.findings import findings
from postroad.pipelines.report.measured import Measured, Story
from postroad.pipelines.report.page import page
from postroad.pipelines.report.sections import REASONS_MAX
from postroad.pipelines.report.settings import ReportSettings
from postroad.pipelines.report.timeline import BINS_MAX, timeline

START = datetime(2026, 3, 1, 10, 0, tzinfo=UTC)
VOID = {"meta", "br"}


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"customer-7", "customer-7"),
        ("Zoë".encode(), "Zoë"),
        (b"", "(empty)"),
        (b"\xff\x00", "0xff00"),
        ("right\u202eleft".encode(), "0x7269676874e280ae6c656674"),
        (b"a" * 300, "a" * 47 + "… (300 B)"),
    ],
)
def test_keys_are_text_where_they_can_be_read_and_hex_otherwise(raw: bytes, shown: str) -> None:
    assert words.key(raw) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(0, "0 ms"), (999, "999 ms"), (1200, "1.2 s"), (200_000, "3 min 20 s"), (7_500_000, "2 h 5 min")],
)
def test_durations_have_units_that_fit(ms: int, shown: str) -> None:
    assert words.duration(ms) == shown


def test_numbers_are_grouped_and_sizes_are_short() -> None:
    assert words.count(1_234_567) == "1,234,567"
    assert (words.size(1023), words.size(1536), words.size(10 * 1024**3)) == ("1023 B", "1.5 KiB", "10 GiB")
    assert words.some(1, "message") == "1 message"
    assert words.percent(1, 100_000) == "< 0.1 %"


def test_text_becomes_markup_only_by_a_tag() -> None:
    assert tag("b", "<i>", class_='"') == '<b class="&quot;">&lt;i&gt;</b>'
    assert tag("b", Html("<i></i>")) == "<b><i></i></b>"


@pytest.mark.parametrize(("highest", "step"), [(0, 1), (3, 1), (70, 20), (399, 100), (12_000, 5000)])
def test_grid_has_round_numbers(highest: float, step: float) -> None:
    assert nice_step(highest) == step


def minute(after: int, messages: int = 1, topic: str = "t") -> dict[str, Any]:
    return {
        "topic": topic,
        "minute": START + timedelta(minutes=after),
        "messages": messages,
        "bytes": messages * 10,
    }


@pytest.mark.parametrize("last", [0, 119, 120, 10_000, 2_000_000, 4_190_000_000])
def test_any_stretch_of_time_fits_in_a_chart_and_loses_nothing(last: int) -> None:
    drawn = timeline([minute(0, 5), minute(last, 7)])
    assert drawn is not None
    assert drawn.bins <= BINS_MAX + 1
    assert sum(drawn.series[0].messages) * drawn.step_min == pytest.approx(12)


def test_few_messages_of_another_century_do_not_squeeze_the_rest() -> None:
    drawn = timeline([minute(-20_000_000, 2), *(minute(number, 1000) for number in range(10))])
    assert drawn is not None
    assert (drawn.bins, drawn.undrawn) == (10, 2)


def test_many_topics_share_a_colour() -> None:
    drawn = timeline([minute(0, number, f"t{number}") for number in range(1, 9)])
    assert drawn is not None
    assert [series.name for series in drawn.series] == ["t8", "t7", "t6", "5 other topics"]
    assert drawn.series[-1].messages == (15.0,)


def test_chart_is_drawn_for_wide_and_narrow_screens() -> None:
    drawn = columns_chart([Column("<1>", [1, 2], "one & two")], "a chart", words.short)
    assert drawn.count("<svg") == 2
    assert "&lt;1&gt;" in drawn
    assert "one &amp; two" in drawn


# --- a whole page, from tables that were made by hand ------------------------------------------------


def measured(**changed: list[dict[str, Any]]) -> Measured:
    sizes = {"p50_bytes": 100, "p95_bytes": 200, "p99_bytes": 300, "max_bytes": 400}
    counts = {"messages": 1000, "bytes": 100_000, "keys": 9, "without_key": 0, "tombstones": 0}
    span = {"first": START, "last": START + timedelta(minutes=5)}
    rows: dict[str, list[dict[str, Any]]] = {
        "topics": [{"topic": name, **counts, **span, **sizes} for name in (None, "orders")],
        "minutes": [minute(number, 200, "orders") for number in range(5)],
        "sizes": [{"topic": "orders", "from_bytes": 64, "messages": 1000}],
        "partitions": [partition(0, 500), partition(1, 500)],
        "keys": [{"topic": "orders", "key": b"k", "messages": 3, "bytes": 300}],
        **{name: [] for name in ("latency", "latency_histogram", "lag", "reasons", "deliveries")},
        **changed,
    }
    return Measured(**{name: pa.Table.from_pylist(found) for name, found in rows.items()})


def partition(number: int, messages: int) -> dict[str, Any]:
    return {"topic": "orders", "partition": number, "messages": messages, "bytes": messages * 100}


def behind(seconds: float | None, messages: int = 5) -> dict[str, Any]:
    who = {"kind": "consumer group", "name": "billing", "topic": "orders", "partition": 0}
    return {**who, "messages": messages, "seconds": seconds}


def test_nothing_stands_out_where_all_is_even() -> None:
    assert findings(measured()) == []
    assert "Nothing stands out" in drawn_page(measured())


def test_what_is_late_dead_skewed_or_hot_is_named() -> None:
    found = findings(
        measured(
            lag=[behind(90.0)],
            reasons=[dead("rejected", 2)],
            deliveries=[{"subscription": "w", "topic": "orders", "deliveries": 3, "messages": 2}],
            partitions=[partition(0, 900), partition(1, 100)],
            keys=[{"topic": "orders", "key": b"hot", "messages": 400, "bytes": 1}],
        )
    )
    assert found == [
        "Consumer group billing is 5 messages behind on orders; the oldest has waited 1 min 30 s.",
        "2 messages became dead letters; all of them for the reason “rejected”.",
        "Partition 0 of orders got 1.8× its fair share of the messages.",
        "The key hot alone is 40 % of orders.",
    ]


def test_group_that_is_hardly_behind_is_no_finding() -> None:
    assert findings(measured(lag=[behind(3.0), behind(None, 0)])) == []


def test_numbers_that_make_no_sense_are_not_drawn_to_scale() -> None:
    tries = [-3_000_000, None, 1, 2_000_000_000]
    rows = [{"subscription": "w", "topic": "orders", "deliveries": each, "messages": 1} for each in tries]
    drawn = drawn_page(measured(reasons=[dead("attempts", 4)], deliveries=rows))
    assert "0 deliveries: 2 messages" in drawn
    assert "12 or more deliveries: 1 message" in drawn
    assert len(drawn) < 100_000


def test_page_names_the_most_frequent_reasons_and_counts_the_others() -> None:
    tries = [{"subscription": "w", "topic": "orders", "deliveries": 1, "messages": 1}]
    reasons = [dead(f"reason {number}", 100 + number) for number in range(1_000)]
    drawn = drawn_page(measured(reasons=reasons, deliveries=tries))
    assert "<td>reason 999</td>" in drawn
    assert f"<td>reason {999 - REASONS_MAX}</td>" not in drawn
    assert "950 others" in drawn
    assert f">{sum(range(100, 1_050)):,}<" in drawn


def dead(reason: str, messages: int) -> dict[str, Any]:
    return {"subscription": "w", "topic": "orders", "reason": reason, "messages": messages, "last": START}


def test_every_element_of_the_page_is_closed() -> None:
    parser = Balanced()
    parser.feed(drawn_page(measured(lag=[behind(90.0)])))
    assert parser.open == []


def drawn_page(of: Measured) -> str:
    settings = ReportSettings("127.0.0.1:9092", ["orders"], "report")
    return page(Story(settings, of, "", START))


class Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """It is closed in itself."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
