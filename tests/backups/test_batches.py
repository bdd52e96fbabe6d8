"""Batches on their way into a backup and out of it: only whole, undamaged ones in their places pass."""

from __future__ import annotations

import pytest

from postroad.backups import batches
from postroad.wire.batch import read_header
from tests.backups.logs import placed

LOG = placed(0, 1, 3) + placed(3, 1, 2) + placed(7, 2)


def test_cut_takes_whole_batches_up_to_the_end() -> None:
    assert batches.cut(memoryview(LOG), 0, 8) == (len(LOG), 0, 8, 2)
    assert batches.cut(memoryview(LOG[:-1]), 0, 8) == (len(placed(0, 1, 3) + placed(3, 1, 2)), 0, 5, 1)
    assert batches.cut(memoryview(LOG), 0, 5) == (len(placed(0, 1, 3) + placed(3, 1, 2)), 0, 5, 1)
    assert batches.cut(memoryview(b""), 0, 5) is None


def test_cut_begins_with_the_batch_that_holds_the_offset() -> None:
    assert batches.cut(memoryview(LOG), 2, 8) == (len(LOG), 0, 8, 2)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (LOG[:80] + b"\xff" + LOG[81:], "damaged"),
        (placed(3) + placed(2), "lies behind offset 4"),
        (placed(3, 2) + placed(4, 1), "epoch falls from 2 to 1"),
        (placed(0, 1, 10), "reaches over the end"),
        (placed(0), "before the offset"),
    ],
    ids=["damaged", "behind", "epoch", "over the end", "before"],
)
def test_wrong_batches_are_refused(records: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        batches.cut(memoryview(records), 1 if said.startswith("before") else 0, 8)


def test_pieces_are_all_of_a_part() -> None:
    assert b"".join(batches.pieces(memoryview(LOG), 0, 8, 100)) == LOG
    assert len(list(batches.pieces(memoryview(LOG), 0, 8, 100))) > 1


@pytest.mark.parametrize(
    ("content", "first", "end", "said"),
    [
        (LOG[:-1], 0, 8, "at its end are no batch"),
        (LOG, 1, 8, "begins at offset 0, not at 1"),
        (LOG, 0, 9, "ends at offset 8, not at 9"),
        (LOG[:90] + b"\xff" + LOG[91:], 0, 8, "damaged"),
        (b"", 0, 8, "ends at offset -1"),
        (bytes(61), 0, 1, "no batch"),
    ],
)
def test_part_that_is_not_what_the_manifest_says_is_refused(
    content: bytes, first: int, end: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        list(batches.pieces(memoryview(content), first, end, 1000))


def test_filler_is_a_batch_without_records() -> None:
    made = memoryview(batches.filler(5, 9, 3))
    header = read_header(made)
    assert (header.base_offset, header.next_offset, header.count, header.leader_epoch) == (5, 9, 0, 3)
    assert list(batches.pieces(made, 5, 9, 1000)) == [made]
