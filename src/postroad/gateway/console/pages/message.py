"""One message, whole: its content in any format, where it is in each subscription, and published again."""

from __future__ import annotations

import base64
from typing import Any, Final
from urllib.parse import urlencode

from postroad.gateway.console import payloads, reading, widgets, words
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.publishing import (
    BASE64,
    TEXT,
    TOMBSTONE,
    header_lines,
    message_of,
    publish_dialog,
)
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import browse, messages, publish
from postroad.gateway.rest.browse import BrowsedMessage
from postroad.gateway.rest.messages import MessageDetails
from postroad.gateway.security.rights import WRITE
from postroad.markup import Html, Node, tag

EDITED_BYTES_MAX: Final = 1 << 20  # larger ones are not put into a form
KINDS: Final = {"pending": "", "in_flight": "warn", "acknowledged": "good", "dead": "bad", "done": "good"}


def address_of(topic: str, partition: int, offset: int) -> str:
    return widgets.path("topics", topic, "messages", str(partition), str(offset))


@page("/console/topics/{topic}/messages/{partition}/{offset}", "topics", is_live=False)
async def message_page(visit: Visit) -> View:
    topic = visit.path["topic"]
    message = await _find(visit)
    where = await _where(visit, message) if visit.query.get("where") else None
    title = f"{topic}, partition {message.partition}, offset {message.offset}"
    return View(
        title,
        tag("aside", _content(visit, message, where), id="detail", aria_label="Message"),
        above=(
            ("Topics", widgets.path("topics")),
            (topic, widgets.path("topics", topic)),
            ("Messages", widgets.path("topics", topic, "messages")),
        ),
    )


@message_page.action("publish")
async def publish_again(visit: Visit, form: Form) -> Done:
    answer = await visit.change(publish.publish, message_of(form), topic=visit.path["topic"])
    sent = answer.messages[0]
    return Done(f"Published to partition {sent.partition}, offset {sent.offset}.")


async def _find(visit: Visit) -> BrowsedMessage:
    """Raises Refused."""
    partition = reading.whole_number(visit.path["partition"], "Partition")
    offset = reading.whole_number(visit.path["offset"], "Offset")
    asked = {"from": str(offset), "partition": partition, "limit": 1}
    found = await visit.call(browse.browse, asked, topic=visit.path["topic"])
    for message in found.messages:
        if message.offset == offset:
            return message  # type: ignore[no-any-return]
    raise reading.not_found("The message does not exist, or no longer exists.")


async def _where(visit: Visit, message: BrowsedMessage) -> Html:
    found: MessageDetails = await visit.call(messages.get_message, message=message.id)
    rows = [
        [
            widgets.link(each.subscription, "subscriptions", each.subscription),
            widgets.badge(each.status.replace("_", " "), KINDS[each.status]),
            str(each.deliveries),
            _until(each),
        ]
        for each in found.subscriptions
    ]
    if not rows:
        return tag("p", "No subscription reads this topic.", class_="hint")
    return widgets.plain_table(("Subscription", "State", "Deliveries", ""), rows)


def _until(state: messages.StateInSubscription) -> Node:
    if state.held_until_ms is not None:
        return ["held until ", words.moment(state.held_until_ms)]
    if state.available_at_ms is not None:
        return ["delayed until ", words.moment(state.available_at_ms)]
    return f"dead letter: {state.dead_letter.reason}" if state.dead_letter is not None else None


def _content(visit: Visit, message: BrowsedMessage, where: Node) -> list[Node]:
    here = address_of(message.topic, message.partition, message.offset)
    facts = widgets.facts(
        ("Time", words.moment(message.timestamp_ms)),
        ("Partition", str(message.partition)),
        ("Offset", tag("a", str(message.offset), href=here)),
        ("Size", words.size(message.value_bytes)),
        ("Id", tag("code", message.id)),
    )
    asks = tag("a", "Where is it?", class_="button", **loads(f"{here}?where=yes"))
    buttons: list[Node] = [asks]
    if visit.shows_payloads and visit.may_topic(message.topic, WRITE):
        buttons.append(_again(visit, message))
    payload = _payload(visit, message, here) if visit.shows_payloads else [words.HIDDEN]
    return [facts, tag("div", buttons, class_="tools"), tag("div", where, id="where", role="status"), payload]


def _payload(visit: Visit, message: BrowsedMessage, here: str) -> list[Node]:
    shown: list[Node] = [tag("h2", "Key"), _block(message.key)]
    if message.headers:
        rows = [[payloads.spelled(name), payloads.preview(value)] for name, value in message.headers]
        shown += [tag("h2", "Headers"), widgets.plain_table(("Name", "Value"), rows)]
    data = payloads.data_of(message.value)
    if data is None:
        return [*shown, tag("h2", "Value"), tag("p", tag("em", "null: a tombstone"))]
    asked = visit.query.get("as", payloads.AUTO)
    at_most = len(data) * 8 if visit.query.get("all") else payloads.SHOWN_CHARACTERS_MAX
    found = payloads.shown(data, asked, at_most)
    formats = [
        tag("a", text, aria_current="true" if each == asked else None, **loads(f"{here}?as={each}"))
        for each, text in payloads.FORMATS
    ]
    read = tag("span", f"read as {dict(payloads.FORMATS)[found.format]}", class_="soft")
    more = tag("a", "Show all", **loads(f"{here}?{urlencode({'as': asked, 'all': 'yes'})}"))
    return [
        *shown,
        tag("div", tag("h2", "Value"), tag("div", formats, read, class_="formats"), class_="head"),
        payloads.block(found), more if found.is_cut and found.format != payloads.HEX else None,
    ]  # fmt: skip


def loads(where: str) -> dict[str, Any]:
    """A link that shows its page's message in the place of this one."""
    return {
        "href": where, "hx-get": where, "hx-select": "#detail", "hx-target": "#detail",
        "hx-swap": "outerHTML ignoreTitle:true",
    }  # fmt: skip


def _block(content: Any) -> Html:
    data = payloads.data_of(content)
    return tag("p", tag("em", "null")) if data is None else payloads.block(payloads.shown(data))


def _again(visit: Visit, message: BrowsedMessage) -> Html:
    """As it is, to be changed before it is published: on the message's own page."""
    if "HX-Request" in visit.request.headers:
        where = address_of(message.topic, message.partition, message.offset)
        return tag("a", "Publish again…", href=where, class_="button") if visit.changes else Html("")
    data = payloads.data_of(message.value)
    if data is not None and len(data) > EDITED_BYTES_MAX:
        return Html("")
    given = {"headers": header_lines(message.headers), "kind": TOMBSTONE}
    key = message.key
    given["key"] = "" if key is None else key if isinstance(key, str) else f"base64:{key.base64}"
    if isinstance(message.value, str):
        given |= {"kind": TEXT, "value": message.value}
    elif data is not None:
        given |= {"kind": BASE64, "value": base64.b64encode(data).decode()}
    return publish_dialog(visit, message.topic, given, "Publish again…")
