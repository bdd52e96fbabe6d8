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
from postroad.gateway.rest import dead_letters, one_letter, subscriptions
from postroad.gateway.rest.dead_letters import DeadLetter, RedriveState
from postroad.gateway.security.rights import READ
from postroad.markup import Html, Node, tag
from postroad.wire.header_names import tells_of_death

LIMIT: Final = 100
DISCARD: Final = "discard"
SEND_FORM: Final = "redrive-form"  # as its maker calls it
TICKED_NONE: Final = "No letter is ticked: it is about all that fit what follows."
COLUMNS: Final = ("Choose", "Died", "Reason", "In words", "From", "Deliveries", "Key", "Value", "")
REASONS: Final = (
    ("", "any"), ("attempts", "too many deliveries"), ("rejected", "rejected"), ("expired", "expired"),
    ("invalid", "not valid"),
)  # fmt: skip
RUNNING: Final = ("running", "cancelling")
REDRIVE_COLUMNS: Final = ("Began", "State", "Letters", "Seen", "Done", "Kept", "Failed", "")


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
            widgets.section(
                "Letters",
                _table(visit, shown),
                widgets.pager(visit, found.next),
                actions=[tag("button", "Choose all of these", type="button", data_tick_all=True)]
                if shown and visit.changes and visit.may_group(name, READ)
                else [],
            ),
        ],
        above=(
            ("Subscriptions", widgets.path("subscriptions")),
            (name, widgets.path("subscriptions", name)),
        ),
    )


# --- what can be done


@dead_letters_page.action("redrive")
async def redrive(visit: Visit, form: Form) -> Done:
    """Those that are ticked, or all that match: sent back or discarded, in the background."""
    name = visit.path["subscription"]
    body = _conditions(form)
    chosen = form.get("letter", "").split()
    if chosen:
        body["letters"] = chosen
    if form.get("rate", "").strip():
        body["rate"] = reading.real_number(form["rate"], "Letters a second")
    if form.get("limit", "").strip():
        body["limit"] = reading.whole_number(form["limit"], "At most")
    if "dry" in form:
        body["dry_run"] = True
    if form.get("act") == DISCARD:
        body["discard"] = True
        if "dry" not in form:
            await _review_discard(visit, form, name, len(chosen))
    else:
        body |= _destination(form)
    state = await visit.change(dead_letters.redrive, body, subscription=name)
    return Done(f"Redrive {state.id} has begun; how far it is stands below.")


def _conditions(form: Form) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if form.get("reason"):
        body["reasons"] = [form["reason"]]
    if form.get("key", "").strip():
        body["key_matches"] = form["key"].strip()
    if form.get("since", "").strip():
        body["died_since_ms"] = reading.moment_ms(form["since"], "Died since")
    return body


def _destination(form: Form) -> dict[str, Any]:
    """Where they go, and what is changed in each before."""
    body: dict[str, Any] = {"to": form["to"].strip()} if form.get("to", "").strip() else {}
    edit: dict[str, Any] = {}
    if form.get("find"):
        edit["find"], edit["replace"] = form["find"], form.get("replace", "")
    if form.get("value"):
        edit["value"] = form["value"].replace("\r\n", "\n")
    if form.get("set-headers", "").strip():
        edit["headers"] = reading.lines_of(form["set-headers"])
    if form.get("remove-headers", "").strip():
        edit["remove_headers"] = form["remove-headers"].replace(",", " ").split()
    return body | ({"edit": edit} if edit else {})


async def _review_discard(visit: Visit, form: Form, name: str, chosen: int) -> None:
    """Raises ToReview."""
    found = await visit.call(subscriptions.get_subscription, subscription=name)
    which = words.plural(chosen, "letter") if chosen else "every letter"
    filtered = any(form.get(field, "").strip() for field in ("reason", "key", "since", "limit"))
    text = f"Discards {which}{', as far as the conditions fit' if filtered else ''}: of the "
    text += (
        f"{words.plural(found.counts.dead, 'letter')} that are here now. They are not sent back by anything."
    )
    visit.review(form, "Discard them", tag("p", text))


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
    acts = [("send", "send back"), (DISCARD, "discard")] if visit.may_lose else [("send", "send back")]
    return form.dialog(
        "Send back…", f"Send back dead letters of {name}", tag("p", text),
        tag("p", TICKED_NONE, data_ticked=True, role="status", class_="notice"),
        form.choice("act", "What to do", acts) if len(acts) > 1 else None,
        form.choice("reason", "Reason", REASONS, visit.query.get("reason", "")),
        tag(
            "div", form.text("key", "Key matches", hint="With * and ?. Empty: any."),
            form.text("since", "Died since", hint="Such as 2h (ago). Empty: ever."),
            form.number("rate", "Letters a second", min="0.1", step="any", hint="Empty: as fast as they go."),
            form.number("limit", "At most", min="1", hint="Empty: all."), class_="pair",
        ),
        form.text("to", "To another topic", hint="Empty: each to its own."),
        tag(
            "details", tag("summary", "Edit each before it goes"),
            tag(
                "div",
                form.text("find", "In the value find", hint="Letters without it stay here."),
                form.text("replace", "and put in its place"),
                class_="pair",
            ),
            form.area("value", "Instead of the whole value", rows="3", hint="Empty: as it is."),
            form.area("set-headers", "Set headers", rows="2", hint="One a line: name=value."),
            form.text("remove-headers", "Remove headers", hint="Their names."),
        ),
        form.check("dry", "Only count them", checked=True), submit="Begin", wide=True,
    )  # fmt: skip


def _tick(visit: Visit, letter: DeadLetter) -> Html:
    """A box of the form above, wherever it stands."""
    outcome = visit.outcome
    is_kept = outcome is not None and outcome.kind != "done"
    return tag(
        "input", type="checkbox", name="letter", value=letter.id, form=SEND_FORM, data_ticks=True,
        aria_label=f"Choose letter {letter.partition}:{letter.offset}",
        checked=is_kept and outcome is not None and letter.id in outcome.form.get("letter", "").split(),
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
        [
            widgets.badge(state.state, kind), " only counted" if state.dry_run else None,
            " discards" if state.discard else None,
        ],
        words.count(state.total), words.count(state.seen), words.count(state.sent), words.count(state.kept),
        failed or state.failure or words.NONE, cancels,
    ]  # fmt: skip


def _table(visit: Visit, letters: list[DeadLetter]) -> Html:
    rows = [(f"{each.partition}-{each.offset}", _row(visit, each)) for each in letters]
    return widgets.still_table(
        "letters", COLUMNS, rows, caption="Dead letters", numbers=(5,), empty="There are no dead letters."
    )


def _row(visit: Visit, letter: DeadLetter) -> list[Node]:
    return [
        _tick(visit, letter) if visit.may_group(visit.path["subscription"], READ) and visit.changes else None,
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
