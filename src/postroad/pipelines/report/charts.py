"""Charts as SVG. Each is drawn twice, for wide and for narrow screens: text that shrinks with a picture
can't be read on a phone. Colours are the page's (classes s0, s1, …), so they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from postroad.markup import Html, Node, join, tag

MINUTES_A_DAY: Final = 1440
MINUTES_A_YEAR: Final = 365 * MINUTES_A_DAY
_LEFT: Final = 64  # room for the labels of the vertical axis
_TOP: Final = 12
_BOTTOM: Final = 26
_RIGHT: Final = 16  # for half a label
_LABEL_PX: Final = 7.0  # of one character, roughly
_LABEL_GAP_PX: Final = 14.0
_TICKS: Final = 4

Format = Callable[[float], str]


class Size(NamedTuple):
    name: str
    width: int
    height: int


SIZES: Final = (Size("wide", 1000, 240), Size("narrow", 360, 210))
HALF_SIZES: Final = (Size("wide", 490, 220), Size("narrow", 360, 200))


class Column(NamedTuple):
    """One bin: a label below it, its parts from the bottom up, and what is said about it."""

    label: str
    parts: Sequence[float]
    title: str


class Labels(NamedTuple):
    """Which columns get theirs where there is no room for all: every nth, counted from `phase`.

    `nths` are those that make round numbers; any if there are none given.
    """

    phase: int = 0
    nths: Sequence[int] = ()


ANY: Final = Labels()


def columns_chart(
    columns: Sequence[Column],
    describe: str,
    show: Format,
    sizes: Sequence[Size] = SIZES,
    *,
    base: int = 10,
    labels: Labels = ANY,
) -> Html:
    """Stacked columns. `base` 1024 makes round numbers of bytes."""
    return join(
        tag("div", _drawn(columns, describe, show, size, base, labels), class_=size.name) for size in sizes
    )


def time_labels(starts: Sequence[datetime], step_min: int) -> list[str]:
    """The time of day, or the day where bins are that long or where one begins; or the year."""
    with_days = starts[0].date() != starts[-1].date()
    labels = []
    for at in starts:
        if step_min >= MINUTES_A_YEAR:
            labels.append(at.strftime("%Y"))
        elif step_min >= MINUTES_A_DAY or (with_days and at.hour == 0 and at.minute == 0):
            labels.append(at.strftime("%-d %b"))
        else:
            labels.append(at.strftime("%H:%M"))
    return labels


def _drawn(
    columns: Sequence[Column], describe: str, show: Format, size: Size, base: int, labels: Labels
) -> Html:
    highest = max((sum(column.parts) for column in columns), default=0)
    step = nice_step(highest, base)
    top = max(1, math.ceil(highest / step)) * step
    height = size.height - _TOP - _BOTTOM
    pitch = (size.width - _LEFT - _RIGHT) / max(1, len(columns))
    every = _label_every(columns, pitch, labels.nths)
    body: list[Node] = [_grid(top, step, size, height, show)]
    for topic_partition, column in enumerate(columns):
        left = _LEFT + topic_partition * pitch
        body.append(_column(column, left, pitch, height, top))
        if (topic_partition + labels.phase) % every == 0:
            body.append(_label(column.label, left + pitch / 2, size))
    return tag("svg", body, viewBox=f"0 0 {size.width} {size.height}", role="img", aria_label=describe)


def _label(text: str, middle: float, size: Size) -> Html:
    return tag("text", text, x=_n(middle), y=size.height - 8, text_anchor="middle", class_="axis")


def _grid(top: float, step: float, size: Size, height: float, show: Format) -> Html:
    lines = []
    for topic_partition in range(round(top / step) + 1):
        y = _n(_TOP + height - height * topic_partition * step / top)
        lines.append(
            tag(
                "line", x1=_LEFT, x2=size.width, y1=y, y2=y, class_="zero" if topic_partition == 0 else "grid"
            )
        )
        lines.append(
            tag(
                "text",
                show(topic_partition * step),
                x=_LEFT - 8,
                y=y,
                text_anchor="end",
                dy="0.32em",
                class_="axis",
            )
        )
    return join(lines)


def _column(column: Column, left: float, pitch: float, height: float, top: float) -> Html:
    gap = min(6.0, pitch * 0.15)
    bars: list[Node] = [tag("title", column.title)]
    # Invisible, and as high as the chart: low columns can be pointed at, too.
    bars.append(tag("rect", x=_n(left), y=_TOP, width=_n(pitch), height=_n(height), class_="hit"))
    below = 0.0
    for topic_partition, part in enumerate(column.parts):
        if part <= 0:
            continue
        tall = max(1.0, height * part / top)
        y = _TOP + height - height * below / top - tall
        below += part
        bars.append(
            tag(
                "rect",
                x=_n(left + gap / 2),
                y=_n(y),
                width=_n(pitch - gap),
                height=_n(tall),
                class_=f"s{topic_partition}",
            )
        )
    return tag("g", bars)


def _label_every(columns: Sequence[Column], pitch: float, nths: Sequence[int]) -> int:
    widest = max((len(column.label) for column in columns), default=0) * _LABEL_PX + _LABEL_GAP_PX
    least = max(1, math.ceil(widest / pitch))
    return next((nth for nth in nths if nth >= least), least)


def nice_step(highest: float, base: int = 10) -> float:
    """Between two lines of the grid: 1, 2 or 5 times a power of ten; a power of two where bytes are shown."""
    least = max(highest, 1) / _TICKS
    if base == 1024:
        step = 1.0
        while step < least:
            step *= 2
        return step
    power = 1.0
    while power * 10 <= least:
        power *= 10
    return next(power * times for times in (1, 2, 5, 10) if power * times >= least)


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
