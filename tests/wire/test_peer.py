"""Peer and CopyLetters on the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.errors import ProtocolError
from postroad.wire import copy_letters, peer

IDS = st.binary(min_size=16, max_size=16)
PARTITIONS = st.lists(st.tuples(IDS, st.integers(0, 1 << 31)), max_size=4)


@given(st.text(), PARTITIONS, st.integers(0, 1 << 62), st.booleans())
def test_what_is_asked_is_read(
    group: str, partitions: list[tuple[bytes, int]], number: int, flag: bool
) -> None:
    questions: list[peer.AnyQuestion] = [
        peer.EnsureLedgers(group, partitions, number, flag),
        peer.FindPositions(group, partitions),
        peer.ResetLedger(group, (bytes(16), 3), number),
        peer.RemoveLedgers(group, partitions),
        peer.FindHeld(group, b"", flag),
        peer.FindGroups(),
        peer.FindCommitted([0, 3], group, 1, number),
    ]
    for question in questions:
        assert peer.decode_request(memoryview(peer.encode_request(question, 0)), 0) == question


@given(PARTITIONS, st.lists(st.text(), max_size=3), st.integers(-1, 1 << 62))
def test_what_is_answered_is_read(
    partitions: list[tuple[bytes, int]], groups: list[str], offset: int
) -> None:
    results = [peer.PartitionResult(3, "why"), peer.PartitionResult(position=peer.PeerPosition(1, 2, 3))]
    answer = peer.PeerAnswer(0, None, results, partitions, groups, offset)
    assert peer.decode_response(memoryview(peer.encode_response(answer, 0)), 0) == answer


@given(IDS, st.integers(0, 1 << 30), st.binary())
def test_letters_arrive_as_they_were_sent(topic_id: bytes, partition: int, batch: bytes) -> None:
    request = copy_letters.CopyLettersRequest(topic_id, partition, batch)
    found = copy_letters.decode_request(copy_letters.encode_request(request, 0), 0)
    assert (found.topic_id, found.partition, bytes(found.batch)) == (topic_id, partition, batch)
    response = copy_letters.CopyLettersResponse(6, "elsewhere")
    assert copy_letters.decode_response(copy_letters.encode_response(response, 0), 0) == response


@given(st.binary(max_size=40))
def test_wrong_bytes_are_a_protocol_error_or_nothing(data: bytes) -> None:
    for codec in (peer, copy_letters):
        for decode in (codec.decode_request, codec.decode_response):
            try:
                decode(data, 0)
            except ProtocolError:
                continue


def test_a_question_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(ProtocolError, match="Peer request"):
        peer.decode_request(b"\x81\xa4type\xa5fancy", 0)
