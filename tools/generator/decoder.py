"""Writes the function that reads the structs of one kind that follow each other."""

from __future__ import annotations

from struct import calcsize

from .classes import fresh_default
from .layout import (
    CODES,
    Half,
    Run,
    branch,
    condition,
    element_size_min,
    halves,
    is_fixed,
    layouts,
    lead_code,
    runs,
    struct_name,
    text_code,
)
from .lines import Lines
from .naming import reader_name
from .schema import Api, Field, Struct


class DecoderWriter:
    """`views`: the buffer is a memoryview, because the message has records that must not be copied."""

    def __init__(self, out: Lines, api: Api, formats: set[str], views: bool) -> None:
        self.out = out
        self.api = api
        self.formats = formats
        self.views = views

    def write(self, struct: Struct) -> None:
        buffer = "memoryview" if self.views else "bytes"
        with self.out.block(f"def {reader_name(struct)}("):
            self.out(f"buffer: {buffer}, position: int, end: int, version: int, number: int")
        with self.out.block(f") -> tuple[list[{struct.name}], int]:"):
            self.out(f"items: list[{struct.name}] = []")
            found = halves(struct, self.api)
            for index, half in enumerate(found):
                with self.out.block(branch(index, len(found), half.versions[0])):
                    self._half(struct, half)
            self.out("return items, position")

    def _half(self, struct: Struct, half: Half) -> None:
        with self.out.block("for _ in range(number):"):
            self.out(f"item = new({struct.name})")
            for run in runs(struct, half):
                self._run(run, half, struct)
            absent = [
                f for f in struct.fields if not f.is_tagged and not f.versions.intersection(half.versions)
            ]
            tagged = [f for f in struct.tagged if f.versions.intersection(half.versions)]
            self._defaults([*absent, *struct.tagged])
            if tagged:
                self._tagged(struct, tagged, half)
            elif half.is_flexible:
                with self.out.block("if tags:"):
                    self.out(f'position = skip_tags(buffer, position, end, tags, "{struct.name}")')
            self.out("items.append(item)")

    def _run(self, run: Run, half: Half, struct: Struct) -> None:
        if run.variable is not None and not run.fixed:
            self._variable(run.variable, half, struct, lead=lead_code(run.variable, half.is_flexible))
            return
        options = layouts(run, half)
        for index, (first, fixed, has_variable) in enumerate(options):
            with self.out.block(branch(index, len(options), first)):
                self._unpack(fixed, run.variable if has_variable else None, run, half, struct)
                self._defaults([field for field in run.fixed if field not in fixed])
        if run.variable is not None:
            self._variable(run.variable, half, struct)

    @staticmethod
    def _ends(run: Run, half: Half) -> bool:
        return run.is_last and half.is_flexible

    def _unpack(
        self, fixed: tuple[Field, ...], variable: Field | None, run: Run, half: Half, struct: Struct
    ) -> None:
        codes = [CODES[field.type] for field in fixed]
        targets = [_target(field) for field in fixed]
        if variable is not None and (lead := lead_code(variable, half.is_flexible)):
            codes.append(lead)
            targets.append(_lead_target(variable))
        if self._ends(run, half):
            codes.append("B")
            targets.append("tags")
        self._unpack_codes("".join(codes), targets)
        for field in fixed:
            if field.type == "bool":
                self._check_bool(field, struct)

    def _unpack_codes(self, codes: str, targets: list[str]) -> None:
        if not codes:
            return
        if codes == "B":
            self.out(f"{targets[0]} = buffer[position]")
        else:
            self.formats.add(codes)
            left = ", ".join(targets) if len(targets) > 1 else f"({targets[0]},)"
            self.out(f"{left} = {struct_name(codes)}.unpack_from(buffer, position)")
        self.out(f"position += {calcsize('>' + codes)}")

    def _check_bool(self, field: Field, struct: Struct) -> None:
        with self.out.block(f"if {field.name} > 1:"):
            self.out(f'raise bad_bool("{struct.name}.{field.name}", {field.name})')
        self.out(f"item.{field.name} = {field.name} == 1")

    def _defaults(self, absent: list[Field]) -> None:
        for field in absent:
            self.out(f"item.{field.name} = {fresh_default(field)}")

    def _variable(self, field: Field, half: Half, struct: Struct, lead: str = "") -> None:
        """A variable field, in the versions that have it; `lead` is what has not been read of it yet."""
        test = condition(field.versions, half)
        with self.out.block(f"if {test}:" if test else None):
            self._unpack_codes(lead, [_lead_target(field)])
            self._value(field, half, struct)
        if test:
            with self.out.block("else:"):
                self._defaults([field])

    def _value(self, field: Field, half: Half, struct: Struct) -> None:
        where = f'"{struct.name}.{field.name}"'
        if field.struct is not None and not field.is_array:
            self._single_struct(field, where)
            return
        length = _lead_target(field)
        if half.is_flexible:
            with self.out.block(f"if {length} > 127:"):
                self.out(f"{length}, position = long_uvarint(buffer, position, {length})")
            self.out(f"{length} -= 1")
        if nullable := field.nullable.intersection(half.versions):
            test = condition(nullable, Half(tuple(sorted(field.versions.intersection(half.versions))), True))
            with self.out.block(f"if {length} == -1{f' and {test}' if test else ''}:"):
                self.out(f"item.{field.name} = None")
        with self.out.block("else:" if nullable else None):
            (self._array if field.is_array else self._bytes)(field, half, where)

    def _single_struct(self, field: Field, where: str) -> None:
        assert field.struct is not None
        read = (
            f"(item.{field.name},), position = {reader_name(field.struct)}(buffer, position, end, version, 1)"
        )
        if not field.nullable:
            self.out(read)
            return
        with self.out.block("if marker == -1:"):
            self.out(f"item.{field.name} = None")
        with self.out.block("elif marker == 1:"):
            self.out(read)
        with self.out.block("else:"):
            self.out(f"raise bad_marker({where}, marker)")

    def _bytes(self, field: Field, half: Half, where: str) -> None:
        self._check_length(where)
        self.out(f"item.{field.name} = {self._slice(field.type)}", "position = stop")

    def _check_length(self, where: str) -> None:
        self.out("stop = position + length")
        with self.out.block("if length < 0 or stop > end:"):
            self.out(f"raise bad_length({where}, length, end - position)")

    def _slice(self, kind: str) -> str:
        piece = "buffer[position:stop]"
        if kind == "string":
            return f'str({piece}, "utf-8")' if self.views else f"{piece}.decode()"
        return f"bytes({piece})" if self.views and kind == "bytes" else piece

    def _array(self, field: Field, half: Half, where: str) -> None:
        size = element_size_min(field, half)
        left = "end - position" if size == 1 else f"(end - position) // {size}"
        with self.out.block(f"if count < 0 or count > {left}:"):
            self.out(f"raise bad_length({where}, count, end - position)")
        if field.struct is not None:
            read = f"{reader_name(field.struct)}(buffer, position, end, version, count)"
            self.out(f"item.{field.name}, position = {read}")
        elif field.type in CODES:
            self._array_of_fixed(field, size)
        else:
            self._array_of_strings(field, half, where)

    def _array_of_fixed(self, field: Field, size: int) -> None:
        code = CODES[field.type]
        struct = f'Struct(f">{{count}}{code}")'
        self.out(
            f"numbers = INT32_ARRAYS[count] if count < 17 else {struct}"
            if code == "i"
            else f"numbers = {struct}"
        )
        self.out(f"item.{field.name} = [*numbers.unpack_from(buffer, position)]")
        self.out(f"position += count * {size}" if size > 1 else "position += count")

    def _array_of_strings(self, field: Field, half: Half, where: str) -> None:
        self.out(f"item.{field.name} = []", f"append = item.{field.name}.append")
        with self.out.block("for _ in range(count):"):
            self._unpack_codes(text_code(half), ["length"])
            if half.is_flexible:
                with self.out.block("if length > 127:"):
                    self.out("length, position = long_uvarint(buffer, position, length)")
                self.out("length -= 1")
            self._check_length(where)
            self.out(f"append({self._slice('string')})", "position = stop")

    def _tagged(self, struct: Struct, tagged: list[Field], half: Half) -> None:
        with self.out.block("if tags:"):
            with self.out.block("if tags > 127:"):
                self.out("tags, position = long_uvarint(buffer, position, tags)")
            self.out("tag = -1")
            with self.out.block("for _ in range(tags):"):
                self.out(f'tag, position, stop_tag = read_tag(buffer, position, end, tag, "{struct.name}")')
                for index, field in enumerate(tagged):
                    test = condition(field.versions, half)
                    test = f"tag == {field.tag}" + (f" and {test}" if test else "")
                    with self.out.block(f"{'elif' if index else 'if'} {test}:"):
                        self._tagged_value(field, half, struct)
                with self.out.block("else:"):
                    self.out("position = stop_tag")
                with self.out.block("if position != stop_tag:"):
                    self.out(f'raise bad_tag_size("{struct.name}", tag)')

    def _tagged_value(self, field: Field, half: Half, struct: Struct) -> None:
        if is_fixed(field):
            self._unpack_codes(CODES[field.type], [_target(field)])
            if field.type == "bool":
                self._check_bool(field, struct)
            return
        self._unpack_codes(lead_code(field, is_flexible=True), [_lead_target(field)])
        self._value(field, half, struct)


def _target(field: Field) -> str:
    """Where a value goes: a bool is looked at before it reaches its attribute."""
    return field.name if field.type == "bool" else f"item.{field.name}"


def _lead_target(field: Field) -> str:
    if field.is_array:
        return "count"
    return "marker" if field.struct is not None else "length"
