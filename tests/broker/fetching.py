"""Fetch requests as tests want them, and their answers in short."""

from __future__ import annotations

from typing import Any

from postroad.wire.batch import walk
from postroad.wire.messages import fetch
from tests.faults.raw import RawConnection, frame, request_content

NO_SESSION = -1


def wanted(partition: int = 0, offset: int = 0, max_bytes: int = 1 << 20, epoch: int = -1) -> Any:
    return fetch.FetchPartition(
        partition=partition, current_leader_epoch=epoch, fetch_offset=offset, partition_max_bytes=max_bytes
    )


def fetch_request(
    topic: str | bytes,
    *partitions: Any,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 24,
    session: int = 0,
    epoch: int = NO_SESSION,
    forgotten: list[Any] | None = None,
) -> Any:
    """`topic` is a name, or from version 13 on an id; without partitions the request names no topic."""
    named = {"topic_id": topic} if isinstance(topic, bytes) else {"topic": topic}
    return fetch.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session,
        session_epoch=epoch,
        topics=[fetch.FetchTopic(**named, partitions=list(partitions))] if partitions else [],
        forgotten_topics_data=forgotten or [],
    )


def send(connection: RawConnection, request: Any, version: int = 12, correlation: int = 1) -> None:
    """Without waiting for the answer."""
    connection.send(frame(request_content(fetch, version, request, correlation)))


def receive(connection: RawConnection, version: int = 12) -> Any:
    answer = connection.receive()
    return fetch.decode_response(answer[5 if version >= fetch.FLEXIBLE_FROM else 4 :], version)


def only(answer: Any) -> Any:
    """The one partition of an answer."""
    [topic] = answer.responses
    [partition] = topic.partitions
    return partition


def offsets_of(partition: Any) -> list[int]:
    """Base offsets of the whole batches in a partition's answer."""
    return [header.base_offset for _, header in walk(memoryview(bytes(partition.records or b"")))]
