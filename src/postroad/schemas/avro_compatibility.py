"""What a reader's Avro schema can't read of what a writer's has written: the rules of schema resolution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from postroad.schemas.avro import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    NamedType,
    RecordField,
    RecordType,
    UnionType,
    branch_name,
)
from postroad.schemas.budget import Budget, TooComplex

STEPS_MAX: Final = 200_000  # types of unions are compared all with all
PATH_CHARACTERS: Final = 100  # so much of a path is a step

PROMOTIONS: Final = {
    "int": frozenset({"long", "float", "double"}),
    "long": frozenset({"float", "double"}),
    "float": frozenset({"double"}),
    "string": frozenset({"bytes"}),
    "bytes": frozenset({"string"}),
}
"""What a writer's type may be read as, besides itself."""

Seen = dict[tuple[int, int], None]  # pairs of records that are being compared, or were; in their order


def differences(reader: AvroType, writer: AvroType) -> list[str]:
    """Why messages of the writer can't be read by the reader; empty: they can."""
    try:
        return list(_Comparison().compare(reader, writer, "", {}))
    except (TooComplex, RecursionError):
        return [f"/: the schemas are too complex to compare in {STEPS_MAX} steps"]


class _Comparison:
    """Compares each pair of records once, however often and in whatever circles they are named."""

    def __init__(self) -> None:
        self._verdicts: dict[tuple[int, int], bool] = {}  # of branches of unions
        self._fields: dict[int, dict[str, RecordField]] = {}  # of a writer's records, by their names
        self._budget = Budget(STEPS_MAX)

    def compare(self, reader: AvroType, writer: AvroType, path: str, seen: Seen) -> Iterator[str]:
        self._budget.take(1 + len(path) // PATH_CHARACTERS)
        pair = id(reader), id(writer)
        if pair in seen:
            return
        if isinstance(reader, RecordType):
            seen[pair] = None
        at = path or "/"
        if isinstance(writer, UnionType):
            for branch in writer.branches:
                yield from self.compare(reader, branch, path, seen)
        elif isinstance(reader, UnionType):
            if self.match(reader, writer, seen) is None:
                yield f"{at}: the reader's union has no type for the writer's {branch_name(writer)}"
        elif reader.kind != writer.kind:
            if reader.kind not in PROMOTIONS.get(writer.kind, ()):
                yield f"{at}: the writer's {branch_name(writer)} can't be read as {branch_name(reader)}"
        elif (
            isinstance(reader, NamedType)
            and isinstance(writer, NamedType)
            and not _names_match(reader, writer)
        ):
            yield f"{at}: the reader expects {reader.full_name}, the writer has {writer.full_name}"
        else:
            yield from self._same_kind(reader, writer, path, seen)

    def _same_kind(self, reader: AvroType, writer: AvroType, path: str, seen: Seen) -> Iterator[str]:
        at = path or "/"
        if isinstance(reader, RecordType) and isinstance(writer, RecordType):
            yield from self._records(reader, writer, path, seen)
        elif isinstance(reader, EnumType) and isinstance(writer, EnumType):
            self._budget.take(len(writer.symbols) + len(reader.symbols))
            known = {*reader.symbols}
            missing = [symbol for symbol in writer.symbols if symbol not in known]
            if missing and reader.default is None:
                yield f"{at}: the enum {reader.full_name} lacks {', '.join(missing)} and has no default"
        elif isinstance(reader, FixedType) and isinstance(writer, FixedType):
            if reader.size != writer.size:
                yield f"{at}: {reader.full_name} was changed from {writer.size} to {reader.size} bytes"
        elif isinstance(reader, ArrayType) and isinstance(writer, ArrayType):
            yield from self.compare(reader.items, writer.items, f"{path}/items", seen)
        elif isinstance(reader, MapType) and isinstance(writer, MapType):
            yield from self.compare(reader.values, writer.values, f"{path}/values", seen)

    def _records(self, reader: RecordType, writer: RecordType, path: str, seen: Seen) -> Iterator[str]:
        if id(writer) not in self._fields:
            self._fields[id(writer)] = by_name(writer)
        theirs = self._fields[id(writer)]
        for field in reader.fields:
            written = written_field(field, theirs)
            if written is not None:
                yield from self.compare(field.type, written.type, f"{path}/{field.name}", seen)
            elif not field.has_default:
                yield f"{path}/{field.name}: the writer does not have the field, and it has no default"

    def match(self, reader: UnionType, writer: AvroType, seen: Seen) -> int | None:
        self._budget.take(len(reader.branches))
        candidates = sorted(
            range(len(reader.branches)), key=lambda number: not _is_same(reader.branches[number], writer)
        )
        for number in candidates:
            branch = reader.branches[number]
            pair = id(branch), id(writer)
            if pair not in self._verdicts:
                before = len(seen)
                self._verdicts[pair] = next(self.compare(branch, writer, "", seen), None) is None
                while len(seen) > before:  # it was tried only
                    seen.popitem()
            if self._verdicts[pair]:
                return number
        return None


def match(reader: UnionType, writer: AvroType) -> int | None:
    """The branch of the reader's union that a writer's type is read as: one of its own name before others."""
    return _Comparison().match(reader, writer, {})


def _is_same(branch: AvroType, writer: AvroType) -> bool:
    return branch.kind == writer.kind and branch_name(branch) == branch_name(writer)


def by_name(record: RecordType) -> dict[str, RecordField]:
    return {each.name: each for each in record.fields}


def written_field(field: RecordField, writer: Mapping[str, RecordField]) -> RecordField | None:
    """The writer's field of that name, or of one of the reader's aliases."""
    found = [writer[name] for name in (field.name, *field.aliases) if name in writer]
    return found[0] if found else None


def _names_match(reader: NamedType, writer: NamedType) -> bool:
    return reader.name == writer.name or writer.full_name in reader.aliases
