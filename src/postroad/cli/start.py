"""Where to start reading: `beginning`, `end`, an offset, the last N, or a time.

beginning   end   1200   -10 (the last ten)   15m (a quarter of an hour ago)   2026-03-01T08:00

No message is older than 1970, so a time before that is the beginning: the protocol has other meanings for
negative times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from postroad.cli import duration
from postroad.cli.param_type import ParamType

if TYPE_CHECKING:
    from postroad.client import Client, TopicPartition

_DIGITS: Final = re.compile(r"-?\d{1,18}")  # as many as an offset can have


class Start(NamedTuple):
    """`kind` is beginning, end, offset, last or time; `value` an offset, a count or milliseconds."""

    kind: str
    value: int = 0


BEGINNING: Final = Start("beginning")
END: Final = Start("end")


class StartType(ParamType[Start]):
    name = "start"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Start:
        if isinstance(value, Start):
            return value
        found = parse(str(value), int(datetime.now(UTC).timestamp() * 1000))
        if found is None:
            self.fail(
                f"{duration.shortened(value)} is none of: beginning, end, an offset (1200), "
                "the last N (-10), a time ago (30s, 15m, 2h, 7d), a date and time (2026-03-01T08:00)",
                param,
                ctx,
            )
        return found


def parse(text: str, now_ms: int) -> Start | None:
    if text in ("beginning", "earliest"):
        return BEGINNING
    if text in ("end", "latest"):
        return END
    if _DIGITS.fullmatch(text):
        return Start("last", -int(text)) if text.startswith("-") else Start("offset", int(text))
    if text != "0" and (ago_ms := duration.parse(text)) is not None:
        return Start("time", max(0, now_ms - ago_ms))
    try:
        time_ms = int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return Start("time", max(0, time_ms))


async def resolve(
    client: Client, topic_partitions: Sequence[TopicPartition], start: Start
) -> dict[TopicPartition, int]:
    """An offset within each partition; a start before its beginning or after its end moves there, and
    standard error says so."""
    from postroad.client import offsets

    first = await offsets.earliest(client, list(topic_partitions))
    last = await offsets.latest(client, list(topic_partitions))
    if start.kind == "beginning":
        return first
    if start.kind == "end":
        return last
    if start.kind == "time":
        found = await offsets.find(client, dict.fromkeys(topic_partitions, start.value))
        # Nothing is passed over in a partition without messages, so there is nothing to say of it.
        _tell_late([f"{each}" for each, at in found.items() if at.offset < 0 and first[each] < last[each]])
        return {
            topic_partition: at.offset if at.offset >= 0 else last[topic_partition]
            for topic_partition, at in found.items()
        }
    if start.kind == "offset":
        _tell_outside(start.value, first, last)
    wanted = {
        topic_partition: start.value if start.kind == "offset" else last[topic_partition] - start.value
        for topic_partition in topic_partitions
    }
    return {
        topic_partition: min(max(offset, first[topic_partition]), last[topic_partition])
        for topic_partition, offset in wanted.items()
    }


def _tell_late(topic_partitions: Sequence[str]) -> None:
    if topic_partitions:
        click.echo(
            f"no message in {', '.join(topic_partitions)} is that recent: using the end instead", err=True
        )


def _tell_outside(
    wanted: int, first: Mapping[TopicPartition, int], last: Mapping[TopicPartition, int]
) -> None:
    for topic_partition, end in last.items():
        if wanted > end:
            click.echo(f"{topic_partition} ends at {end}, before {wanted}: using the end instead", err=True)
        elif wanted < first[topic_partition]:
            click.echo(
                f"{topic_partition} begins at {first[topic_partition]}, after {wanted}: using that instead",
                err=True,
            )
