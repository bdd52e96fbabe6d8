"""A subscription's web hook: whether its endpoint takes what is sent, and how it is set up."""

from __future__ import annotations

from typing import Any, Final

from postroad.gateway.console import payloads, reading, widgets, words
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import webhook_work, webhooks
from postroad.gateway.rest.problems import NOT_FOUND, Refused
from postroad.gateway.rest.webhook_work import WebhookDelivery
from postroad.gateway.rest.webhooks import WebhookDetails
from postroad.gateway.security.rights import ALTER_CONFIGS
from postroad.markup import Html, Node, tag

COLUMNS: Final = ("Time", "Message", "Attempt", "Answer", "Took", "Why")
STATES: Final = {"closed": ("in use", "good"), "open": ("left alone", "bad"), "half-open": ("tried", "warn")}


@page("/console/subscriptions/{subscription}/webhook", "subscriptions")
async def webhook_page(visit: Visit) -> View:
    name = visit.path["subscription"]
    found = await _find(visit, name)
    body: Node
    if found is None:
        text = "This subscription has no web hook: its messages wait for consumers that ask for them."
        body = [tag("p", text), tag("div", _set_up(visit, name, None), class_="tools")]
    else:
        body = [
            _state(visit, found),
            tag("div", _actions(visit, name, found), class_="tools"),
            widgets.section("Last deliveries", await _deliveries(visit, name)),
        ]
    above = (("Subscriptions", widgets.path("subscriptions")), (name, widgets.path("subscriptions", name)))
    return View(f"Web hook of {name}", body, above=above)


async def _find(visit: Visit, name: str) -> WebhookDetails | None:
    try:
        found: WebhookDetails = await visit.call(webhooks.get_webhook, subscription=name)
    except Refused as refused:
        if refused.problem.status == NOT_FOUND.status:
            return None
        raise
    return found


# --- what can be done


@webhook_page.action("set")
async def set_up(visit: Visit, form: Form) -> Done:
    body: dict[str, Any] = {"url": form.get("url", "").strip(), "enabled": "enabled" in form}
    for field, label in (("concurrency", "At once"), ("timeout_ms", "Time-out")):
        if form.get(field, "").strip():
            body[field] = reading.whole_number(form[field], label)
    if form.get("rate", "").strip():
        body["rate"] = reading.real_number(form["rate"], "Messages a second")
    headers = reading.lines_of(form.get("headers", ""))
    if headers:
        body["headers"] = headers
    if form.get("reply_topic", "").strip():
        body["reply_topic"] = form["reply_topic"].strip()
    details = await visit.change(webhooks.put_webhook, body, subscription=visit.path["subscription"])
    said = "Saved." if details.verified else f"Saved, but not in use: {details.note}"
    return Done(said, body=_secret(details))


@webhook_page.action("verify")
async def verify(visit: Visit, form: Form) -> Done:
    details = await visit.change(webhooks.verify_webhook, subscription=visit.path["subscription"])
    if not details.verified:
        raise reading.refused(f"The endpoint did not echo the challenge: {details.note}")
    return Done("The endpoint echoed the challenge: it gets messages now.")


@webhook_page.action("test")
async def test(visit: Visit, form: Form) -> Done:
    tried = await visit.change(webhook_work.test_webhook, subscription=visit.path["subscription"])
    said = f"HTTP {tried.status}" if tried.status else "no answer"
    if not tried.success:
        raise reading.refused(f"The endpoint answered the test with {said}: {tried.reason}")
    return Done(f"The endpoint answered the test with {said}, after {tried.took_ms:.0f} ms.")


@webhook_page.action("rotate")
async def rotate(visit: Visit, form: Form) -> Done:
    details = await visit.change(webhook_work.rotate_secret, subscription=visit.path["subscription"])
    return Done("Requests are signed with a new secret from now on.", body=_secret(details))


@webhook_page.action("pause")
async def pause(visit: Visit, form: Form) -> Done:
    """All settings stay as they are, but for the one."""
    name = visit.path["subscription"]
    found: WebhookDetails = await visit.call(webhooks.get_webhook, subscription=name)
    body: dict[str, Any] = {
        "url": found.url, "concurrency": found.concurrency, "rate": found.rate, "headers": found.headers,
        "timeout_ms": found.timeout_ms, "enabled": not found.enabled,
    }  # fmt: skip
    if found.reply_topic:
        body["reply_topic"] = found.reply_topic
    await visit.change(webhooks.put_webhook, body, subscription=name)
    return Done("It goes on." if body["enabled"] else "Paused: messages wait.")


@webhook_page.action("delete")
async def delete(visit: Visit, form: Form) -> Done:
    await visit.change(webhooks.delete_webhook, subscription=visit.path["subscription"])
    return Done("The web hook is gone; messages wait for consumers.")


# --- what is shown


def _state(visit: Visit, found: WebhookDetails) -> Html:
    health = found.health
    text, kind = ("off", "warn") if not found.enabled else ("not verified", "bad")
    if found.enabled and found.verified:
        text, kind = STATES.get(health.state, ("in use", "good")) if health is not None else ("starting", "")
    lines: list[Node] = [
        widgets.facts(
            ("URL", tag("code", found.url)),
            ("Endpoint", widgets.badge(text, kind)),
            ("At once", words.count(found.concurrency)),
            ("Messages a second", words.rate(found.rate) if found.rate else "no limit"),
            ("Time-out", words.span_ms(found.timeout_ms)),
            ("Answers go to", found.reply_topic or "nowhere"),
            ("Delivered", words.count(health.delivered if health is not None else 0)),
            ("Failed", words.count(health.failed if health is not None else 0)),
        )
    ]
    problem = found.note or (health.last_error if health is not None and health.state != "closed" else "")
    if problem:
        lines.append(tag("p", problem, class_="problem"))
    return visit.live("hook", "div", lines)


async def _deliveries(visit: Visit, name: str) -> Html:
    found = await visit.call(webhook_work.list_deliveries, subscription=name)
    rows = [(f"{each.at_ms}-{each.message}-{each.attempt}", _delivery(each)) for each in found.deliveries]
    return widgets.table(
        visit, "deliveries", COLUMNS, rows, numbers=[2, 4], caption="Last deliveries",
        empty="Nothing was sent since this gateway was started.",
    )  # fmt: skip


def _delivery(each: WebhookDelivery) -> list[Node]:
    where = widgets.path("topics", each.topic, "messages", str(each.partition), str(each.offset))
    answer = f"HTTP {each.status}" if each.status else "no answer"
    return [
        words.moment(each.at_ms),
        tag("a", f"{each.topic} {each.partition}:{each.offset}", href=where),
        words.count(each.attempt),
        widgets.badge(answer, "good" if each.delivered else "bad"),
        f"{each.took_ms:.0f} ms",
        payloads.spelled(each.reason or words.NONE),
    ]


def _actions(visit: Visit, name: str, found: WebhookDetails) -> list[Node]:
    if not visit.may_group(name, ALTER_CONFIGS):
        return []
    rotates = visit.form("rotate")
    text = "Requests are signed with the new secret at once; the endpoint refuses them until it knows it."
    deletes = visit.form("delete")
    return [
        visit.form("test").button("Test"),
        visit.form("verify").button("Verify"),
        visit.form("pause").button("Pause" if found.enabled else "Go on"),
        _set_up(visit, name, found),
        rotates.dialog("New secret…", "Give it a new secret", tag("p", text), submit="Make a new secret"),
        deletes.dialog(
            "Delete…", "Delete the web hook", tag("p", "Messages stay in the subscription."),
            submit="Delete", danger=True,
        ),
    ]  # fmt: skip


def _set_up(visit: Visit, name: str, found: WebhookDetails | None) -> Html:
    if not visit.may_group(name, ALTER_CONFIGS):
        return Html("")
    form = visit.form("set")
    headers = "\n".join(f"{key}={value}" for key, value in found.headers.items()) if found else ""
    return form.dialog(
        "Change…" if found else "Set up a web hook…", f"Web hook of {name}",
        form.text("url", "URL", found.url if found else "", type_="url", required=True, hint="https."),
        tag(
            "div",
            form.number("concurrency", "At once", found.concurrency if found else 8, min="1"),
            form.number("rate", "Messages a second", found.rate if found else 0, min="0", step="any",
                        hint="0: no limit."),
            form.number("timeout_ms", "Time-out, ms", found.timeout_ms if found else 10_000, min="1"),
            form.text("reply_topic", "Answers go to", found.reply_topic if found else "",
                      hint="A topic. Empty: nowhere."),
            class_="pair",
        ),
        form.area("headers", "Headers", headers, rows="3", hint="Sent along, one a line: name=value."),
        form.check("enabled", "Send messages", found.enabled if found else True), submit="Save",
    )  # fmt: skip


def _secret(details: WebhookDetails) -> Node:
    """Shown this once."""
    if details.secret is None:
        return None
    copy = tag("button", "Copy", type="button", data_copy="#secret")
    said = "The secret that signs requests. It is shown this once: "
    return tag("p", said, tag("code", details.secret, id="secret"), " ", copy)
