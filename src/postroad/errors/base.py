"""The roots of the tree, and the registry that finds an error by its Kafka code."""

from __future__ import annotations

from typing import ClassVar

NONE = 0


class PostroadError(Exception):
    """The root: whatever Postroad raises on purpose."""


class ProtocolError(PostroadError):
    """Bytes that can't be read as what they claim to be. The peer is wrong."""


class CoordinationError(PostroadError):
    """The coordination store can't do what was asked; the subclass says what the caller does next."""


class LeaseLost(CoordinationError):
    """The lease has ended and its keys are deleted: grant a new one and register anew."""


class HistoryCompacted(CoordinationError):
    """The revisions after the one asked for are no longer kept: list, then watch from there."""


class StoreChanged(CoordinationError):
    """Somebody else's commit came first, and so nothing was changed: read again, then decide anew."""


class ConfigurationError(PostroadError):
    """A setting that can't be used; the text names it and says what would be right."""


class NodeIdTaken(ConfigurationError):
    """Another process is registered under this node's id: it must end, or its lease."""


_by_code: dict[int, type[ApiError]] = {}


class ApiError(PostroadError):
    """An error with a Kafka code, answered in the field where the API wants it."""

    code: ClassVar[int] = -1
    retriable: ClassVar[bool] = False
    summary: ClassVar[str] = "The server met an error that it has no name for."

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in cls.__dict__:
            return
        if cls.code in _by_code:
            raise AssertionError(f"code {cls.code}: {cls.__name__} and {_by_code[cls.code].__name__}")
        _by_code[cls.code] = cls

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else self.summary


class RequestRefused(ApiError):
    """The request is at fault; the same request will be refused again."""


class TryAgain(ApiError):
    """The moment is at fault; clients refresh their metadata and retry."""

    retriable = True


class UnknownServerError(ApiError):
    code = -1
    summary = "The server met an error that it did not expect; see its log."


def by_code(code: int, text: str | None = None) -> ApiError:
    """The exception for a code in an answer (text: the peer's own words, if it sent any)."""
    known = _by_code.get(code)
    if known is None:
        return UnknownServerError(text or f"The server answered error {code}.")
    return known(text) if text else known()


def describe(code: int) -> str:
    """`NAME: what it means`, for tables and messages."""
    known = _by_code.get(code)
    return f"{known.__name__}: {known.summary}" if known else f"error {code}"
