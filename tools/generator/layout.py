"""Which bytes one Struct reads or writes.

A struct's versions fall into two halves, before and after the API became flexible, because every
length looks different there. In a half the fields are cut into runs: neighbours of fixed size, and
then at most one field of variable size. The first bytes of the variable field (its length, or the
first byte of a compact length) are as fixed as the fields before it, so that one Struct takes them
all. Where versions have different fields in a run there is one Struct for each such layout.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from struct import calcsize

from .schema import Api, Field, Struct, Versions

CODES = {
    "bool": "B",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}


@dataclass(frozen=True)
class Half:
    """The versions of a struct that are flexible, or those that are not."""

    versions: tuple[int, ...]
    is_flexible: bool


@dataclass(frozen=True)
class Run:
    """Fields of fixed size, and the variable one behind them; the last run also ends the struct."""

    fixed: tuple[Field, ...]
    variable: Field | None
    is_last: bool


def halves(struct: Struct, api: Api) -> list[Half]:
    flexible = tuple(sorted(v for v in struct.versions if v >= api.flexible_from))
    legacy = tuple(sorted(v for v in struct.versions if v < api.flexible_from))
    return [half for half in (Half(flexible, True), Half(legacy, False)) if half.versions]


def runs(struct: Struct, half: Half) -> list[Run]:
    found: list[Run] = []
    fixed: list[Field] = []
    for field in struct.fields:
        if field.is_tagged or not field.versions.intersection(half.versions):
            continue
        if is_fixed(field):
            fixed.append(field)
        else:
            found.append(Run(tuple(fixed), field, is_last=False))
            fixed = []
    return [*found, Run(tuple(fixed), None, is_last=True)]


def is_fixed(field: Field) -> bool:
    return field.type in CODES and not field.is_array


def lead_code(field: Field, is_flexible: bool) -> str:
    """The Struct code of what comes before a variable field's value; none for a plain struct."""
    if field.type == "struct" and not field.is_array:
        return "b" if field.nullable else ""
    if is_flexible:
        return "B"
    return "h" if field.type == "string" and not field.is_array else "i"


def text_code(half: Half) -> str:
    """The code of a string's length, or of the first byte of a compact one."""
    return "B" if half.is_flexible else "h"


def layouts(run: Run, half: Half) -> list[tuple[int, tuple[Field, ...], bool]]:
    """(first version, fixed fields, whether the variable one is there), newest versions first."""
    found: list[tuple[int, tuple[Field, ...], bool]] = []
    for version in half.versions:
        fixed = tuple(field for field in run.fixed if version in field.versions)
        variable = run.variable is not None and version in run.variable.versions
        if not found or found[-1][1:] != (fixed, variable):
            found.append((version, fixed, variable))
    return found[::-1]


def condition(wanted: Iterable[int], half: Half) -> str | None:
    """The test that is true for the wanted versions of this half; None where it always is."""
    versions = sorted(set(wanted).intersection(half.versions))
    first, last = half.versions[0], half.versions[-1]
    if not versions:
        return "False"
    if versions == list(half.versions):
        return None
    if versions != list(range(versions[0], versions[-1] + 1)):
        return f"version in {tuple(versions)}"
    if versions[-1] == last:
        return f"version >= {versions[0]}"
    if versions[0] == first:
        return f"version <= {versions[-1]}"
    return f"{versions[0]} <= version <= {versions[-1]}"


def branch(index: int, number: int, first: int) -> str | None:
    """The head of one of several blocks, newest versions first; none where there is only one."""
    if number == 1:
        return None
    if index == number - 1:
        return "else:"
    return f"{'elif' if index else 'if'} version >= {first}:"


def struct_name(codes: str) -> str:
    return "_" + codes.replace("?", "Z")


def element_size_min(field: Field, half: Half) -> int:
    """The fewest bytes that one element of an array takes: what bounds its count."""
    if field.struct is not None:
        return _struct_size_min(field.struct, half)
    if field.type in CODES:
        return calcsize(">" + CODES[field.type])
    return 1 if half.is_flexible else calcsize(">" + ("h" if field.type == "string" else "i"))


def _struct_size_min(struct: Struct, half: Half) -> int:
    versions = struct.versions.intersection(half.versions)
    smallest = min(_size_min_in(struct, version, versions, half) for version in versions)
    return max(smallest, 1)


def _size_min_in(struct: Struct, version: int, versions: Versions, half: Half) -> int:
    size = 1 if half.is_flexible else 0
    for field in struct.fields:
        if field.is_tagged or version not in field.versions:
            continue
        if is_fixed(field):
            size += calcsize(">" + CODES[field.type])
        elif code := lead_code(field, half.is_flexible):
            size += calcsize(">" + code)
        elif field.struct is not None:
            size += _struct_size_min(field.struct, Half(tuple(sorted(versions)), half.is_flexible))
    return size
