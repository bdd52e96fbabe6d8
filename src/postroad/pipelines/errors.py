"""What keeps a pipeline from its work: one text that says what happened and what to do."""

from __future__ import annotations

from postroad.errors import PostroadError


class PipelineError(PostroadError):
    """A pipeline can't go on, or can't begin; what it wrote so far is whole."""


class NotInstalled(PipelineError):
    """A package or a Java that pipelines need is missing or too old; the text says how to install it."""


class WrongTable(PipelineError):
    """What lies at the path is not the table that was expected there; nothing was written to it."""
