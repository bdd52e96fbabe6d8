"""The names of the generated functions."""

from __future__ import annotations

import re

from .schema import Struct


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def reader_name(struct: Struct) -> str:
    return f"_read_{snake(struct.name)}"


def writer_name(struct: Struct) -> str:
    return f"_write_{snake(struct.name)}"
