"""Pages that Prometheus can read, whatever stands in the labels."""

from __future__ import annotations

import math
import re
import time

from hypothesis import example, given
from hypothesis import strategies as st

from postroad.metrics.instruments import COUNTS, OTHER, SECONDS, SERIES_MAX, Distribution, Registry
from postroad.metrics.page import COUNTER, GAUGE, Page, labels, merge

SAMPLE = re.compile(r'[a-z_]+(\{([a-z_]+="(\\\\|\\"|\\n|[^"\\\n])*",?)*\})? (-?[0-9.e+-]+|NaN|[+-]?Inf)')


def test_names_stand_together_with_their_meaning() -> None:
    page = Page(labels(node=1))
    one, two = page.family("one", COUNTER, "The first."), page.family("two", GAUGE, "The second.")
    one.add(1)
    two.add(0.5, labels(topic="t"))
    one.add(2, labels(topic="t"))
    assert page.text().splitlines() == [
        "# HELP one The first.",
        "# TYPE one counter",
        'one{node="1"} 1',
        'one{node="1",topic="t"} 2',
        "# HELP two The second.",
        "# TYPE two gauge",
        'two{node="1",topic="t"} 0.5',
    ]


def test_name_without_samples_is_left_out() -> None:
    page = Page()
    page.family("nothing", GAUGE, "Never seen.")
    assert page.text() == ""


@example("", math.nan)
@example("", math.inf)
@example("", -math.inf)
@given(st.text(), st.floats(allow_nan=True, allow_infinity=True))
def test_any_label_and_any_number_can_be_read(text: str, value: float) -> None:
    page = Page()
    page.family("name", GAUGE, "It.").add(value, labels(label=text))
    sample = page.text().split("\n")[2]
    assert SAMPLE.fullmatch(sample), sample
    written = sample[len('name{label="') : sample.rindex('"')]
    read = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), written)
    assert read == text


def test_pages_of_several_nodes_become_one() -> None:
    pages = []
    for node in (1, 2):
        page = Page(labels(node=node))
        page.family("shared", GAUGE, "On both.").add(node, labels(group="a\u2028b"))
        page.family(f"own_{node}", GAUGE, "On one.").add(node)
        pages.append(page.text())
    merged = merge(pages)
    assert merged.count("# TYPE shared") == 1
    lines = merged.split("\n")
    at = lines.index("# TYPE shared gauge")
    assert lines[at + 1 : at + 3] == [
        'shared{node="1",group="a\u2028b"} 1',
        'shared{node="2",group="a\u2028b"} 2',
    ]
    assert {"own_1", "own_2"} <= {line.split("{")[0] for line in lines}
    assert merge(["", merged]) == merged


def test_histogram_counts_what_is_at_or_below_each_bound() -> None:
    registry = Registry()
    sizes = registry.histograms("sizes", "How many.", COUNTS).of()
    for value in (0, 1, 1, 3, 4, 5000):
        sizes.note(value)
    page = Page()
    registry.write(page)
    buckets = dict(re.findall(r'sizes_bucket\{le="([^"]+)"\} (\d+)', page.text()))
    assert buckets["0"] == "1"
    assert buckets["1"] == "3"
    assert buckets["3"] == "4"
    assert buckets["7"] == "5"
    assert buckets["1023"] == "5"
    assert buckets["+Inf"] == "6"
    assert "sizes_sum 5009\nsizes_count 6\n" in page.text()


@given(st.lists(st.integers(0, 1 << 63), max_size=30))
def test_buckets_rise_and_end_with_all(values: list[int]) -> None:
    distribution = Distribution()
    for value in values:
        distribution.note(value)
    page = Page()
    distribution.write(page.family("took", "histogram", "It."), SECONDS)
    counts = [int(count) for count in re.findall(r"took_bucket\{[^}]*\} (\d+)", page.text())]
    assert counts == sorted(counts)
    assert counts[-1] == len(values)


def test_labels_that_somebody_invents_are_bounded() -> None:
    registry = Registry()
    counters = registry.counters("asked", "By whom.", "who")
    for number in range(SERIES_MAX + 500):
        counters.of(f"w{number}").add()
    assert len(counters.each()) == SERIES_MAX + 1
    assert counters.of(OTHER).value == 500


def test_thousands_of_series_are_written_in_no_time() -> None:
    page = Page(labels(node=1))
    family = page.family("postroad_partition_end_offset", COUNTER, "It.")
    began = time.process_time()
    for number in range(10_000):
        family.add(number, labels(topic=f"topic-{number}", partition=0))
    assert len(page.text()) > 500_000
    assert time.process_time() - began < 1, "usually 0.03 s"
