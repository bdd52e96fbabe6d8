"""What aborted transactions wrote is left out by whoever wants only what is committed."""

from __future__ import annotations

from postroad.client.fetcher import _Aborted
from postroad.wire.batch import CONTROL, TRANSACTIONAL, BatchHeader, read_header
from postroad.wire.messages.fetch import AbortedTransaction
from postroad.wire.records import Record, encode_batch


def header(offset: int, producer: int, attributes: int) -> BatchHeader:
    batch = encode_batch(
        [Record(offset, 0, None, b"")], base_offset=offset, producer_id=producer, attributes=attributes
    )
    return read_header(batch, 0)


def test_a_producers_batches_are_left_out_from_its_first_to_its_marker() -> None:
    aborted = _Aborted([AbortedTransaction(producer_id=7, first_offset=2), AbortedTransaction(7, 9)])
    asked = [
        (0, 7, TRANSACTIONAL),  # committed before
        (1, 7, TRANSACTIONAL | CONTROL),
        (2, 7, TRANSACTIONAL),
        (3, 8, TRANSACTIONAL),  # another's
        (4, 7, TRANSACTIONAL),
        (5, 7, 0),
        (6, 7, TRANSACTIONAL | CONTROL),
        (7, 7, TRANSACTIONAL),  # committed
        (8, 7, TRANSACTIONAL | CONTROL),
        (9, 7, TRANSACTIONAL),
    ]
    left_out = [offset for offset, *more in asked if aborted.covers(header(offset, *more))]
    assert left_out == [2, 4, 9]
