"""Writes the class of a struct: slots, annotations with their versions, defaults."""

from __future__ import annotations

from .lines import Lines
from .schema import Api, Field, Struct

_PLAIN = {
    "string": "str",
    "bytes": "bytes",
    "records": "Buffer",
    "uuid": "bytes",
    "bool": "bool",
    "float64": "float",
}


def write_class(out: Lines, struct: Struct, api: Api) -> None:
    with out.block(f"class {struct.name}(Message):"):
        out(f"__slots__ = ({_slots(struct)})")
        for field in struct.fields:
            out(f"{field.name}: {annotation(field)}{_remark(field, struct, api)}")
        out("")
        if not struct.fields:
            return
        with out.block("def __init__("):
            out("self,", *(f"{field.name}: {_parameter(field)}," for field in struct.fields))
        with out.block(") -> None:"):
            out(*(f"self.{field.name} = {_initial(field)}" for field in struct.fields))


def _slots(struct: Struct) -> str:
    names = ", ".join(f'"{field.name}"' for field in struct.fields)
    return names + "," if len(struct.fields) == 1 else names


def annotation(field: Field) -> str:
    plain = field.struct.name if field.struct else _PLAIN.get(field.type, "int")
    whole = f"list[{plain}]" if field.is_array else plain
    return f"{whole} | None" if field.is_optional else whole


def fresh_default(field: Field) -> str:
    """The default as an expression; a new object each time where it can be changed."""
    if field.is_optional and field.default is None:
        return "None"
    if field.is_array:
        return "[]"
    if field.struct is not None:
        return f"{field.struct.name}()"
    return "ZERO_UUID" if field.type == "uuid" else repr(field.default).replace("'", '"')


def _is_made_anew(field: Field) -> bool:
    return not field.is_optional and (field.is_array or field.struct is not None)


def _parameter(field: Field) -> str:
    if _is_made_anew(field):
        return f"{annotation(field)} | None = None"
    return f"{annotation(field)} = {fresh_default(field)}"


def _initial(field: Field) -> str:
    if _is_made_anew(field):
        return f"{fresh_default(field)} if {field.name} is None else {field.name}"
    return field.name


def _remark(field: Field, struct: Struct, api: Api) -> str:
    """Which versions have the field, and in which it may be null, where that is not all of them."""
    remarks = []
    if field.versions != struct.versions:
        remarks.append(_span(field.versions, api))
    if field.nullable and field.nullable != field.versions:
        remarks.append(f"null in {_span(field.nullable, api)}")
    if field.is_tagged:
        remarks.append(f"tag {field.tag}")
    return f"  # {', '.join(remarks)}" if remarks else ""


def _span(versions: frozenset[int], api: Api) -> str:
    first, last = min(versions), max(versions)
    if last == api.versions[-1]:
        return f"v{first}+"
    return f"v{first}" if first == last else f"v{first}–v{last}"
