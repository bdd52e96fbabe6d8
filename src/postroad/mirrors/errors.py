"""What keeps a mirror from its work: one text that says what happened and what to do."""

from __future__ import annotations

from postroad.errors import PostroadError


class MirrorError(PostroadError):
    """The mirror can't begin."""


class Halted(MirrorError):
    """A partition can't be copied further without somebody's decision; the others go on."""


class NotAsExpected(MirrorError):
    """The target's log is not as this run believed: another run writes, too, or an answer was lost. It has to
    be read again."""
