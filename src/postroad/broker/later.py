"""An API that is loaded with its first request.

Most nodes are never asked for most APIs, and the code of their messages is a good part of what a node loads.
What clients need from the start is imported by `broker/api`; of the rest it says only what ApiVersions lists.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from postroad.broker.access import Rights
    from postroad.broker.dispatch import Api, Call, Handle, Result
    from postroad.broker.node import Node


class Later:
    """Stands for `broker/api/<name>.py`, of which it must say the same."""

    def __init__(
        self, name: str, key: int, versions: tuple[int, int], flexible_from: int, advertised: bool = True
    ) -> None:
        self.__name__ = f"postroad.broker.api.{name}"
        self.KEY = key
        self.VERSIONS = versions
        self.FLEXIBLE_FROM = flexible_from
        self.ADVERTISED = advertised
        self._loaded: Api | None = None

    @property
    def RIGHTS(self) -> Rights:  # noqa: N802
        return self.load().RIGHTS

    @property
    def refuse(self) -> Handle | None:
        return getattr(self.load(), "refuse", None)

    def load(self) -> Api:
        """The file itself. `import_module` would look for it each time, which takes microseconds."""
        if self._loaded is None:
            self._loaded = cast("Api", import_module(self.__name__))
        return self._loaded

    def handle(self, node: Node, call: Call) -> Result:
        return self.load().handle(node, call)
