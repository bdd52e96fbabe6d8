"""One topic: how it does, its partitions and configs, and what can be done with it."""

from __future__ import annotations

from typing import Any, Final

from postroad.gateway.console import reading, widgets, words
from postroad.gateway.console.charts import IN, chart
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.pages.config_table import changes_of, config_section, difference
from postroad.gateway.console.pages.topics import readers
from postroad.gateway.console.publishing import message_of, publish_dialog
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import history, publish, topic_contents, topics
from postroad.gateway.rest.topics import TopicDetails
from postroad.gateway.security.rights import ALTER, ALTER_CONFIGS, DELETE, READ, WRITE
from postroad.markup import Html, Node, tag

COLUMNS: Final = ("Partition", "Leader", "First offset", "Next offset", "Offsets")
RETENTION: Final = "retention.ms"


@page("/console/topics/{topic}", "topics")
async def topic_page(visit: Visit) -> View:
    name = visit.path["topic"]
    details: TopicDetails = await visit.call(topics.get_topic, topic=name)
    found = await visit.call(history.list_figures, {"of": "topic", "prefix": name, "limit": 1})
    figures = found.figures[0] if found.figures and found.figures[0].name == name else None
    return View(
        name,
        [
            _figures(visit, details, figures),
            tag("div", _actions(visit, details), class_="tools"),
            chart("topic", name, IN, "Messages in, a second"),
            widgets.section("Partitions", _partitions(visit, details)),
            await config_section(visit, "topic", details.configs, details.overrides, _may_alter(visit, name)),
        ],
        above=(("Topics", widgets.path("topics")),),
    )


# --- what can be done


@topic_page.action("publish")
async def publish_one(visit: Visit, form: Form) -> Done:
    answer = await visit.change(publish.publish, message_of(form), topic=visit.path["topic"])
    sent = answer.messages[0]
    return Done(f"Published to partition {sent.partition}, offset {sent.offset}.")


@topic_page.action("partitions")
async def add_partitions(visit: Visit, form: Form) -> Done:
    count = reading.whole_number(form.get("count", ""), "Partitions")
    await visit.change(topic_contents.add_partitions, {"count": count}, topic=visit.path["topic"])
    return Done(f"There are {count} partitions now.")


@topic_page.action("delete-records")
async def delete_records(visit: Visit, form: Form) -> Done:
    name = visit.path["topic"]
    reading.check_typed(form, name)
    body: dict[str, Any] = {}
    if form.get("before") == "all":
        body["all"] = True
    elif form.get("before") == "offset":
        offset = reading.whole_number(form.get("offset", ""), "Offset")
        body["offsets"] = {str(reading.whole_number(form.get("partition", ""), "Partition")): offset}
    else:
        body["time_ms"] = reading.moment_ms(form.get("time", ""), "Time")
    would = await visit.preview(topic_contents.delete_records, {**body, "dry_run": True}, topic=name)
    rows = [
        [
            str(each.partition),
            words.count(each.start_before),
            words.count(each.start_after),
            words.count(each.records),
        ]
        for each in would.partitions
    ]
    counts = widgets.plain_table(("Partition", "First offset now", "Afterwards", "Records that go"), rows)
    visit.review(form, f"Delete {words.plural(would.records, 'record')}", counts)
    gone = await visit.change(topic_contents.delete_records, body, topic=name)
    return Done(f"{words.count(gone.records)} records were deleted.")


@topic_page.action("configs")
async def alter_configs(visit: Visit, form: Form) -> Done:
    name = visit.path["topic"]
    before: TopicDetails = await visit.call(topics.get_topic, topic=name)
    changes = changes_of(form)
    visit.review(form, "Save", difference(changes, before.configs))
    await visit.change(topics.alter_topic, {"configs": changes}, topic=name)
    return Done(f"Changed: {', '.join(sorted(changes))}.")


@topic_page.action("delete")
async def delete(visit: Visit, form: Form) -> Done:
    name = visit.path["topic"]
    reading.check_typed(form, name)
    await visit.change(topics.delete_topic, topic=name)
    return Done(f"The topic {name} was deleted.", widgets.path("topics"))


# --- what is shown


def _figures(visit: Visit, details: TopicDetails, found: history.Figures | None) -> Html:
    values = found.values if found is not None else {}
    ends = [part for part in details.partitions if part.start is not None and part.end is not None]
    offsets = sum((part.end or 0) - (part.start or 0) for part in ends)
    retention = details.configs.get(RETENTION)
    kept = "for ever" if retention == "-1" else words.span_ms(float(retention)) if retention else words.NONE
    return widgets.figures(
        widgets.figure(visit, "messages", "Messages", words.count(offsets), _note(details)),
        widgets.figure(visit, "size", "Size", words.size(values.get("size_bytes")), "on its leaders' disks"),
        widgets.figure(visit, "in", "In, a second", words.rate(values.get("in"))),
        widgets.figure(visit, "kept", "Kept", kept),
        widgets.figure(visit, "readers", "Readers", readers(found.readers if found is not None else [])),
    )


def _note(details: TopicDetails) -> str | None:
    is_compacted = "compact" in (details.configs.get("cleanup.policy") or "")
    return "offsets; it is compacted" if is_compacted else None


def _partitions(visit: Visit, details: TopicDetails) -> Html:
    rows: list[tuple[str, list[Node]]] = [
        (
            str(part.partition),
            [
                widgets.link(
                    str(part.partition), "topics", details.name, "messages", partition=part.partition
                ),
                str(part.leader) if part.leader >= 0 else widgets.badge("no leader", "bad"),
                words.count(part.start),
                words.count(part.end),
                words.count(None if part.end is None or part.start is None else part.end - part.start),
            ],
        )
        for part in details.partitions
    ]
    return widgets.table(visit, "partitions", COLUMNS, rows, numbers=range(5), caption="Partitions")


def _may_alter(visit: Visit, name: str) -> bool:
    return visit.may_topic(name, ALTER_CONFIGS)


def _actions(visit: Visit, details: TopicDetails) -> list[Node]:
    name = details.name
    shown: list[Node] = []
    if visit.may_topic(name, READ):
        shown.append(tag("a", "Messages", href=widgets.path("topics", name, "messages"), class_="button"))
    if visit.may_topic(name, WRITE):
        shown.append(publish_dialog(visit, name))
    if visit.may_topic(name, ALTER):
        shown.append(_more_partitions(visit, details))
    if visit.may_topic(name, DELETE) and visit.may_lose:
        shown += [_fewer_records(visit, name), _delete(visit, details)]
    return shown


def _more_partitions(visit: Visit, details: TopicDetails) -> Html:
    form = visit.form("partitions")
    now = len(details.partitions)
    text = (
        f"There are {now} now, and there can't be fewer again. Messages of a key may go to another partition "
        "from then on, so their order is kept only within each partition."
    )
    field = form.number(
        "count", "How many from now on", now + 1, min=str(now + 1), max="10000", required=True
    )
    return form.dialog("Add partitions…", "Add partitions", tag("p", text), field, submit="Add")


def _fewer_records(visit: Visit, name: str) -> Html:
    form = visit.form("delete-records")
    options = [
        ("time", "older than a time"),
        ("offset", "before an offset"),
        ("all", "all that are there now"),
    ]
    return form.dialog(
        "Delete records…", f"Delete records of {name}",
        tag("p", "They are gone for every reader, and can't be had back. You are first told how many."),
        form.choice("before", "Records", options, "time"),
        form.text("time", "Time", hint="Such as 2026-03-01T08:00 (UTC), or 2h for two hours ago."),
        tag(
            "div",
            form.number("partition", "Partition", "0", min="0"),
            form.number("offset", "Offset", min="0"),
            class_="pair",
        ),
        form.typed_name(name),
        submit="Count first", danger=True,
    )  # fmt: skip


def _delete(visit: Visit, details: TopicDetails) -> Html:
    form = visit.form("delete")
    offsets = sum((part.end or 0) - (part.start or 0) for part in details.partitions)
    text = f"The topic goes with {words.plural(offsets, 'message')}, for every reader. This can't be undone."
    return form.dialog(
        "Delete…", f"Delete {details.name}", tag("p", text), form.typed_name(details.name),
        submit="Delete", danger=True,
    )  # fmt: skip
