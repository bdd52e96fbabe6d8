"""Writes the function that appends structs of one kind to a list of byte strings."""

from __future__ import annotations

from .classes import fresh_default
from .layout import (
    CODES,
    Half,
    Run,
    branch,
    condition,
    halves,
    is_fixed,
    layouts,
    lead_code,
    runs,
    struct_name,
    text_code,
)
from .lines import Lines
from .naming import writer_name
from .schema import Api, Field, Struct

_ENCODING_CODES = CODES | {"bool": "?"}


class EncoderWriter:
    def __init__(self, out: Lines, api: Api, formats: set[str]) -> None:
        self.out = out
        self.api = api
        self.formats = formats

    def write(self, struct: Struct) -> None:
        items = f"items: Sequence[{struct.name}]"
        with self.out.block(f"def {writer_name(struct)}(out: list[Buffer], {items}, version: int) -> None:"):
            found = halves(struct, self.api)
            for index, half in enumerate(found):
                head_of_half = branch(index, len(found), half.versions[0])
                with self.out.block(head_of_half), self.out.block("for item in items:"):
                    self._half(struct, half)

    def _half(self, struct: Struct, half: Half) -> None:
        tagged = [field for field in struct.tagged if field.versions.intersection(half.versions)]
        for run in runs(struct, half):
            self._run(run, half, struct, ends=run.is_last and half.is_flexible and not tagged)
        if tagged:
            self._tagged(struct, tagged, half)

    def _run(self, run: Run, half: Half, struct: Struct, ends: bool) -> None:
        field = run.variable
        if field is None:
            self._fixed(run, half, "", "", "x" if ends else "")
            return
        if half.is_flexible or not lead_code(field, False) or condition(field.versions, half):
            self._fixed(run, half, "", "", "")
            test = condition(field.versions, half)
            with self.out.block(f"if {test}:" if test else None):
                self._null_guard(field, half, struct)
                self._value(field, half, "out")
            return
        self._null_guard(field, half, struct)
        self._prepare(field, half)
        self._fixed(run, half, lead_code(field, False), _legacy_length(field, half), "")
        self._legacy_body(field, half, "out")

    def _fixed(self, run: Run, half: Half, lead: str, length: str, pad: str) -> None:
        """The fixed fields of a run, then the length of the variable one (or no tags) in one Struct."""
        fixed_only = Run(run.fixed, None, run.is_last)
        options = layouts(fixed_only, half)
        for index, (first, fixed, _) in enumerate(options):
            codes = "".join(_ENCODING_CODES[field.type] for field in fixed) + lead + pad
            values = [f"item.{field.name}" for field in fixed] + ([length] if lead else [])
            with self.out.block(branch(index, len(options), first)):
                self._pack(codes, values)

    def _pack(self, codes: str, values: list[str]) -> None:
        if codes == "x":
            self.out('out.append(b"\\0")')
        elif codes == "16s":
            self.out(f"out.append({values[0]})")
        elif codes:
            self.out(f"out.append({self._packed(codes, values)})")

    def _packed(self, codes: str, values: list[str]) -> str:
        self.formats.add(codes)
        return f"{struct_name(codes)}.pack({', '.join(values)})"

    def _null_guard(self, field: Field, half: Half, struct: Struct) -> None:
        """None is refused where a version of this half has no null for it."""
        present = tuple(sorted(field.versions.intersection(half.versions)))
        forbidden = [version for version in present if version not in field.nullable]
        if not field.nullable or not forbidden:
            return
        test = condition(forbidden, Half(present, half.is_flexible))
        with self.out.block(f"if item.{field.name} is None{f' and {test}' if test else ''}:"):
            self.out(f'raise must_not_be_null("{struct.name}.{field.name}", version)')

    def _value(self, field: Field, half: Half, dest: str) -> None:
        """A whole variable field, its length included."""
        if field.struct is not None and not field.is_array:
            self._single_struct(field, dest)
        elif half.is_flexible:
            self._compact(field, half, dest)
        else:
            self._prepare(field, half)
            self.out(f"{dest}.append({self._packed(lead_code(field, False), [_legacy_length(field, half)])})")
            self._legacy_body(field, half, dest)

    def _single_struct(self, field: Field, dest: str) -> None:
        assert field.struct is not None
        write = f"{writer_name(field.struct)}({dest}, (item.{field.name},), version)"
        if not field.nullable:
            self.out(write)
            return
        with self.out.block(f"if item.{field.name} is None:"):
            self.out(f'{dest}.append(b"\\xff")')
        with self.out.block("else:"):
            self.out(f'{dest}.append(b"\\x01")', write)

    def _compact(self, field: Field, half: Half, dest: str) -> None:
        nullable = bool(field.nullable.intersection(half.versions)) and not field.is_tagged
        if nullable:
            with self.out.block(f"if item.{field.name} is None:"):
                self.out(f'{dest}.append(b"\\0")')
        with self.out.block("else:" if nullable else None):
            if field.is_array:
                self._compact_length(f"item.{field.name}", dest)
                self._elements(field, half, dest)
            else:
                raw = _raw_name(field)
                self.out(f"{raw} = {_raw_value(field)}")
                self._compact_length(raw, dest)
                self.out(f"{dest}.append({raw})")

    def _compact_length(self, value: str, dest: str) -> None:
        self.out(f"length = len({value}) + 1")
        self.out(f"{dest}.append(SHORT_UVARINTS[length] if length < 128 else uvarint(length))")

    def _prepare(self, field: Field, half: Half) -> None:
        if field.is_array:
            return
        value = _raw_value(field)
        if field.nullable.intersection(half.versions):
            value = f'b"" if item.{field.name} is None else {value}'
        self.out(f"{_raw_name(field)} = {value}")

    def _legacy_body(self, field: Field, half: Half, dest: str) -> None:
        if field.is_array:
            self._elements(field, half, dest)
        else:
            self.out(f"{dest}.append({_raw_name(field)})")

    def _elements(self, field: Field, half: Half, dest: str) -> None:
        name = f"item.{field.name}"
        with self.out.block(f"if {name}:"):
            if field.struct is not None:
                self.out(f"{writer_name(field.struct)}({dest}, {name}, version)")
            elif field.type in CODES:
                self._numbers(field, name, dest)
            else:
                self._texts(name, half, dest)

    def _numbers(self, field: Field, name: str, dest: str) -> None:
        struct = f'Struct(f">{{count}}{CODES[field.type]}")'
        if field.type == "int32":
            struct = f"INT32_ARRAYS[count] if count < 17 else {struct}"
        self.out(f"count = len({name})", f"numbers = {struct}", f"{dest}.append(numbers.pack(*{name}))")

    def _texts(self, name: str, half: Half, dest: str) -> None:
        with self.out.block(f"for text in {name}:"):
            self.out("raw = text.encode()")
            if half.is_flexible:
                self._compact_length("raw", dest)
            else:
                self.out(f"{dest}.append({self._packed(text_code(half), ['len(raw)'])})")
            self.out(f"{dest}.append(raw)")

    def _tagged(self, struct: Struct, tagged: list[Field], half: Half) -> None:
        self.out("tagged: list[Buffer] = []")
        if not all(is_fixed(field) for field in tagged):
            self.out("value: list[Buffer]")
        for field in tagged:
            test = condition(field.versions, half)
            with self.out.block(f"if {f'{test} and ' if test else ''}{_differs(field)}:"):
                if is_fixed(field):
                    packed = self._packed(_ENCODING_CODES[field.type], [f"item.{field.name}"])
                    self.out(f"tagged.append(tagged_field({field.tag}, [{packed}]))")
                else:
                    self.out("value = []")
                    self._value(field, half, "value")
                    self.out(f"tagged.append(tagged_field({field.tag}, value))")
        self.out("out.append(SHORT_UVARINTS[len(tagged)])", "out += tagged")


def _differs(field: Field) -> str:
    """The test that a tagged field differs from its default, so that it has to be written."""
    name = f"item.{field.name}"
    if field.is_array:
        return name
    if field.struct is not None:
        return f"{name} is not None and {name} != {field.struct.name}()"
    if field.default is None and field.type != "uuid":
        return f"{name} is not None"
    if field.type == "bool":
        return f"not {name}" if field.default else name
    return f"{name} != {fresh_default(field)}"


def _raw_name(field: Field) -> str:
    return "records" if field.type == "records" else "raw"


def _raw_value(field: Field) -> str:
    return f"item.{field.name}.encode()" if field.type == "string" else f"item.{field.name}"


def _legacy_length(field: Field, half: Half) -> str:
    name = f"item.{field.name}" if field.is_array else _raw_name(field)
    nullable = field.nullable.intersection(half.versions)
    return f"-1 if item.{field.name} is None else len({name})" if nullable else f"len({name})"
