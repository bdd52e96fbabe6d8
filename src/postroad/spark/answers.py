"""Partitions in answers, and what is wrong with them."""

from __future__ import annotations

from typing import Any

from postroad.client.groups import raise_for
from postroad.errors import ApiError, by_code
from postroad.spark.router import TopicPartition, about


def parts(topics: Any) -> list[tuple[TopicPartition, Any]]:
    """The partitions of an answer, each with its topic and number."""
    return [((topic.name, part.partition_index), part) for topic in topics for part in topic.partitions]


def error_of(part: Any, topic_partition: TopicPartition) -> ApiError:
    return about(
        f"{topic_partition[0]}/{topic_partition[1]}",
        by_code(part.error_code, getattr(part, "error_message", None)),
    )


def check_parts(answer: Any) -> None:
    """Raises what is wrong with one of the partitions."""
    for topic_partition, part in parts(answer.topics):
        if part.error_code:
            raise error_of(part, topic_partition)


def check_group(answer: Any) -> None:
    """Raises what is wrong with the one group that was asked for."""
    raise_for(answer.groups[0])
    check_parts(answer.groups[0])
