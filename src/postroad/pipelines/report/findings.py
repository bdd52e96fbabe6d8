"""What matters: one sentence about all of it, and what somebody should look at.

The bounds are for attention, not for alarms: below them a reader loses nothing by not looking.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from postroad.pipelines.report import words
from postroad.pipelines.report.measured import Measured, Row, summed, total_of

WAITS_S: Final = 60.0  # the oldest message, before a group counts as behind
BEHIND_MAX: Final = 3  # groups that are named; the table has them all
SKEW: Final = 1.5  # times its fair share, before a partition is worth a word
HOT_KEY: Final = 0.2  # of its topic's messages
ENOUGH: Final = 100  # messages of a partition or key; chance makes small numbers uneven


def headline(measured: Measured) -> str:
    total = measured.total()
    if not total["messages"]:
        return "There are no messages of this time in these topics."
    several = len(measured.by_topic())
    who = "The topic" if several == 1 else f"{several} topics"
    took = words.duration((total["last"] - total["first"]).total_seconds() * 1000)
    peak = peak_minute(measured)
    is_one_day = total["first"].date() == total["last"].date()
    at = peak["minute"].strftime("%H:%M" if is_one_day else "%Y-%m-%d %H:%M")
    return (
        f"{who} carried {words.some(total['messages'], 'message')} ({words.size(total['bytes'])}) in {took}; "
        f"the busiest minute had {words.count(peak['messages'])}, at {at} UTC."
    )


def peak_minute(measured: Measured) -> Row:
    """The minute with the most messages over all topics. There must be messages."""
    sums = summed(measured.minutes.to_pylist(), "minute")
    (minute,), messages = max(sums.items(), key=lambda each: (each[1], each[0]))
    return {"minute": minute, "messages": messages}


def findings(measured: Measured) -> list[str]:
    """The most pressing first; none if nothing stands out."""
    return [*_behind(measured), *_dead(measured), *_skewed(measured), *_hot(measured), *_clocks(measured)]


def is_skewed(messages: int, fair: float) -> bool:
    return fair >= ENOUGH and messages > SKEW * fair


def is_hot(messages: int, of_topic: int) -> bool:
    return messages >= ENOUGH and messages > HOT_KEY * of_topic


def _behind(measured: Measured) -> Iterator[str]:
    late = [each for each in measured.behind() if each.messages and (each.seconds or 0) >= WAITS_S]
    for each in late[:BEHIND_MAX]:
        who = f"{each.kind.capitalize()} {words.name(each.name)}"
        waits = words.duration((each.seconds or 0) * 1000)
        missing = words.some(each.messages, "message")
        yield f"{who} is {missing} behind on {each.topic}; the oldest has waited {waits}."
    if len(late) > BEHIND_MAX:
        yield f"{len(late) - BEHIND_MAX} more are behind: see the table below."


def _dead(measured: Measured) -> Iterator[str]:
    rows = measured.reasons.to_pylist()
    if not rows:
        return
    dead, sums = total_of(rows), summed(rows, "reason")
    (reason,), most = max(sums.items(), key=lambda each: each[1])
    share = "all of them" if most == dead else words.percent(most, dead)
    yield f"{words.some(dead, 'message')} became dead letters; {share} for the reason “{words.name(reason)}”."


def _skewed(measured: Measured) -> Iterator[str]:
    rows = measured.partitions.to_pylist()
    for (topic,), messages in summed(rows, "topic").items():
        own = [row for row in rows if row["topic"] == topic]
        fair, fullest = messages / len(own), max(own, key=lambda row: row["messages"])
        if is_skewed(fullest["messages"], fair):
            ratio = words.times(fullest["messages"] / fair)
            yield f"Partition {fullest['partition']} of {topic} got {ratio} its fair share of the messages."


def _hot(measured: Measured) -> Iterator[str]:
    of_topic = {row["topic"]: row["messages"] for row in measured.by_topic()}
    for row in measured.keys.to_pylist():
        if is_hot(row["messages"], of_topic[row["topic"]]):
            share = words.percent(row["messages"], of_topic[row["topic"]])
            yield f"The key {words.key(row['key'])} alone is {share} of {row['topic']}."


def _clocks(measured: Measured) -> Iterator[str]:
    early = total_of(measured.latency.to_pylist(), "negative")
    if early:
        yield f"Clocks differ: {words.some(early, 'moment')} lie before what must have preceded them."
