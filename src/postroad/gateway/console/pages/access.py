"""Who may do what: users, rules, and the rule that decides a question."""

from __future__ import annotations

from typing import Any, Final

from postroad.gateway.console import widgets, words
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.pages.user import secret, what_of
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import access_rules, user_changes
from postroad.gateway.rest.access_rules import OPERATIONS, TYPES, AclDetails, Decision, UserDetails
from postroad.markup import Html, Node, tag
from postroad.security.principals import EVERYBODY

USER_COLUMNS: Final = ("User", "Passwords", "Access keys", "Rules")
RULE_COLUMNS: Final = ("Permission", "Who", "May", "On", "From")
DECISION_COLUMNS: Final = ("Who", "Allowed", "By which rule")
ADDRESS: Final = "*"


@page("/console/access", "access")
async def access_page(visit: Visit) -> View:
    found = await visit.call(access_rules.list_users)
    if not found.secured:
        return View("Access", _open())
    rules = await visit.call(access_rules.list_acls)
    return View(
        "Access",
        [
            await _question(visit),
            widgets.section(
                "Users",
                widgets.table(
                    visit, "users", USER_COLUMNS, [(each.name, _user(each)) for each in found.users],
                    numbers=[3], caption="Users", empty="There is no user yet.",
                ),
                actions=[_create(visit)],
            ),
            widgets.section(
                "Rules",
                widgets.table(
                    visit, "rules", RULE_COLUMNS, [(_name(each), _rule(each)) for each in rules.acls],
                    caption="Rules", empty="There is no rule yet: only super users may do anything.",
                ),
            ),
        ],
    )  # fmt: skip


def _open() -> Node:
    return widgets.notice(
        "warn",
        tag("p", "Security is off: nobody is asked who they are, and everybody may do everything."),
        tag(
            "p", tag("code", "postroad serve --secure"),
            " starts with users, rules and TLS; docs/security.md says how a node that runs is changed.",
        ),
    )  # fmt: skip


def _user(each: UserDetails) -> list[Node]:
    name: list[Node] = [widgets.link(each.name, "access", each.name)]
    if each.super:
        name += [" ", widgets.badge("super user", "warn")]
    keys: Node = words.NONE
    if each.keys is not None:
        keys = [[tag("code", key.id), _disabled(key.enabled), " "] for key in each.keys] or words.NONE
    return [name, ", ".join(each.mechanisms) or words.NONE, keys, words.count(each.rules)]


def _disabled(enabled: bool) -> Node:
    return None if enabled else [" ", widgets.badge("disabled", "bad")]


def _name(each: AclDetails) -> str:
    return "-".join(
        [each.permission, each.principal, each.operation, each.type, each.pattern, each.name, each.host]
    )


def _rule(each: AclDetails) -> list[Node]:
    kind = "bad" if each.permission == "deny" else "good"
    name = each.principal.removeprefix("User:")
    return [
        widgets.badge(each.permission, kind),
        "everybody" if each.principal == EVERYBODY else widgets.link(name, "access", name),
        "do everything" if each.operation == "all" else each.operation.replace("-", " "),
        what_of(each),
        words.NONE if each.host == ADDRESS else each.host,
    ]


async def _question(visit: Visit) -> Html:
    """Who may write orders, and by which rule."""
    query = visit.query
    answer: Node = None
    if query.get("name"):
        asked: dict[str, Any] = {
            "operation": query.get("operation", "write"),
            "type": query.get("type", "topic"),
            "name": query["name"],
        }
        found = await visit.call(access_rules.who_may, asked)
        rows: list[tuple[str, list[Node]]] = [(each.principal, _decision(each)) for each in found.decisions]
        answer = widgets.table(visit, "decisions", DECISION_COLUMNS, rows, caption="Who may do that")
    fields = tag(
        "form",
        _choice("operation", "Who may", list(OPERATIONS), query.get("operation", "write")),
        _choice("type", "which", list(TYPES), query.get("type", "topic")),
        widgets.search_field("name", "called", query.get("name", ""), required=True, maxlength=249),
        tag("button", "Ask", type="submit", class_="primary"),
        method="get", action=widgets.path("access"), class_="tools", role="search",
    )  # fmt: skip
    return widgets.section("Who may do something, and by which rule?", fields, answer)


def _decision(each: Decision) -> list[Node]:
    badge = widgets.badge("yes", "good") if each.allowed else widgets.badge("no")
    return [each.principal.removeprefix("User:"), badge, each.reason]


def _choice(name: str, label: str, options: list[str], value: str) -> Html:
    made = [tag("option", each.replace("-", " "), value=each, selected=each == value) for each in options]
    return tag("p", tag("label", label, for_=name), tag("select", made, id=name, name=name), class_="field")


# --- what can be done


def _create(visit: Visit) -> Node:
    if not visit.may_alter_cluster:
        return None
    form = visit.form("create")
    text = "It may do nothing until a rule says so. Password and access key are made up, and shown once."
    return form.dialog(
        "Create a user…", "Create a user", tag("p", text),
        form.text("name", "Name", required=True, maxlength=256, spellcheck="false"),
        form.check("key", "With an access key, for SQS", checked=True),
        form.own_password(), submit="Create",
    )  # fmt: skip


@access_page.action("create")
async def create(visit: Visit, form: Form) -> Done:
    body = {"name": form.get("name", "").strip(), "access_key": "key" in form}
    made = await visit.change(user_changes.create_user, body)
    onward = tag("p", "Say what it may do: ", widgets.link(made.name, "access", made.name), ".")
    return Done(f"{made.name} was created.", body=[secret(made), onward])
