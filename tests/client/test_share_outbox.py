"""What is read of an answer, and how acknowledgements are gathered: without a node."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.client import AckType, TopicPartition
from postroad.client.share_message import ACQUIRED_MAX, read_delivery
from postroad.client.share_outbox import Acknowledgement, runs
from postroad.client.share_session import Terms
from postroad.errors import ProtocolError
from postroad.wire.batch import CONTROL
from postroad.wire.messages.share_fetch import AcquiredRecords
from postroad.wire.records import Record, encode_batch

PLACE = TopicPartition("t", 3)
TOPIC_ID = bytes(16)


def answer(records: bytes, *acquired: tuple[int, int, int]) -> Any:
    return SimpleNamespace(records=records, acquired_records=[AcquiredRecords(*run) for run in acquired])


def batch(*offsets: int, attributes: int = 0) -> bytes:
    records = [Record(offset, 1000 + offset, None, b"%d" % offset) for offset in offsets]
    return bytes(encode_batch(records, base_offset=offsets[0], attributes=attributes))


def test_only_acquired_messages_are_handed_out_with_their_counts() -> None:
    delivery = read_delivery(PLACE, answer(batch(0, 1, 2, 3) + batch(7, 9), (1, 2, 1), (9, 9, 4)))
    assert [(m.offset, m.delivery_count, m.topic_partition) for m in delivery.messages] == [
        (1, 1, PLACE),
        (2, 1, PLACE),
        (9, 4, PLACE),
    ]
    assert (delivery.gaps, delivery.damaged) == ([], [])


def test_acquired_offsets_without_a_message_are_gaps() -> None:
    data = batch(0, 2) + batch(5, attributes=CONTROL)
    delivery = read_delivery(PLACE, answer(data, (0, 5, 1)))
    assert [message.offset for message in delivery.messages] == [0, 2]
    assert delivery.gaps == [1, 3, 4, 5]


def test_damaged_batch_is_told_and_others_are_read() -> None:
    damaged = bytearray(batch(3, 4))
    damaged[-1] ^= 1
    delivery = read_delivery(PLACE, answer(batch(0, 1) + damaged, (0, 1, 1), (3, 3, 1)))
    assert [message.offset for message in delivery.messages] == [0, 1]
    assert (delivery.gaps, delivery.damaged) == ([], [3])


def test_absurd_range_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(ProtocolError):
        read_delivery(PLACE, answer(b"", (0, 1 << 60, 1)))
    with pytest.raises(ProtocolError):
        read_delivery(PLACE, answer(b"", (0, 5, 1), (10, 10 + ACQUIRED_MAX, 1)))


@given(st.dictionaries(st.integers(0, 60), st.sampled_from(AckType)))
def test_runs_say_of_each_offset_what_was_said_and_ascend(said: dict[int, AckType]) -> None:
    loop = asyncio.new_event_loop()
    outcome = loop.create_future()
    loop.close()
    found = runs(
        Acknowledgement((TOPIC_ID, 0), offset, type_, Terms(), outcome) for offset, type_ in said.items()
    )
    assert {at: run.type for run in found for at in range(run.first, run.last + 1)} == said
    assert all(one.last < other.first for one, other in pairwise(found))
    assert all(one.type != other.type or one.last + 1 < other.first for one, other in pairwise(found))
