"""How a page of the console is declared.

    @page("/console/topics/{topic}", section="topics")
    async def topic_page(visit: Visit) -> View: ...

    @topic_page.action("delete")
    async def delete(visit: Visit, form: Form) -> Done: ...

A page is what its URL says: whatever is chosen on it, a filter or where to begin, stands in the query. An
action comes by POST to the page's own URL with its name in the field `do`; afterwards the page is made anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from postroad.markup import Node

if TYPE_CHECKING:
    from postroad.gateway.console.visit import Visit

Form = Mapping[str, str]


@dataclass(frozen=True)
class View:
    """What a page shows. `above`: the pages that lead to it, each with its name and its address. `is_live`:
    it follows what happens, now that it shows this."""

    title: str
    body: Node
    above: tuple[tuple[str, str], ...] = ()
    is_live: bool = True


class Done(NamedTuple):
    """What an action has done, in words; and where to go on, if its page is the right one no longer.
    `body`: what is shown once, such as a new secret."""

    text: str
    goto: str = ""
    body: Node = None


Render = Callable[["Visit"], Awaitable[View]]
Act = Callable[["Visit", Form], Awaitable[Done]]


@dataclass(frozen=True)
class Page:
    """`section`: the entry of the navigation that it belongs to. `is_live`: it follows what happens while
    somebody looks."""

    path: str
    section: str
    render: Render
    is_live: bool = True
    actions: dict[str, Act] = field(default_factory=dict)

    def action(self, name: str) -> Callable[[Act], Act]:
        def declare(act: Act) -> Act:
            assert name not in self.actions, name
            self.actions[name] = act
            return act

        return declare


def page(path: str, section: str, *, is_live: bool = True) -> Callable[[Render], Page]:
    def declare(render: Render) -> Page:
        return Page(path, section, render, is_live)

    return declare
