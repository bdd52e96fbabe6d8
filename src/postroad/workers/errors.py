"""What this API raises beside the errors of nodes and of the client."""

from __future__ import annotations

from postroad.errors import PostroadError


class Undecodable(PostroadError):
    """The payload is not what the worker's type says."""


class WorkerFailed(PostroadError):
    """A worker can't go on; the text says why."""
