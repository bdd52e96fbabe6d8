"""A subscription's dead letters: by reason, read, edited, sent back one by one or by rule, discarded."""

from __future__ import annotations

import base64
from collections import Counter
from typing import Any, Final

from postroad.gateway.console import payloads, reading, widgets, words
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.pages.message import address_of
from postroad.gateway.console.publishing import (
    BASE64,
    KINDS,
    TEXT,
    TOMBSTONE,
    header_lines,
    header_pairs,
    value_of,
)
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import dead_letters, one_letter
from postroad.gateway.rest.dead_letters import DeadLetter, RedriveState
from postroad.gateway.security.rights import READ
from postroad.markup import Html, Node, tag
from postroad.wire.header_names import tells_of_death

LIMIT: Final = 100
COLUMNS: Final = ("Died", "Reason", "In words", "From", "Deliveries", "Key", "Value", "")
REASONS: Final = (
    ("", "any"), ("attempts", "too many deliveries"), ("rejected", "rejected"), ("expired", "expired"),
    ("invalid", "not valid"),
)  # fmt: skip
RUNNING: Final = ("running", "cancelling")
REDRIVE_COLUMNS: Final = ("Began", "State", "Letters", "Seen", "Sent", "Kept", "Failed", "")


@page("/console/subscriptions/{subscription}/dead-letters", "subscriptions")
async def dead_letters_page(visit: Visit) -> View:
    name, query = visit.path["subscription"], visit.query
    asked = {"limit": LIMIT, "after": query["after"]} if query.get("after") else {"limit": LIMIT}
    found = await visit.call(dead_letters.list_dead_letters, asked, subscription=name)
    reason = query.get("reason", "")
    shown = [letter for letter in found.letters if reason in ("", letter.reason)]
    redrives = await visit.call(dead_letters.list_redrives)
    mine = [state for state in redrives.redrives if state.subscription == name]
    return View(
        f"Dead letters of {name}",
        [
            _groups(visit, found.letters),
            tag("div", _send_all(visit, name), class_="tools"),
            _redrives(visit, mine),
            widgets.section("Letters", _table(visit, shown), widgets.pager(visit, found.next)),
        ],
        above=(
            ("Subscriptions", widgets.path("subscriptions")),
            (name, widgets.path("subscriptions", name)),
        ),
    )


# --- what can be done


@dead_letters_page.action("redrive")
async def redrive(visit: Visit, form: Form) -> Done:
    """Counted first, as a redrive that only counts would do it."""
    name = visit.path["subscription"]
    body: dict[str, Any] = {}
    if form.get("reason"):
        body["reasons"] = [form["reason"]]
    if form.get("key", "").strip():
        body["key_matches"] = form["key"].strip()
    if form.get("since", "").strip():
        body["died_since_ms"] = reading.moment_ms(form["since"], "Died since")
    if form.get("to", "").strip():
        body["to"] = form["to"].strip()
    if form.get("rate", "").strip():
        body["rate"] = reading.real_number(form["rate"], "Letters a second")
    if form.get("limit", "").strip():
        body["limit"] = reading.whole_number(form["limit"], "At most")
    if "dry" in form:
        body["dry_run"] = True
    state = await visit.change(dead_letters.redrive, body, subscription=name)
    return Done(f"Redrive {state.id} has begun; how far it is stands below.")


@dead_letters_page.action("cancel")
async def cancel(visit: Visit, form: Form) -> Done:
    await visit.change(dead_letters.cancel_redrive, redrive=form.get("redrive", ""))
    return Done("Cancelled. What was sent back stays so.")


@dead_letters_page.action("send")
async def send_one(visit: Visit, form: Form) -> Done:
    body: dict[str, Any] = {"value": value_of(form), "headers": header_pairs(form.get("headers", ""))}
    body["key"] = form["key"] if form.get("key") else None
    if form.get("to", "").strip():
        body["to"] = form["to"].strip()
    name = visit.path["subscription"]
    sent = await visit.change(
        one_letter.redrive_one, body, subscription=name, message=form.get("message", "")
    )
    return Done(f"Sent to {sent.topic}, partition {sent.partition}, offset {sent.offset}.")


@dead_letters_page.action("discard")
async def discard(visit: Visit, form: Form) -> Done:
    name = visit.path["subscription"]
    await visit.change(one_letter.discard_letter, subscription=name, message=form.get("message", ""))
    return Done("The letter was discarded.")


# --- what is shown


def _groups(visit: Visit, letters: list[DeadLetter]) -> Html:
    """How many of what reason and from where, among those of this page."""
    counted = Counter((letter.reason, letter.reason_text or "", letter.origin_topic) for letter in letters)
    rows: list[tuple[str, list[Node]]] = [
        (
            str(number),
            [
                widgets.link(dict(REASONS).get(reason, reason), "subscriptions",
                             visit.path["subscription"], "dead-letters", reason=reason),
                payloads.spelled(text or words.NONE), origin, words.count(count),
            ],
        )
        for number, ((reason, text, origin), count) in enumerate(counted.most_common(20))
    ]  # fmt: skip
    return widgets.table(
        visit, "reasons", ("Reason", "In words", "From", "Letters"), rows, numbers=[3], caption="By reason",
        empty="There are no dead letters.",
    )  # fmt: skip


def _send_all(visit: Visit, name: str) -> Html:
    if not visit.may_group(name, READ):
        return Html("")
    form = visit.form("redrive")
    text = (
        "They go back as new messages to the topic that each came from, for this subscription only, and are "
        "struck off here. It runs in the background; tick the last box to have them counted only."
    )
    return form.dialog(
        "Send back…", f"Send back dead letters of {name}", tag("p", text),
        form.choice("reason", "Reason", REASONS, visit.query.get("reason", "")),
        tag(
            "div", form.text("key", "Key matches", hint="With * and ?. Empty: any."),
            form.text("since", "Died since", hint="Such as 2h (ago). Empty: ever."),
            form.number("rate", "Letters a second", min="0.1", step="any", hint="Empty: as fast as they go."),
            form.number("limit", "At most", min="1", hint="Empty: all."), class_="pair",
        ),
        form.text("to", "To another topic", hint="Empty: each to its own."),
        form.check("dry", "Only count them", checked=True), submit="Begin",
    )  # fmt: skip


def _redrives(visit: Visit, states: list[RedriveState]) -> Html | None:
    if not states:
        return None
    rows = [(state.id, _redrive_row(visit, state)) for state in states[:10]]
    table = widgets.table(visit, "redrives", REDRIVE_COLUMNS, rows, numbers=[2, 3, 4, 5], caption="Redrives")
    return widgets.section("Sent back so far", table)


def _redrive_row(visit: Visit, state: RedriveState) -> list[Node]:
    cancels: Node = None
    if state.state in RUNNING:
        form = visit.form("cancel", state.id)
        cancels = form.button("Cancel", tag("input", type="hidden", name="redrive", value=state.id))
    failed = ", ".join(f"{words.count(count)} × {why}" for why, count in state.failed.items())
    kind = {"running": "warn", "completed": "good", "failed": "bad"}.get(state.state, "")
    return [
        words.moment(state.began_at_ms),
        [widgets.badge(state.state, kind), " only counted" if state.dry_run else None],
        words.count(state.total), words.count(state.seen), words.count(state.sent), words.count(state.kept),
        failed or state.failure or words.NONE, cancels,
    ]  # fmt: skip


def _table(visit: Visit, letters: list[DeadLetter]) -> Html:
    rows = [(f"{each.partition}-{each.offset}", _row(visit, each)) for each in letters]
    return widgets.still_table(
        "letters", COLUMNS, rows, caption="Dead letters", numbers=(4,), empty="There are no dead letters."
    )


def _row(visit: Visit, letter: DeadLetter) -> list[Node]:
    return [
        words.moment(letter.died_at_ms),
        widgets.badge(letter.reason, "bad"),
        payloads.spelled(letter.reason_text or words.NONE),
        _origin(letter),
        words.count(letter.deliveries),
        payloads.preview(letter.key) if visit.shows_payloads else words.HIDDEN,
        payloads.preview(letter.value) if visit.shows_payloads else words.HIDDEN,
        tag("div", _send_one(visit, letter), _discard(visit, letter), class_="actions"),
    ]


def _origin(letter: DeadLetter) -> Node:
    if letter.origin_partition is None or letter.origin_offset is None:
        return letter.origin_topic
    where = address_of(letter.origin_topic, letter.origin_partition, letter.origin_offset)
    text = f"{letter.origin_topic} {letter.origin_partition}:{letter.origin_offset}"
    return tag("a", text, href=where)


def _send_one(visit: Visit, letter: DeadLetter) -> Html:
    if not visit.shows_payloads:
        return Html("")
    form = visit.form("send", letter.id)
    value, kind = "", TOMBSTONE
    if isinstance(letter.value, str):
        value, kind = letter.value, TEXT
    elif letter.value is not None:
        value, kind = base64.b64encode(payloads.data_of(letter.value) or b"").decode(), BASE64
    kept = [pair for pair in letter.headers if not tells_of_death(pair[0])]
    return form.dialog(
        "Send…", f"Send back to {letter.origin_topic}",
        tag("input", type="hidden", name="message", value=letter.id),
        form.text("key", "Key", letter.key if isinstance(letter.key, str) else ""),
        form.choice("kind", "The value is", KINDS, kind), form.area("value", "Value", value, rows="8"),
        form.area("headers", "Headers", header_lines(kept), rows="3", hint="One a line: name=value."),
        form.text("to", "To another topic", hint=f"Empty: {letter.origin_topic}."), submit="Send back",
        wide=True, label_for=f"letter {letter.partition}:{letter.offset}",
    )  # fmt: skip


def _discard(visit: Visit, letter: DeadLetter) -> Html:
    if not visit.may_lose:
        return Html("")
    form = visit.form("discard", letter.id)
    text = "It is listed and sent back no more, and stays in its topic until retention takes it."
    hidden = tag("input", type="hidden", name="message", value=letter.id)
    return form.dialog(
        "Discard…", "Discard the letter", tag("p", text), hidden, submit="Discard", danger=True,
        label_for=f"letter {letter.partition}:{letter.offset}",
    )  # fmt: skip
