"""What pages are put together from: tables, lists of facts, badges, small charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from postroad.gateway.console.payloads import spelled
from postroad.markup import Html, Node, tag

if TYPE_CHECKING:
    from postroad.gateway.console.visit import Visit

SPARK_WIDTH: Final = 120
SPARK_HEIGHT: Final = 24


def path(*parts: str) -> str:
    """An address of the console: `path("topics", "a b")` is /console/topics/a%20b."""
    return "/".join(["/console", *(quote(part, safe="") for part in parts)])


def link(text: Node, *parts: str, **query: object) -> Html:
    asked = urlencode({name: value for name, value in query.items() if value not in (None, "")})
    shown = spelled(text) if isinstance(text, str) and not isinstance(text, Html) else text
    return tag("a", shown, href=path(*parts) + (f"?{asked}" if asked else ""))


def button_link(text: str, *parts: str) -> Html:
    return tag("a", text, href=path(*parts), class_="button")


def table(
    visit: Visit,
    id_: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, Sequence[Node]]],
    *,
    empty: Node = "Nothing here.",
    numbers: Iterable[int] = (),
    caption: str = "",
) -> Html:
    """A table whose rows follow what happens. A row has a name of its own and a cell for each column; in the
    columns `numbers` there are numbers. Rows keep to the page while only their contents change."""
    right = frozenset(numbers)
    made = [
        visit.live(
            f"{id_}-{name}",
            "tr",
            [
                tag("td", cell, class_="number" if column in right else None)
                for column, cell in enumerate(cells)
            ],
        )
        for name, cells in rows
    ]
    head = [
        tag("th", column, scope="col", class_="number" if index in right else None)
        for index, column in enumerate(columns)
    ]
    if not rows:
        made = [tag("tr", tag("td", empty, colspan=len(columns), class_="empty"), class_="nothing")]
    whole = tag(
        "table",
        tag("caption", caption, class_="unseen") if caption else None,
        tag("thead", tag("tr", head)),
        tag("tbody", made),
    )
    # Scrolls by itself on narrow screens, by keyboard too.
    return visit.frame(
        id_, [name for name, _ in rows],
        tag("div", whole, id=id_, class_="scroll", tabindex="0", role="region", aria_label=caption or id_),
    )  # fmt: skip


def still_table(
    id_: str,
    columns: Sequence[str],
    rows: Sequence[tuple[str, Sequence[Node]]],
    *,
    caption: str,
    numbers: Iterable[int] = (),
    empty: Node = "Nothing here.",
    body_id: str | None = None,
) -> Html:
    """A table that a tick leaves alone, such as one with forms in it."""
    right = ["number" if column in frozenset(numbers) else None for column in range(len(columns))]
    head = [
        tag("th", column or tag("span", "Actions", class_="unseen"), scope="col", class_=class_)
        for column, class_ in zip(columns, right, strict=True)
    ]
    body = [
        tag(
            "tr", [tag("td", cell, class_=class_) for cell, class_ in zip(cells, right, strict=True)],
            id=f"{id_}-{name}",
        )
        for name, cells in rows
    ]  # fmt: skip
    if not rows:
        body = [tag("tr", tag("td", empty, colspan=len(columns), class_="empty"), class_="nothing")]
    whole = tag(
        "table", tag("caption", caption, class_="unseen"), tag("thead", tag("tr", head)),
        tag("tbody", body, id=body_id),
    )  # fmt: skip
    return tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption, id=id_)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[Node]]) -> Html:
    """A small one that stays as it is."""
    head = tag("tr", [tag("th", column, scope="col") for column in columns])
    body = [tag("tr", [tag("td", cell) for cell in row]) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="scroll", tabindex="0")


def facts(*pairs: tuple[str, Node]) -> Html:
    """Names with what they are: a description list."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs], class_="facts")


def figure(visit: Visit, id_: str, label: str, value: Node, note: Node = None, kind: str = "") -> Html:
    """A number that is looked at from afar."""
    return visit.live(
        id_, "div", tag("dt", label), tag("dd", value, tag("small", note) if note else None),
        class_=f"figure {kind}".strip(),
    )  # fmt: skip


def figures(*each: Html) -> Html:
    return tag("dl", each, class_="figures")


def badge(text: str, kind: str = "") -> Html:
    """`kind`: good, warn, bad, or nothing in particular."""
    return tag("span", text, class_=f"badge {kind}".strip())


def notice(kind: str, *children: Node) -> Html:
    return tag("div", children, class_=f"notice {kind}")


def section(title: str, *children: Node, actions: Node = None) -> Html:
    head = tag("div", tag("h2", title), tag("div", actions, class_="actions"), class_="head")
    return tag("section", head, children)


def spark(values: Sequence[float | None], label: str) -> Html:
    """A line without axes, as high as its highest value."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return tag("span", "", class_="spark")
    highest = max(*known, 1e-9)
    step = SPARK_WIDTH / max(1, len(values) - 1)
    points = " ".join(
        f"{index * step:.1f},{SPARK_HEIGHT - 1 - value / highest * (SPARK_HEIGHT - 2):.1f}"
        for index, value in enumerate(values)
        if value is not None
    )
    return tag(
        "svg", tag("polyline", points=points), class_="spark", viewBox=f"0 0 {SPARK_WIDTH} {SPARK_HEIGHT}",
        width=SPARK_WIDTH, height=SPARK_HEIGHT, role="img", aria_label=label,
    )  # fmt: skip


def search_field(name: str, label: str, value: str, **more: object) -> Html:
    """What `/` jumps to."""
    field = tag(
        "input", id=name, name=name, type="search", value=value, data_search=True, spellcheck="false",
        autocomplete="off", **more,
    )  # fmt: skip
    return tag("p", tag("label", label, for_=name), field, class_="field")


def toggle(name: str, label: str, on: bool) -> Html:
    """A box in a form that is sent as soon as it is ticked."""
    box = tag("input", type="checkbox", name=name, value="yes", checked=on, data_submits=True)
    return tag("p", tag("label", box, " ", label))


def pager(visit: Visit, following: str | None, name: str = "after") -> Html:
    """A way to the next page of a list, and back to its beginning."""
    links: list[Node] = []
    query = {key: value for key, value in visit.query.items() if key not in (name, "live")}
    if visit.query.get(name):
        links.append(tag("a", "First page", href="?" + urlencode(query)))
    if following is not None:
        links.append(tag("a", "Next page", href="?" + urlencode({**query, name: following}), rel="next"))
    return tag("nav", links, class_="pager", aria_label="Pages") if links else Html("")
