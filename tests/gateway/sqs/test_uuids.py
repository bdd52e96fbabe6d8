"""Ids of messages: UUIDs that are made from where a message is."""

from __future__ import annotations

import uuid

import pytest

from postroad.gateway.sqs import uuids

TOPIC, OTHER_TOPIC = b"0123456789abcdef", b"fedcba9876543210"
OFFSETS = [0, 1, 0xFFFF_FFFF, (1 << 48) - 1, 1 << 48, (1 << 48) + 1, (1 << 61) + 5]


@pytest.mark.parametrize("offset", OFFSETS)
def test_an_id_is_written_as_a_random_uuid(offset: int) -> None:
    text = uuids.of_message(TOPIC, 3, offset)
    found = uuid.UUID(text)
    assert str(found) == text
    assert (found.version, found.variant) == (4, uuid.RFC_4122)


def test_messages_at_different_positions_have_different_ids() -> None:
    positions = [
        (topic, partition, offset)
        for topic in (TOPIC, OTHER_TOPIC)
        for partition in (0, 1, 2**31 - 1)
        for offset in OFFSETS
    ]
    assert len({uuids.of_message(*position) for position in positions}) == len(positions)


def test_the_id_of_a_message_stays_when_others_were_asked_for() -> None:
    first = uuids.of_message(TOPIC, 0, 7)
    for partition in range(uuids.PARTITIONS_MAX + 1):
        uuids.of_message(OTHER_TOPIC, partition, 7)
    assert uuids.of_message(TOPIC, 0, 7) == first
