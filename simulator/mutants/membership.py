"""Mutants of how nodes register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from postroad.broker.registration import Registration
from postroad.cluster import controller, membership
from postroad.cluster.image import Changes, Image
from postroad.cluster.store import Snapshot
from simulator.mutants.mutant import Mutant


def _take_any_id(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda image, node, takes_over=False: None


def _ask_not(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda image, node, directory, replaces: None


def _never_again(kept_alive: Callable[..., Any]) -> Callable[..., Any]:
    async def as_if_kept(self: Registration) -> bool:
        await kept_alive(self)
        return True

    return as_if_kept


def _skip_what_was_missed(catch_up: Callable[..., Any]) -> Callable[..., Any]:
    def skip(self: Image, snapshot: Snapshot) -> Changes:
        if not self.revision:  # the node starts
            changes: Changes = catch_up(self, snapshot)
            return changes
        self.revision = snapshot.revision
        return Changes([], [], [], [], [], [], [])

    return skip


ALL: Final = (
    Mutant(
        "take-any-node-id",
        "a node registers under an id that another process holds",
        controller,
        "check_node_id",
        _take_any_id,
        also=(Mutant("directories", "nobody asks whose it is", membership, "check_directory", _ask_not),),
    ),
    Mutant(
        "never-register-again",
        "a node whose lease has ended does not register again",
        Registration,
        "_kept_alive",
        _never_again,
    ),
    Mutant(
        "skip-compacted-history",
        "a node that fell behind the store's history goes on without what it missed",
        Image,
        "catch_up",
        _skip_what_was_missed,
    ),
)
