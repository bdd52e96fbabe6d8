"""A topic's messages: from anywhere, through a filter, some at a time, or as they are written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from postroad.gateway.console import payloads, reading, widgets, words
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.pages.message import address_of
from postroad.gateway.console.publishing import message_of, publish_dialog
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import browse, publish, topics
from postroad.gateway.rest.browse import BrowseAnswer, BrowsedMessage
from postroad.gateway.rest.problems import REFUSED, Refused
from postroad.gateway.security.rights import WRITE
from postroad.markup import Html, Node, tag

LAST, BEGINNING, OFFSET, TIME = "last", "beginning", "offset", "time"
BEGINS: Final = (
    (LAST, "the newest"),
    (BEGINNING, "the oldest"),
    (OFFSET, "an offset on"),
    (TIME, "a time on"),
)
LIMITS: Final = ("50", "100", "500", "1000")
LIMIT: Final = "100"
FOLLOWED: Final = 100
PREVIEW_BYTES: Final = 600
COLUMNS: Final = ("Time", "Partition", "Offset", "Key", "Value", "Size")
NUMBERS: Final = (1, 2, 5)
CONTINUE: Final = "at"  # where an earlier page stopped; with how much was looked at by then
FOLLOW: Final = "follow"


@page("/console/topics/{topic}/messages", "topics")
async def messages_page(visit: Visit) -> View:
    name, query = visit.path["topic"], visit.query
    details = await visit.call(topics.get_topic, topic=name)
    follows = query.get(FOLLOW) == "yes"
    problem: Node = None
    found: BrowseAnswer | None = None
    try:
        found = await visit.call(browse.browse, asked_of(query, follows), topic=name)
    except Refused as refused:
        if refused.problem.status not in (400, REFUSED.status):
            raise
        problem = tag("p", refused.problem.detail, class_="problem", role="alert")
    list_ = problem if found is None else _list(visit, found, follows)
    return View(
        f"Messages of {name}",
        [
            _tools(visit, len(details.partitions), follows),
            tag("div", tag("div", list_, class_="list"), _detail(), class_="split"),
        ],
        above=(("Topics", widgets.path("topics")), (name, widgets.path("topics", name))),
        is_live=follows,
    )


@messages_page.action("publish")
async def publish_one(visit: Visit, form: Form) -> Done:
    answer = await visit.change(publish.publish, message_of(form), topic=visit.path["topic"])
    sent = answer.messages[0]
    return Done(f"Published to partition {sent.partition}, offset {sent.offset}.")


def asked_of(query: Any, follows: bool = False) -> dict[str, Any]:
    """What to ask REST for. Raises Refused."""
    limit = query.get("limit", "")
    limit = limit if limit in LIMITS else LIMIT
    asked: dict[str, Any] = {"limit": limit, "value_bytes": PREVIEW_BYTES, "filter": query.get("filter", "")}
    if query.get("partition"):
        asked["partition"] = query["partition"]
    if follows:
        return {**asked, "limit": FOLLOWED, "from": f"-{FOLLOWED}"}
    begin, value = query.get("begin", LAST), query.get("value", "").strip()
    if query.get(CONTINUE):
        asked["from"] = query[CONTINUE]
    elif begin == BEGINNING:
        asked["from"] = "beginning"
    elif begin == OFFSET:
        asked["from"] = str(reading.whole_number(value or "0", "Offset"))
        asked.setdefault("partition", "0")
    elif begin == TIME:
        asked["from"] = _iso(reading.moment_ms(value, "Time"))
    else:
        asked["from"] = f"-{limit}"
    return asked


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat().replace("+00:00", "Z")


# --- what is shown


def _list(visit: Visit, found: BrowseAnswer, follows: bool) -> Node:
    messages = found.messages
    if follows or visit.query.get("begin", LAST) == LAST:
        messages = sorted(messages, key=lambda each: (-each.timestamp_ms, each.partition, -each.offset))
    rows = [(f"{each.partition}-{each.offset}", _row(visit, each)) for each in messages]
    empty = "No message fits the filter here." if visit.query.get("filter") else "No messages here."
    if follows:
        return widgets.table(
            visit, "messages", COLUMNS, rows, numbers=NUMBERS, caption="Messages", empty=empty
        )
    table = widgets.still_table(
        "messages", COLUMNS, rows, caption="Messages", numbers=NUMBERS, empty=empty, body_id="rows"
    )
    return [table, _progress(visit, found)]


def _row(visit: Visit, message: BrowsedMessage) -> list[Node]:
    where = address_of(message.topic, message.partition, message.offset)
    return [
        words.moment(message.timestamp_ms),
        str(message.partition),
        tag("a", str(message.offset), data_detail=True, href=where),  # `console.js` loads it beside the list
        payloads.preview(message.key) if visit.shows_payloads else words.HIDDEN,
        payloads.preview(message.value) if visit.shows_payloads else words.HIDDEN,
        words.size(message.value_bytes),
    ]  # fmt: skip


def _progress(visit: Visit, found: BrowseAnswer) -> Html:
    """How far it has looked. With a filter the next page is asked for at once, until one is full."""
    query = {key: value for key, value in visit.query.items() if key not in (CONTINUE, "scanned", "found")}
    scanned = found.scanned + _earlier(visit, "scanned")
    matched = found.found + _earlier(visit, "found")
    parts: list[Node] = []
    if query.get("filter"):
        parts.append(f"Looked at {words.plural(scanned, 'message')}, found {words.count(matched)}")
    else:
        parts.append(words.plural(matched, "message"))
    more: dict[str, object] = {}
    if found.next is not None:
        onward = {**query, CONTINUE: found.next, "scanned": scanned, "found": matched}
        where = "?" + urlencode(onward)
        here = visit.request.path + where
        looks_on = bool(query.get("filter")) and found.found < int(query.get("limit") or LIMIT)
        swap = {
            "hx-get": here, "hx-target": "#rows", "hx-select": "#rows > tr:not(.nothing)",
            "hx-swap": "beforeend ignoreTitle:true", "hx-select-oob": "#progress:outerHTML",
        }  # fmt: skip
        parts += [", at ", tag("code", found.next), ". "]
        parts.append(
            tag("a", "Continue", href=where, class_="button", rel="next", data_continue=True, **swap)
        )
        if looks_on:
            parts.append(tag("button", "Stop", type="button", data_stop=True, class_="stop"))
            more = {"data_looks_on": True}
    else:
        parts.append(": that is the end." if scanned or matched else ".")
    return tag("div", parts, id="progress", role="status", class_="progress", **more)


def _earlier(visit: Visit, name: str) -> int:
    text = visit.query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0


def _detail() -> Html:
    return tag("aside", tag("p", "Choose a message to see all of it.", class_="hint"), id="detail",
               aria_label="Message")  # fmt: skip


def _tools(visit: Visit, partitions: int, follows: bool) -> Html:
    query = visit.query
    all_partitions = [("", "all"), *((str(number), str(number)) for number in range(partitions))]
    fields = [
        _select("begin", "From", BEGINS, query.get("begin", LAST)),
        tag(
            "p", tag("label", "Offset or time", for_="value"),
            tag(
                "input", id="value", name="value", value=query.get("value", ""), size="16",
                autocomplete="off", placeholder="42, 2h, 2026-03-01",
            ),
            class_="field",
        ),
        _select("partition", "Partition", all_partitions, query.get("partition", "")),
        widgets.search_field(
            "filter", "Filter", query.get("filter", ""), size="34",
            placeholder='key ~ "a-*" and value.total > 100',
        ),
        _select("limit", "At most", [(each, each) for each in LIMITS], query.get("limit", LIMIT)),
        tag("button", "Look", type="submit", class_="primary"),
    ]  # fmt: skip
    form = tag("form", fields, method="get", class_="tools", role="search", action=visit.request.path)
    return tag("div", form, tag("div", _buttons(visit, follows), class_="tools"))


def _buttons(visit: Visit, follows: bool) -> Node:
    name = visit.path["topic"]
    query = {key: value for key, value in visit.query.items() if key in ("partition", "filter")}
    buttons: list[Node] = []
    if follows:
        stop = urlencode(query)
        buttons.append(tag("a", "Stop following", href=f"?{stop}", class_="button", data_press="live"))
        buttons.append(tag("button", "Pause", type="button", data_press="pause", aria_pressed="false"))
    else:
        live = urlencode({**query, FOLLOW: "yes"})
        buttons.append(tag("a", "Live", href=f"?{live}", class_="button", data_press="live"))
    buttons.append(tag("button", "Copy link", type="button", data_copy="url"))
    if visit.shows_payloads:
        for kind, label in (("ndjson", "Export NDJSON"), ("csv", "CSV")):
            where = f"{visit.request.path}.{kind}?{urlencode(dict(visit.query))}"
            buttons.append(tag("a", label, href=where, class_="button", download=True))
    if visit.may_topic(name, WRITE):
        buttons.append(publish_dialog(visit, name))
    return buttons


def _select(name: str, label: str, options: Any, value: str) -> Html:
    chosen = [tag("option", text, value=each, selected=each == value) for each, text in options]
    return tag("p", tag("label", label, for_=name), tag("select", chosen, id=name, name=name), class_="field")
