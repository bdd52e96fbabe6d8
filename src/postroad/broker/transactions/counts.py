"""What metrics tell of transactions."""

from __future__ import annotations


class TransactionCounts:
    """What has become of transactions since the node's start."""

    __slots__ = ("aborted", "committed", "fenced")

    def __init__(self) -> None:
        self.committed = self.aborted = 0  # verdicts that coordinators on this node have given
        self.fenced = 0  # requests of producers that another one has replaced
