"""One topic: its partitions and configs, and what can be done with it."""

from __future__ import annotations

from postroad.gateway.console import reading, widgets, words
from postroad.gateway.console.page import Done, Form, View, page
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import topics
from postroad.gateway.security.rights import DELETE
from postroad.markup import Html, tag


@page("/console/topics/{topic}", "topics")
async def topic_page(visit: Visit) -> View:
    name = visit.path["topic"]
    details = await visit.call(topics.get_topic, topic=name)
    rows = [
        (
            str(part.partition),
            [
                str(part.partition),
                str(part.leader) if part.leader >= 0 else widgets.badge("no leader", "bad"),
                words.count(part.start),
                words.count(part.end),
                words.count(None if part.end is None or part.start is None else part.end - part.start),
            ],
        )
        for part in details.partitions
    ]
    return View(
        name,
        [
            widgets.section(
                "Partitions",
                widgets.table(
                    visit, "partitions", ["Partition", "Leader", "Start", "End", "Offsets"], rows,
                    numbers=[0, 1, 2, 3, 4], caption="Partitions",
                ),
                actions=_delete(visit, name),
            ),
        ],
        above=(("Topics", widgets.path("topics")),),
    )  # fmt: skip


@topic_page.action("delete")
async def delete(visit: Visit, form: Form) -> Done:
    name = visit.path["topic"]
    reading.check_typed(form, name)
    await visit.change(topics.delete_topic, topic=name)
    return Done(f"The topic {name} was deleted.", widgets.path("topics"))


def _delete(visit: Visit, name: str) -> Html:
    if not visit.may_topic(name, DELETE):
        return Html("")
    form = visit.form("delete")
    text = "The topic and all of its messages are deleted, for every reader. This can't be undone."
    return form.dialog(
        "Delete…", f"Delete {name}", tag("p", text), form.typed_name(name), submit="Delete", danger=True
    )
