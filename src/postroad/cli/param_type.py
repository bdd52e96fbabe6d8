"""The base of our own types of arguments: click's, which is generic since 8.4 only.

Programs that run beside us may hold click at an older one, as Faust does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click import ParamType
else:

    class ParamType(click.ParamType):
        def __class_getitem__(cls, _: Any) -> type[ParamType]:
            return cls


__all__ = ["ParamType"]
