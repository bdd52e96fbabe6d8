"""What can be wrong with a backup. The texts are for whoever gave the command."""

from __future__ import annotations


class BackupError(Exception):
    """The backup can't be made, read or restored."""


class BackupDamaged(BackupError):
    """A manifest or a part is not what it was when it was stored."""


class TargetFailed(BackupError):
    """Where backups lie can't be reached, or refuses."""
