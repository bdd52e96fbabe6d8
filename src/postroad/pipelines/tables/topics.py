"""Whether a topic is the one that was archived, or another under its name."""

from __future__ import annotations

from collections.abc import Mapping

from postroad.pipelines.errors import PipelineError
from postroad.spark.cluster import TopicInfo
from postroad.spark.router import TopicPartition


def topic_number(topic_id: bytes) -> int:
    """As much of a topic's id as every table format can keep; 0 if the cluster knows no ids."""
    return int.from_bytes(topic_id[:8]) >> 1


def made_anew(known: Mapping[str, int], now: Mapping[str, int]) -> str | None:
    """A topic whose number is another now; None if there is none. What has no number is not compared."""
    both = ((topic, known.get(topic, 0), number) for topic, number in now.items())
    return next((topic for topic, was, number in both if was and number and was != number), None)


def check_is_archived(
    topic: TopicInfo, ends: Mapping[TopicPartition, int], numbers: Mapping[str, int], advice: str
) -> None:
    """PipelineError, with the advice, if it is another topic than the one that has these ends."""
    missing = sorted(number for name, number in ends if name == topic.name and number not in topic.partitions)
    why = None
    if made_anew(numbers, {topic.name: topic_number(topic.id)}) is not None:
        why = "it has another id"
    elif missing:
        why = f"it has no partition {missing[0]}"
    if why is not None:
        raise PipelineError(
            f"{topic.name} is not the topic that was archived ({why}): it was deleted and created anew, or "
            f"this is another cluster. {advice}"
        )
