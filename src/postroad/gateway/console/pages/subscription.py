"""One subscription: where its messages are in their lives, who consumes it, and what can be done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from postroad.gateway.console import lives, payloads, reading, widgets, words
from postroad.gateway.console.charts import chart
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.pages.config_table import changes_of, config_section, difference
from postroad.gateway.console.pages.message import address_of
from postroad.gateway.console.pages.subscriptions import topic_links
from postroad.gateway.console.promises import in_words
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import consumers, history, messages, positions, subscriptions
from postroad.gateway.rest.messages import PeekAnswer, PeekedMessage
from postroad.gateway.rest.subscriptions import SubscriptionDetails
from postroad.gateway.security.rights import ALTER_CONFIGS, DESCRIBE_CONFIGS
from postroad.markup import Html, Node, tag

PEEKED: Final = 25
CONSUMER_COLUMNS: Final = ("Client", "Address", "By", "User", "Partitions", "Last seen")
PEEK_COLUMNS: Final = ("Topic", "Partition", "Offset", "State", "Deliveries", "Held by", "Key", "Value")
PART_COLUMNS: Final = (
    "Topic",
    "Partition",
    "Done up to",
    "Next offset",
    "Not done",
    "Ready",
    "In flight",
    "Delayed",
)
MEASURES: Final = {"lag": "not done", "in_flight": "in flight"}
RATES: Final = {"delivered_rate": "delivered", "accepted_rate": "done"}
STATES: Final = {"available": "", "held": "warn", "dying": "bad"}


@page("/console/subscriptions/{subscription}", "subscriptions")
async def subscription_page(visit: Visit) -> View:
    name = visit.path["subscription"]
    details: SubscriptionDetails = await visit.call(subscriptions.get_subscription, subscription=name)
    found = await visit.call(history.list_figures, {"of": "subscription", "prefix": name, "limit": 1})
    values = found.figures[0].values if found.figures and found.figures[0].name == name else {}
    return View(
        name,
        [
            tag("p", "Reads ", topic_links(details.topics)),
            widgets.section("Where its messages are", lives.bar(visit, name, details.counts)),
            _figures(visit, details, values),
            tag("div", _actions(visit, details), class_="tools"),
            tag(
                "div", chart("subscription", name, MEASURES, "Messages"),
                chart("subscription", name, RATES, "Messages, a second", "rates"), class_="charts",
            ),
            widgets.section("Consumers", await _consumers(visit, name)),
            widgets.section("What it promises", tag("ul", [tag("li", line) for line in in_words(details)])),
            await _peek(visit, name, details.topics),
            widgets.section("Partitions", _partitions(visit, details)),
            await config_section(
                visit, "group", details.configs, details.overrides, visit.may_group(name, ALTER_CONFIGS)
            ),
        ],
        above=(("Subscriptions", widgets.path("subscriptions")),),
    )  # fmt: skip


# --- what can be done


@subscription_page.action("seek")
async def seek(visit: Visit, form: Form) -> Done:
    name, body = visit.path["subscription"], _target(form)
    would = await visit.preview(positions.seek, {**body, "dry_run": True}, subscription=name)
    rows = [
        [each.topic, str(each.partition), words.count(each.before), words.count(each.after), _moved(each)]
        for each in would.partitions
    ]
    table = widgets.plain_table(("Topic", "Partition", "Now at", "Afterwards at", "Effect"), rows)
    visit.review(form, f"Move {words.plural(len(rows), 'partition')}", table)
    moved = await visit.change(positions.seek, body, subscription=name)
    return Done(f"{words.plural(len(moved.partitions), 'partition')} moved.")


@subscription_page.action("purge")
async def purge(visit: Visit, form: Form) -> Done:
    name = visit.path["subscription"]
    reading.check_typed(form, name)
    purged = await visit.change(positions.purge, {}, subscription=name)
    return Done(f"{words.plural(purged.purged, 'message')} discarded.")


@subscription_page.action("configs")
async def alter_configs(visit: Visit, form: Form) -> Done:
    name = visit.path["subscription"]
    before: SubscriptionDetails = await visit.call(subscriptions.get_subscription, subscription=name)
    changes = changes_of(form)
    visit.review(form, "Save", difference(changes, before.configs), danger=False)
    await visit.change(subscriptions.alter_subscription, {"configs": changes}, subscription=name)
    return Done(f"Changed: {', '.join(sorted(changes))}.")


@subscription_page.action("topics")
async def alter_topics(visit: Visit, form: Form) -> Done:
    name = visit.path["subscription"]
    names = form.get("topics", "").replace(",", " ").split()
    await visit.change(subscriptions.alter_subscription, {"topics": names}, subscription=name)
    return Done(f"It reads {', '.join(names)} now.")


@subscription_page.action("delete")
async def delete(visit: Visit, form: Form) -> Done:
    name = visit.path["subscription"]
    reading.check_typed(form, name)
    await visit.change(subscriptions.delete_subscription, subscription=name)
    return Done(f"The subscription {name} was deleted.", widgets.path("subscriptions"))


def _target(form: Form) -> dict[str, Any]:
    """Where to seek. Raises Refused."""
    to, value = form.get("to", "latest"), form.get("value", "")
    body: dict[str, Any] = {}
    if form.get("part", "").strip():
        topic, is_one, partition = form["part"].strip().rpartition(":")
        body["topic"] = topic if is_one else partition
        if is_one:
            body["partition"] = reading.whole_number(partition, "Partition")
    if to == "time":
        return {**body, "time_ms": reading.moment_ms(value, "Time")}
    return {**body, "offset": reading.whole_number(value, "Offset")} if to == "offset" else {**body, "to": to}


def _moved(each: positions.Moved) -> str:
    distance = each.after - each.before
    if distance < 0:
        return f"up to {words.count(-distance)} come again"
    return f"{words.count(distance)} are passed over" if distance else "stays"


def _actions(visit: Visit, details: SubscriptionDetails) -> list[Node]:
    name = details.name
    shown: list[Node] = [widgets.button_link("Dead letters", "subscriptions", name, "dead-letters")]
    if visit.may_group(name, DESCRIBE_CONFIGS):
        shown.append(widgets.button_link("Web hook", "subscriptions", name, "webhook"))
    if visit.may_group(name, ALTER_CONFIGS):
        shown.append(_topics(visit, details))
    if visit.access.may_discard(name):
        shown += [_seek(visit, details), _purge(visit, details), _delete(visit, details)]
    return shown


def _topics(visit: Visit, details: SubscriptionDetails) -> Html:
    form = visit.form("topics")
    text = "What the subscription knows of a topic that it no longer has is forgotten."
    field = form.text(
        "topics", "Topics", " ".join(details.topics), hint="With blanks between.", required=True
    )
    return form.dialog("Topics…", f"Topics of {details.name}", tag("p", text), field, submit="Save")


def _seek(visit: Visit, details: SubscriptionDetails) -> Html:
    form = visit.form("seek")
    options = [
        ("latest", "the end: what is there counts as done"), ("time", "a time"), ("offset", "an offset"),
        ("earliest", "the beginning: everything comes again"),
    ]  # fmt: skip
    text = "From there on messages come, whatever became of them before. Consumers lose what they hold."
    return form.dialog(
        "Seek…", f"Move {details.name}", tag("p", text), form.choice("to", "To", options, "latest"),
        form.text("value", "Time or offset", hint="Such as 2026-03-01T08:00 (UTC), 2h (ago), 1200."),
        form.text("part", "Only this topic or partition", hint="topic or topic:0. Empty: all of them."),
        submit="Show what moves",
    )  # fmt: skip


def _purge(visit: Visit, details: SubscriptionDetails) -> Html:
    form = visit.form("purge")
    text = (
        f"{words.plural(details.counts.lag, 'message')} that are not done with are discarded, those in "
        "flight and delayed ones too. They don't become dead letters; the topics keep them."
    )
    return form.dialog(
        "Purge…", f"Purge {details.name}", tag("p", text), form.typed_name(details.name), submit="Purge",
        danger=True,
    )  # fmt: skip


def _delete(visit: Visit, details: SubscriptionDetails) -> Html:
    form = visit.form("delete")
    left = words.plural(details.counts.lag, "message")
    text = (
        f"With it goes where it is, and what became of each message; {left} would not be delivered. The "
        "topics keep their messages."
    )
    return form.dialog(
        "Delete…", f"Delete {details.name}", tag("p", text), form.typed_name(details.name), submit="Delete",
        danger=True,
    )  # fmt: skip


# --- what is shown


def _figures(visit: Visit, details: SubscriptionDetails, values: dict[str, float]) -> Html:
    return widgets.figures(
        widgets.figure(visit, "oldest", "Oldest", words.span(values.get("oldest_seconds"))),
        widgets.figure(visit, "delivered", "Delivered, a second", words.rate(values.get("delivered_rate"))),
        widgets.figure(visit, "done", "Done, a second", words.rate(values.get("accepted_rate"))),
        widgets.figure(visit, "members", "Kafka consumers", words.count(details.members)),
        widgets.figure(visit, "state", "State", details.state),
    )


async def _consumers(visit: Visit, name: str) -> Html:
    found = await visit.call(consumers.list_consumers, subscription=name)
    rows: list[tuple[str, list[Node]]] = [
        (
            str(number),
            [
                payloads.spelled(each.client or words.NONE), each.address, each.kind, each.user or words.NONE,
                ", ".join(f"{topic}:{partition}" for topic, partition in each.partitions) or words.NONE,
                words.moment(each.last_seen_ms) if each.last_seen_ms is not None else "connected",
            ],
        )
        for number, each in enumerate(found.consumers)
    ]  # fmt: skip
    return widgets.table(
        visit, "consumers", CONSUMER_COLUMNS, rows, caption="Consumers", empty="Nobody consumes it now."
    )


async def _peek(visit: Visit, name: str, topics: Sequence[str]) -> Html:
    if not visit.shows_peek(name, topics):
        return Html("")
    found: PeekAnswer = await visit.call(messages.peek, {"limit": PEEKED}, subscription=name)
    rows = [(f"{each.topic}-{each.partition}-{each.offset}", _peeked(visit, each)) for each in found.messages]
    table = widgets.table(
        visit, "peek", PEEK_COLUMNS, rows, numbers=[1, 2, 4], caption="Messages that are not done",
        empty="Every message is done with.",
    )  # fmt: skip
    more = tag("p", f"The first {PEEKED} are shown.", class_="hint") if found.next is not None else None
    return widgets.section("Messages that are not done", table, more)


def _peeked(visit: Visit, each: PeekedMessage) -> list[Node]:
    until: Node = None
    if each.held_until_ms is not None:
        until = [" until ", words.moment(each.held_until_ms)]
    elif each.available_at_ms is not None:
        until = [" until ", words.moment(each.available_at_ms)]
    return [
        each.topic,
        str(each.partition),
        tag("a", str(each.offset), href=address_of(each.topic, each.partition, each.offset)),
        [widgets.badge(each.state, STATES.get(each.state, "")), until],
        str(each.deliveries),
        tag("code", each.held_by[:20]) if each.held_by else words.NONE,
        payloads.preview(each.key) if visit.shows_payloads else words.HIDDEN,
        payloads.preview(each.value) if visit.shows_payloads else words.HIDDEN,
    ]


def _partitions(visit: Visit, details: SubscriptionDetails) -> Html:
    rows: list[tuple[str, list[Node]]] = [
        (
            f"{part.topic}-{part.partition}",
            [
                part.topic, str(part.partition), words.count(part.start), words.count(part.end),
                words.count(part.counts.lag), words.count(part.counts.ready),
                words.count(part.counts.in_flight), words.count(part.counts.delayed),
            ],
        )
        for part in details.partitions
    ]  # fmt: skip
    return widgets.table(visit, "parts", PART_COLUMNS, rows, numbers=range(1, 8), caption="Partitions")
