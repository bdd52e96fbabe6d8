"""A message's life as a picture: how many are where, in one bar from the log to the dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from postroad.gateway.console import widgets, words
from postroad.gateway.rest.subscriptions import SubscriptionCounts
from postroad.markup import Html, Node, tag

if TYPE_CHECKING:
    from postroad.gateway.console.visit import Visit

WIDTH: Final = 1000
HEIGHT: Final = 26
NARROWEST: Final = 6.0  # of what there is any of: it can be seen
MEANINGS: Final = {
    "log": "in the log, not yet looked at",
    "ready": "can go out now",
    "waiting": "behind others of their key",
    "delayed": "their time has not come",
    "flight": "held by consumers",
    "dead": "given up",
}


def bar(visit: Visit, name: str, counts: SubscriptionCounts) -> Html:
    known = counts.ready + counts.waiting + counts.delayed + counts.in_flight + counts.dying
    shares = {
        "log": max(0, counts.lag - known),
        "ready": counts.ready,
        "waiting": counts.waiting,
        "delayed": counts.delayed,
        "flight": counts.in_flight,
        "dead": (counts.dead or 0) + counts.dying,
    }
    names = {"log": "In the log", "flight": "In flight", "dead": "Dead letters"}
    legend = [
        tag(
            "li", tag("span", class_=f"swatch life-{share}"),
            tag("strong", words.count(number)), " ",
            _named(names.get(share, share.capitalize()), share, name),
            tag("small", MEANINGS[share]),
        )
        for share, number in shares.items()
    ]  # fmt: skip
    said = ", ".join(f"{number} {MEANINGS[share]}" for share, number in shares.items() if number)
    return visit.live(
        "life", "div", _picture(shares, said or "nothing to do"), tag("ul", legend, class_="legend")
    )


def _named(text: str, share: str, name: str) -> Node:
    return widgets.link(text, "subscriptions", name, "dead-letters") if share == "dead" else text


def _picture(shares: dict[str, int], said: str) -> Html:
    total = sum(shares.values())
    parts: list[Node] = []
    if total:
        present = {share: number for share, number in shares.items() if number}
        spare = WIDTH - NARROWEST * len(present)
        at = 0.0
        for share, number in present.items():
            width = NARROWEST + spare * number / total
            parts.append(
                tag("rect", x=f"{at:.1f}", y=0, width=f"{width:.1f}", height=HEIGHT, class_=f"life-{share}")
            )
            at += width
    else:
        parts.append(tag("rect", x=0, y=0, width=WIDTH, height=HEIGHT, class_="life-none"))
    return tag(
        "svg", parts, class_="life", viewBox=f"0 0 {WIDTH} {HEIGHT}", preserveAspectRatio="none", role="img",
        aria_label=said,
    )  # fmt: skip
