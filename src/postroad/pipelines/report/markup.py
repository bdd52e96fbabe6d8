"""HTML and SVG, escaped by construction: text becomes markup only by `tag`, which escapes it.

Keys, reasons and names of groups are whatever their senders wrote, so nothing here joins strings.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

_VOID: Final = frozenset({"meta", "rect", "line", "br"})


class Html(str):
    """Markup. Any other string is text."""

    __slots__ = ()


Node = Html | str | Iterable["Node"] | None


def tag(name: str, /, *children: Node, **attributes: object) -> Html:
    """An element. `class_` is written `class`, and `stroke_width` `stroke-width`; None leaves one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{written}>" if name in ("meta", "br") else f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def join(nodes: Iterable[Node]) -> Html:
    return Html("".join(map(_written, nodes)))


def _written(node: Node) -> str:
    if node is None:
        return ""
    if isinstance(node, Html):
        return str(node)
    return escape(node) if isinstance(node, str) else join(node)
