"""Lists by name, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from postroad.gateway.rest.fields import PageSize

T = TypeVar("T")


class Page(Struct, forbid_unknown_fields=True):
    prefix: Annotated[str, Meta(max_length=249, description="Only names with this prefix.")] = ""
    after: Annotated[
        str,
        Meta(max_length=249, description="Only names after this one; `next` of a page."),
    ] = ""
    limit: PageSize = 100


def cut(names: Sequence[str], page: Page) -> tuple[list[str], str | None]:
    """The names of this page, and what to ask for the next one after, if there is one."""
    wanted = sorted(name for name in names if name.startswith(page.prefix) and name > page.after)
    found = wanted[: page.limit]
    return found, found[-1] if len(wanted) > len(found) else None
