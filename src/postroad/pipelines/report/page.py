"""One self-contained page: no script, no picture, no request to anybody. `sections` are its parts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from postroad.markup import Html, Node, tag
from postroad.pipelines.report import sections, words
from postroad.pipelines.report.findings import findings, headline, peak_minute
from postroad.pipelines.report.measured import Measured, Story

TITLE_TOPICS_MAX: Final = 3
# Even if something foreign got into the page as markup it could load and run nothing.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def page(story: Story) -> str:
    """The whole document."""
    measured = story.measured
    title = _title(story.settings.topics)
    body: list[Node] = [
        tag("header", tag("p", "Postroad report", class_="eyebrow"), tag("h1", title), _about(story)),
        tag("p", headline(measured), class_="headline"),
        _findings(measured),
        _cards(story),
        tag("main", _parts(story)),
        _footer(story),
    ]
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("title", f"{title}: Postroad report"),
        tag("style", Html(files(__package__).joinpath("page.css").read_text())),
    ]
    return "<!doctype html>\n" + tag("html", tag("head", head), tag("body", body), lang="en") + "\n"


def _parts(story: Story) -> list[Node]:
    measured = story.measured
    always = [sections.latencies(measured), sections.lag(story), sections.dead_letters(story)]
    if not measured.total()["messages"]:
        return [always]
    return [
        *(sections.traffic(measured), sections.topics(measured), sections.sizes(measured)),
        *always,
        *(sections.keys(measured), sections.partitions(measured)),
    ]


def _title(topics: Sequence[str]) -> str:
    more = len(topics) - TITLE_TOPICS_MAX
    return ", ".join(topics[:TITLE_TOPICS_MAX]) + (f" and {more} more" if more > 0 else "")


def _about(story: Story) -> Html:
    total = story.measured.total()
    settings = story.settings
    source = f"archive {settings.archive}" if settings.archive else settings.bootstrap.partition("?")[0]
    period = words.period(total["first"], total["last"]) if total["messages"] else "no messages"
    return tag("p", f"{period} · from {source} · made {words.moment(story.made_at)} UTC", class_="faint")


def _findings(measured: Measured) -> Html:
    found = findings(measured)
    if not found:
        return tag("div", tag("h2", "Nothing stands out"), class_="findings fine")
    title = "One thing to look at" if len(found) == 1 else f"{len(found)} things to look at"
    return tag("div", tag("h2", title), tag("ul", [tag("li", text) for text in found]), class_="findings")


def _cards(story: Story) -> Html:
    measured, total = story.measured, story.measured.total()
    cards = [_card("Messages", words.count(total["messages"]), f"{words.size(total['bytes'])} in all")]
    if total["messages"]:
        peak = peak_minute(measured)
        per_second = words.count(peak["messages"] / 60)
        cards += [
            _card("Busiest minute", words.count(peak["messages"]), f"{per_second} a second on average"),
            _card("Median size", words.size(total["p50_bytes"]), f"p99 {words.size(total['p99_bytes'])}"),
        ]
    dead = measured.dead_letters()
    cards += [
        _card("Furthest behind", *_furthest(story)),
        _card("Dead letters", words.count(dead), "in this time"),
    ]
    return tag("dl", cards, class_="cards")


def _furthest(story: Story) -> tuple[str, str]:
    if story.unknown:
        return "unknown", "the cluster was not reached"
    behind = [each for each in story.measured.behind() if each.messages]
    if not behind:
        return "nobody", "all messages are handled" if story.measured.behind() else "nobody reads"
    waits = words.NOTHING if behind[0].seconds is None else words.duration(behind[0].seconds * 1000)
    return waits, f"{words.name(behind[0].name)}: {words.some(behind[0].messages, 'message')}"


def _card(title: str, number: str, note: str) -> Html:
    return tag("div", tag("dt", title), tag("dd", number), tag("dd", note, class_="note"), class_="card")


def _footer(story: Story) -> Html:
    links = [
        tag(
            "li",
            tag("a", f"{name}.parquet", href=f"{name}.parquet"),
            f": {words.some(table.num_rows, 'row')}",
        )
        for name, table in story.measured.tables().items()
    ]
    about = (
        "Percentiles and numbers of keys are close estimates; everything else is counted. Times are those of "
        "messages: what producers said, unless the topic takes the broker's."
    )
    return tag("footer", tag("p", about), tag("p", "The tables, beside this page:"), tag("ul", links))
