"""One user: passwords, access keys, the rules that name it, and all of that changed.

Nodes are asked in the visitor's name, so each form takes the visitor's password (`rest/in_person.py`). What
is secret is in the answer to the form, which is stored nowhere, and on no page that is loaded again.
"""

from __future__ import annotations

from typing import Any, Final

from postroad.gateway.console import reading, widgets, words
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import access_rules, acl_changes, user_changes
from postroad.gateway.rest.access_rules import OPERATIONS, TYPES, AclDetails, UserDetails, UserKey
from postroad.gateway.rest.problems import NOT_FOUND, Refused
from postroad.gateway.rest.user_changes import UserSecrets
from postroad.markup import Html, Node, tag
from postroad.security.principals import EVERYBODY, USER
from postroad.security.resources import CLUSTER_NAME

KEY_COLUMNS: Final = ("Access key", "State", "")
RULE_COLUMNS: Final = ("Permission", "May", "On", "From", "")
ALL_GROUPS: Final = "*"
OTHER: Final = "other"
PRESETS: Final = (
    ("publish", "publish to a topic"),
    ("consume", "consume from a topic, with any group"),
    ("queue", "make an SQS queue, send to it and receive from it"),
    (OTHER, "something else, chosen below"),
)
# Type of the resource, operations with it, and which name: the one that was typed, if none is here.
GRANTS: Final = {
    "publish": (("topic", ("write",), ""),),
    "consume": (("topic", ("read",), ""), ("group", ("read",), ALL_GROUPS)),
    "queue": (("topic", ("create", "write", "read"), ""), ("group", ("read", "alter-configs"), "")),
}
ANY_NAME, ANY_HOST = "*", "*"


@page("/console/access/{user}", "access")
async def user_page(visit: Visit) -> View:
    name = visit.path["user"]
    found = await visit.call(access_rules.list_users)
    rules = [each for each in (await visit.call(access_rules.list_acls)).acls if _names(each, name)]
    user = next((each for each in found.users if each.name == name), None)
    if user is None and not rules:
        raise Refused(NOT_FOUND, f"There is no user {name!r}, and no rule names one.")
    changes = visit.may_alter_cluster
    return View(
        name,
        [
            _facts(user),
            tag("div", _actions(visit, user), class_="tools") if user is not None and changes else None,
            _keys(visit, user, changes),
            widgets.section(
                "Rules", _rules(visit, rules, changes), actions=[_allow(visit, name)] if changes else None
            ),
        ],
        above=(("Access", widgets.path("access")),),
        is_live=False,
    )


def _names(rule: AclDetails, name: str) -> bool:
    return rule.principal in (f"{USER}:{name}", EVERYBODY)


# --- what can be done


@user_page.action("password")
async def password(visit: Visit, form: Form) -> Done:
    name = visit.path["user"]
    made = await visit.change(user_changes.change_password, {}, user=name)
    return Done(f"{name} has another password. What was let in by the old one has ended.", body=secret(made))


@user_page.action("delete")
async def delete(visit: Visit, form: Form) -> Done:
    name = visit.path["user"]
    reading.check_typed(form, name)
    await visit.change(user_changes.delete_user, user=name)
    return Done(f"{name} was deleted.", goto=widgets.path("access"))


@user_page.action("key")
async def make_key(visit: Visit, form: Form) -> Done:
    name = visit.path["user"]
    made = await visit.change(user_changes.create_key, user=name)
    return Done(f"{name} has one more access key.", body=secret(made))


@user_page.action("disable")
async def disable(visit: Visit, form: Form) -> Done:
    key = form.get("which", "")
    await visit.change(user_changes.disable_key, key=key)
    return Done(f"What is signed with {key} is refused from now on.")


@user_page.action("enable")
async def enable(visit: Visit, form: Form) -> Done:
    key = form.get("which", "")
    await visit.change(user_changes.enable_key, key=key)
    return Done(f"What is signed with {key} is taken again.")


@user_page.action("delete-key")
async def delete_key(visit: Visit, form: Form) -> Done:
    key = form.get("which", "")
    await visit.change(user_changes.delete_key, key=key)
    return Done(f"{key} was deleted.")


@user_page.action("allow")
async def allow(visit: Visit, form: Form) -> Done:
    acls = list(_wanted(visit.path["user"], form))
    await visit.change(acl_changes.create_acls, {"acls": acls})
    return Done(f"{words.plural(len(acls), 'rule')} added.")


@user_page.action("take-back")
async def take_back(visit: Visit, form: Form) -> Done:
    rule = {name: form.get(name, "") for name in AclDetails.__struct_fields__}
    await visit.change(acl_changes.delete_acl, query=rule)
    return Done("The rule was taken back.")


def _wanted(user: str, form: Form) -> list[dict[str, Any]]:
    """The rules that a form asks for, in REST's words."""
    typed = form.get("name", "").strip()
    grants = GRANTS.get(form.get("what", ""))
    if grants is None:
        grants = ((form.get("type", ""), (form.get("operation", ""),), ""),)
    common = {
        "permission": form.get("permission", ""), "principal": f"{USER}:{user}",
        "host": form.get("host", "").strip() or ANY_HOST,
    }  # fmt: skip
    return [
        {**common, "type": type_, "operation": operation, **_resource(type_, name or typed)}
        for type_, operations, name in grants
        for operation in operations
    ]


def _resource(type_: str, name: str) -> dict[str, str]:
    """`orders*` means all names that begin so, as on the command line."""
    if type_ == "cluster":
        return {"name": CLUSTER_NAME, "pattern": "literal"}
    if not name:
        raise reading.refused("Say of which name; * means every one.")
    if name != ANY_NAME and name.endswith(ANY_NAME):
        return {"name": name[:-1], "pattern": "prefixed"}
    return {"name": name, "pattern": "literal"}


# --- what is shown


def secret(made: UserSecrets) -> Node:
    """Shown this once, each with a way to take it along."""
    shown = (
        ("Password", made.password), ("Access key", made.access_key_id),
        ("Its secret", made.secret_access_key),
    )  # fmt: skip
    lines = [
        (label, [tag("code", value, id=f"secret-{number}"), " ", _copier(label, f"#secret-{number}")])
        for number, (label, value) in enumerate(shown)
        if value is not None
    ]
    return [tag("p", "It is shown this once:"), widgets.facts(*lines)] if lines else None


def _copier(label: str, what: str) -> Html:
    return tag("button", "Copy", type="button", data_copy=what, aria_label=f"Copy {label}")


def _facts(user: UserDetails | None) -> Html:
    if user is None:
        text = "There is no user of this name who could log in by password; rules name it, as they may one "
        return widgets.notice("warn", tag("p", text, "who comes with a certificate or a token."))
    return widgets.facts(
        ("Passwords", ", ".join(user.mechanisms) or words.NONE),
        ("Super user", "yes: no rule is asked about it" if user.super else "no"),
    )


def _actions(visit: Visit, user: UserDetails) -> list[Node]:
    name = user.name
    changes, deletes, makes = visit.form("password"), visit.form("delete"), visit.form("key")
    return [
        changes.dialog(
            "New password…", f"Another password for {name}",
            tag("p", "One is made up. Connections, sessions and streams that the old one let in end."),
            changes.own_password(), submit="Make a new password", danger=True,
        ),
        makes.dialog(
            "New access key…", f"One more access key for {name}",
            tag("p", "For SQS clients. Hand it out, then disable the old one."),
            makes.own_password(), submit="Make an access key",
        ),
        deletes.dialog(
            "Delete…", f"Delete {name}",
            tag(
                "p", f"With {words.plural(len(user.keys or ()), 'access key')}; connections of the user end. "
                f"{words.plural(user.rules, 'rule')} that name it stay, and hold for who is called so next.",
            ),
            deletes.typed_name(name), deletes.own_password(), submit="Delete the user", danger=True,
        ),
    ]  # fmt: skip


def _keys(visit: Visit, user: UserDetails | None, changes: bool) -> Html | None:
    if user is None:
        return None
    rows = [(each.id, _key(visit, each, changes)) for each in user.keys or ()]
    return widgets.section(
        "Access keys",
        widgets.still_table("keys-of", KEY_COLUMNS, rows, caption="Access keys", empty="There is none."),
    )


def _key(visit: Visit, key: UserKey, changes: bool) -> list[Node]:
    badge = widgets.badge("enabled", "good") if key.enabled else widgets.badge("disabled", "bad")
    if not changes:
        return [tag("code", key.id), badge, None]
    turns = visit.form("disable" if key.enabled else "enable", key.id)
    deletes = visit.form("delete-key", key.id)
    said = "What is signed with it is refused" if key.enabled else "What is signed with it is taken again"
    return [
        tag("code", key.id),
        badge,
        tag(
            "div",
            turns.dialog(
                "Disable…" if key.enabled else "Enable…",
                f"{'Disable' if key.enabled else 'Enable'} {key.id}", tag("p", f"{said}, at once."),
                turns.own_password(), submit="Disable" if key.enabled else "Enable", label_for=key.id,
            ),
            deletes.dialog(
                "Delete…", f"Delete {key.id}", tag("p", "For good. What is signed with it is refused."),
                deletes.own_password(), submit="Delete the key", danger=True, label_for=key.id,
            ),
            class_="actions",
        ),
    ]  # fmt: skip


def _rules(visit: Visit, rules: list[AclDetails], changes: bool) -> Html:
    rows = [(str(number), _rule(visit, number, each, changes)) for number, each in enumerate(rules)]
    return widgets.still_table(
        "rules-of", RULE_COLUMNS, rows, caption="Rules", empty="No rule names this user, or everybody."
    )


def _rule(visit: Visit, number: int, each: AclDetails, changes: bool) -> list[Node]:
    kind = "bad" if each.permission == "deny" else "good"
    may: list[Node] = ["do everything" if each.operation == "all" else each.operation.replace("-", " ")]
    if each.principal == EVERYBODY:
        may.append(tag("small", " (everybody)", class_="soft"))
    back: Node = None
    if changes:
        form = visit.form("take-back", str(number))
        hidden = [
            tag("input", type="hidden", name=name, value=getattr(each, name))
            for name in AclDetails.__struct_fields__
        ]
        said = "what it allowed is refused" if each.permission == "allow" else "what it denied may be allowed"
        everybody = " It holds for everybody." if each.principal == EVERYBODY else ""
        back = form.dialog(
            "Take back…", "Take back the rule",
            tag("p", f"{each.permission} {may[0]}, {what_of(each)}: {said} from then on.{everybody}"),
            hidden, form.own_password(), submit="Take it back", danger=True, label_for=f"rule {number + 1}",
        )  # fmt: skip
    host = words.NONE if each.host == ANY_HOST else each.host
    return [widgets.badge(each.permission, kind), may, what_of(each), host, back]


def what_of(each: AclDetails) -> str:
    """What a rule is about, in words."""
    if each.type == "cluster":
        return "the cluster"
    if each.name == ANY_NAME:
        return f"every {each.type}"
    if each.pattern == "prefixed":
        return f"each {each.type} whose name begins with {each.name}"
    return f"{each.type} {each.name}"


def _allow(visit: Visit, name: str) -> Html:
    form = visit.form("allow")
    operations = [(each, each.replace("-", " ")) for each in (*OPERATIONS, acl_changes.ALL_WORD)]
    return form.dialog(
        "Add a rule…", f"Add a rule for {name}",
        form.choice("permission", "Permission", [("allow", "allow"), ("deny", "deny, whatever allows it")]),
        form.choice("what", "To", PRESETS),
        form.text("name", "Of the name", hint="orders; orders* for all that begin so; * for every one."),
        tag(
            "details", tag("summary", "Something else, and from where"),
            tag(
                "div",
                form.choice("operation", "Operation", operations),
                form.choice("type", "Of which kind", [(each, each.replace("-", " ")) for each in TYPES]),
                form.text("host", "Only from the address", hint="Empty: from anywhere."), class_="pair",
            ),
        ),
        form.own_password(), submit="Add",
    )  # fmt: skip
