"""HTML and SVG, escaped by construction: text becomes markup only by `tag`, which escapes it.

Keys, reasons and names of groups are whatever their senders wrote, so nothing here joins strings. Reports and
the gateway's console are made with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from typing import Final

_VOID_HTML: Final = frozenset({"meta", "br", "hr", "input", "link", "img"})
_VOID_SVG: Final = frozenset({"rect", "line", "path", "polyline"})


class Html(str):
    """Markup. Any other string is text."""

    __slots__ = ()


Node = Html | str | Iterable["Node"] | None
DOCTYPE: Final = Html("<!doctype html>")


def tag(name: str, /, *children: Node, **attributes: object) -> Html:
    """An element. `class_` is written `class`, and `stroke_width` `stroke-width`; None and False leave an
    attribute out, True writes its name alone."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID_HTML:
        return Html(f"<{name}{written}>")
    if name in _VOID_SVG:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(nodes: Iterable[Node]) -> Html:
    return Html("".join(map(_written, nodes)))


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = _attribute_name(key)
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


@cache
def _attribute_name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _written(node: Node) -> str:
    if node is None:
        return ""
    if isinstance(node, Html):
        return str(node)
    return escape(node) if isinstance(node, str) else join(node)
