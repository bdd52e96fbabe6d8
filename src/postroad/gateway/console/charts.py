"""Charts of what was sampled: drawn by uPlot in the browser from what `/v1/history` answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from postroad.gateway.console.assets import address
from postroad.markup import Html, tag

IN: Final = {"in": "Messages in"}


def chart(kind: str, name: str, measures: Mapping[str, str], label: str, id_: str = "samples") -> Html:
    """The last hour, and a button for the last day. `measures`: with their names in the legend. A script
    fills it; ticks leave it alone."""
    return tag(
        "figure",
        tag(
            "figcaption", tag("span", label),
            tag("span", _button("1h", "Hour", on=True), _button("24h", "Day", on=False), class_="spans"),
        ),
        tag("div", class_="plot", role="img", aria_label=f"{label}: a chart"),
        tag("p", "Nothing was sampled yet.", class_="hint none"),
        tag("script", src=address("uPlot.iife.min.js"), defer=True),
        tag("script", src=address("chart.js"), defer=True),
        tag("link", rel="stylesheet", href=address("uPlot.min.css")),
        class_="chart", data_of=kind, data_name=name, data_measures=json.dumps(list(measures)),
        data_labels=json.dumps(list(measures.values())), id=f"chart-{id_}", hx_morph_skip="yes",
    )  # fmt: skip


def _button(last: str, text: str, *, on: bool) -> Html:
    pressed = "true" if on else "false"
    return tag("button", text, type="button", class_="quiet", data_last=last, aria_pressed=pressed)
