"""Offsets inside of transactions: which of them count when a marker comes."""

from __future__ import annotations

import pytest

from postroad.groups.answers import Outcome
from postroad.groups.requests import CommitRequest, OffsetToCommit
from tests.groups.shell import GROUP, Shell
from tests.groups.test_offsets import RETENTION_MS, SWEEP_MS

PRODUCER = 7


@pytest.fixture
def shell() -> Shell:
    return Shell()


def commit(shell: Shell, epoch: int, partition: int, offset: int) -> None:
    request = CommitRequest(GROUP, "", None, -1, (OffsetToCommit("t", partition, offset),))
    shell.run(
        lambda: shell.groups.commit_in_transaction(request, PRODUCER, epoch, object(), shell.now), object()
    )


def complete(shell: Shell, epoch: int, *, committed: bool, strict: bool = False) -> Outcome:
    return shell.run(
        lambda: shell.groups.complete(GROUP, PRODUCER, epoch, committed, object(), strict=strict)
    )


def offsets(shell: Shell) -> list[int | None]:
    found = [shell.committed("t", partition) for partition in range(2)]
    return [None if each is None else each.offset for each in found]


@pytest.mark.parametrize(("marker", "strict"), [(4, False), (5, True)])
@pytest.mark.parametrize("restarts", [False, True])
def test_offsets_count_if_their_transaction_commits(
    shell: Shell, marker: int, strict: bool, restarts: bool
) -> None:
    commit(shell, 4, 0, 10)
    if restarts:
        shell.restart()
    complete(shell, marker, committed=True, strict=strict)
    assert offsets(shell) == [10, None]
    assert not shell.groups.pending()


def test_what_an_earlier_epoch_left_behind_does_not_count_when_a_later_one_commits(shell: Shell) -> None:
    """The record was said to have failed, and is in the log of the next coordinator all the same."""
    commit(shell, 3, 0, 10)
    commit(shell, 4, 1, 20)
    complete(shell, 4, committed=True)
    assert offsets(shell) == [None, 20]
    assert not shell.groups.pending()


@pytest.mark.parametrize("committed", [False, True])
def test_a_late_marker_leaves_the_next_transaction_alone(shell: Shell, committed: bool) -> None:
    commit(shell, 4, 0, 10)
    assert not complete(shell, 4, committed=committed, strict=True).records
    assert shell.groups.pending() == {GROUP: {PRODUCER: 4}}


def test_the_marker_of_a_fence_drops_what_is_pending(shell: Shell) -> None:
    commit(shell, 4, 0, 10)
    complete(shell, 5, committed=False)
    assert offsets(shell) == [None, None]
    assert not shell.groups.pending()


@pytest.mark.parametrize("restart", [None, "whole", "compacted"])
def test_a_commit_outside_of_the_transaction_that_comes_later_wins(shell: Shell, restart: str | None) -> None:
    commit(shell, 4, 0, 10)
    commit(shell, 4, 1, 20)
    shell.commit(OffsetToCommit("t", 0, 7))
    if restart:
        shell.restart(compacted=restart == "compacted")
    complete(shell, 4, committed=True)
    assert offsets(shell) == [7, 20]
    shell.restart(compacted=True)
    assert offsets(shell) == [7, 20]


@pytest.mark.parametrize("committed", [False, True])
def test_an_offset_does_not_expire_while_a_transaction_may_change_it(shell: Shell, committed: bool) -> None:
    shell.commit(OffsetToCommit("t", 0, 7))
    commit(shell, 4, 0, 10)
    shell.advance(RETENTION_MS + 2 * SWEEP_MS)
    assert offsets(shell) == [7, None]
    complete(shell, 4, committed=committed)
    shell.advance(2 * SWEEP_MS)
    assert offsets(shell) == [None, None], "their time was over before"
