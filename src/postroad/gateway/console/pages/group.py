"""One consumer group: its members, its lag, and how it is moved or deleted."""

from __future__ import annotations

from typing import Any, Final

from postroad.gateway.console import charts, reading, widgets, words
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.pages.groups import state
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import consumer_groups, group_changes
from postroad.gateway.rest.consumer_groups import GroupDetails
from postroad.gateway.rest.group_changes import GroupMoved
from postroad.gateway.security.rights import DELETE, READ
from postroad.markup import Html, Node, tag

PARTITION_COLUMNS: Final = ("Topic", "Partition", "Committed", "End", "Lag", "Oldest unread", "Member")
MEMBER_COLUMNS: Final = ("Member", "Client", "Address", "Partitions")
MOVED_COLUMNS: Final = ("Topic", "Partition", "Before", "After", "Effect")
MOVED_SHOWN: Final = 50
CHOICES: Final = (
    ("", "Choose …"),
    ("earliest", "The beginning"),
    ("latest", "The end: passes over all that is unread"),
    ("time", "A time"),
    ("offset", "An offset"),
    ("shift", "So many messages on, or back (−)"),
)


@page("/console/groups/{group}", "groups")
async def group_page(visit: Visit) -> View:
    name = visit.path["group"]
    details = await visit.call(consumer_groups.get_group, group=name)
    owners = {
        (topic, partition): member for member in details.members for topic, partition in member.partitions
    }
    partitions: list[tuple[str, list[Node]]] = [
        (
            f"{part.topic}-{part.partition}",
            [
                widgets.link(part.topic, "topics", part.topic),
                str(part.partition),
                words.count(part.committed),
                words.count(part.end),
                words.count(part.messages),
                words.span(part.seconds) if part.messages else words.NONE,
                _member(owners.get((part.topic, part.partition))),
            ],
        )
        for part in details.partitions
    ]
    members: list[tuple[str, list[Node]]] = [
        (member.id, [member.id, member.client_id, member.host.lstrip("/"), _assigned(member)])
        for member in details.members
    ]
    return View(
        name,
        [
            _figures(visit, details),
            _charts(name),
            widgets.section(
                "Partitions",
                widgets.table(
                    visit, "partitions", PARTITION_COLUMNS, partitions, numbers=[1, 2, 3, 4, 5],
                    caption="Partitions", empty="Nothing was committed yet.",
                ),
                actions=[_reset(visit, details), " ", _delete(visit, details)],
            ),
            widgets.section(
                "Members",
                widgets.table(
                    visit, "members", MEMBER_COLUMNS, members, caption="Members",
                    empty="No consumer is connected.",
                ),
            ),
        ],
        above=(("Consumer groups", widgets.path("groups")),),
    )  # fmt: skip


def _figures(visit: Visit, details: GroupDetails) -> Html:
    oldest = max((part.seconds or 0.0 for part in details.partitions if part.messages), default=None)
    return widgets.figures(
        widgets.figure(visit, "state", "State", state(details.state), f"{details.type} protocol"),
        widgets.figure(visit, "lag", "Lag", words.count(details.lag), "messages"),
        widgets.figure(visit, "oldest", "Oldest unread", words.span(oldest)),
        widgets.figure(visit, "count", "Members", words.count(len(details.members))),
    )


def _charts(name: str) -> Html:
    """The last hour or day: in messages, and in seconds."""
    return tag(
        "section",
        tag("h2", "Lag"),
        charts.chart("group", name, {"lag": "Messages"}, "Messages not yet read", "lag"),
        charts.chart("group", name, {"lag_seconds": "Seconds"}, "Age of the oldest, in seconds", "seconds"),
    )


def _member(member: consumer_groups.GroupMember | None) -> Node:
    return words.NONE if member is None else member.client_id or member.id


def _assigned(member: consumer_groups.GroupMember) -> str:
    by_topic: dict[str, list[str]] = {}
    for topic, partition in sorted(member.partitions):
        by_topic.setdefault(topic, []).append(str(partition))
    found = "; ".join(f"{topic} {', '.join(numbers)}" for topic, numbers in by_topic.items())
    return found or words.NONE


# --- moving it


@group_page.action("reset")
async def reset(visit: Visit, form: Form) -> Done:
    name = visit.path["group"]
    body = _asked(form)
    if not visit.describes:
        planned: GroupMoved = await visit.preview(
            group_changes.reset_group, {**body, "dry_run": True}, group=name
        )
        visit.review(form, "Move it", _effect(planned))
    moved: GroupMoved = await visit.change(group_changes.reset_group, body, group=name)
    return Done(f"{words.plural(len(moved.partitions), 'partition')} were moved.")


def _asked(form: Form) -> dict[str, Any]:
    """The request. Raises Refused."""
    body: dict[str, Any] = {}
    where, value = form.get("to", ""), form.get("value", "").strip()
    if where in ("earliest", "latest"):
        body["to"] = where
    elif where == "time":
        body["time_ms"] = reading.moment_ms(value, "Value")
    elif where in ("offset", "shift"):
        body[where] = reading.whole_number(value.replace("\u2212", "-"), "Value")
    else:
        raise reading.refused("Choose where to.")
    if which := form.get("partition", ""):
        partition, _, topic = which.partition(":")
        body["partitions"] = [[topic, reading.whole_number(partition, "Partition")]]
    return body


def _effect(moved: GroupMoved) -> Node:
    again = sum(each.messages for each in moved.partitions if each.messages > 0)
    passed = -sum(each.messages for each in moved.partitions if each.messages < 0)
    rows = [
        [
            each.topic,
            str(each.partition),
            words.count(each.before),
            words.count(each.after),
            _says(each.messages),
        ]
        for each in moved.partitions[:MOVED_SHOWN]
    ]
    left = len(moved.partitions) - MOVED_SHOWN
    read_again, left_out = words.plural(again, "message"), words.plural(passed, "message")
    return [
        tag("p", f"{read_again} will be read again, {left_out} passed over."),
        widgets.plain_table(MOVED_COLUMNS, rows),
        tag("p", f"and {left} more partitions") if left > 0 else None,
    ]


def _says(messages: int) -> str:
    if not messages:
        return "stays"
    return f"{words.count(abs(messages))} {'again' if messages > 0 else 'passed over'}"


def _reset(visit: Visit, details: GroupDetails) -> Html:
    if not visit.may_group(details.name, READ):
        return Html("")
    if details.members:
        return tag("span", "It has members: stop them to move it or delete it.", class_="soft")
    form = visit.form("reset")
    partitions = [("", "All partitions"), *_choices(details)]
    return form.dialog(
        "Move…",
        f"Move {details.name}",
        tag("p", "Where its consumers go on when they come back. You see what changes before anything does."),
        form.choice("to", "Where to", CHOICES),
        form.text(
            "value", "Value",
            hint="For a time: 2026-03-01T08:00, or 2h (ago). For an offset, or so many messages: a number.",
        ),
        form.choice("partition", "Which", partitions),
        submit="Show what changes", wide=True,
    )  # fmt: skip


def _choices(details: GroupDetails) -> list[tuple[str, str]]:
    return [
        (f"{part.partition}:{part.topic}", f"{part.topic}, partition {part.partition}")
        for part in details.partitions
    ]


# --- deleting it


@group_page.action("delete")
async def delete(visit: Visit, form: Form) -> Done:
    name = visit.path["group"]
    reading.check_typed(form, name)
    await visit.change(group_changes.delete_group, group=name)
    return Done(f"The group {name} was deleted.", widgets.path("groups"))


def _delete(visit: Visit, details: GroupDetails) -> Html:
    if details.members or not visit.may_lose or not visit.may_group(details.name, DELETE):
        return Html("")
    form = visit.form("delete")
    committed = words.plural(len(details.partitions), "partition")
    text = (
        f"Its committed offsets of {committed} are forgotten. Consumers that come back begin where their "
        "auto.offset.reset says: at the end, or with everything again."
    )
    return form.dialog(
        "Delete…", f"Delete {details.name}", tag("p", text), form.typed_name(details.name), submit="Delete",
        danger=True,
    )  # fmt: skip
