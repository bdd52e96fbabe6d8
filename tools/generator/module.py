"""Puts one generated file together: constants, classes, entry points, readers and writers."""

from __future__ import annotations

import re

from .classes import write_class
from .decoder import DecoderWriter
from .encoder import EncoderWriter
from .layout import struct_name
from .lines import Lines
from .naming import reader_name, writer_name
from .schema import Api, Struct

GENERATED = "# Generated from kio's schemas by `make messages`: change tools/generator, not this file."

_PACKAGE_DOCSTRING = '''"""The messages of each Kafka API: one module each, the version an argument.

Every module has KEY, NAME, MIN_VERSION, MAX_VERSION and FLEXIBLE_FROM, a class for each struct with the
fields of all versions, and decode_request, encode_request, decode_response, encode_response. Data that
travels inside another message's bytes has no KEY, and only decode and encode.

A body starts behind the header. Decoding sets what a version lacks to its default and ignores bytes
behind the message; encoding leaves out what a version lacks. Wrong bytes raise ProtocolError, a version
that is not there UnsupportedVersion, a value that its field can't hold ValueError. Times are integers in
milliseconds, ids 16 bytes, records a view of the body; a tagged struct is None where it was left out.
"""'''

_RUNTIME = (
    "INT32_ARRAYS", "SHORT_UVARINTS", "UNREADABLE", "ZERO_UUID", "Buffer", "Message", "bad_bool",
    "bad_length", "bad_marker", "bad_tag_size", "does_not_fit", "long_uvarint", "malformed",
    "must_not_be_null", "read_tag", "skip_tags", "tagged_field", "unsupported", "uvarint",
)  # fmt: skip


def write_module(api: Api) -> str:
    formats: set[str] = set()
    classes, entries, functions = Lines(), Lines(), Lines()
    for direction, struct in api.messages.items():
        _write_classes(classes, struct, api)
        _write_entries(entries, struct, direction, api)
        _write_functions(functions, struct, api, formats)
    body = classes.text() + entries.text() + _structs(formats) + functions.text()
    return _head(api, body) + body.rstrip("\n") + "\n"


def write_package(apis: list[Api]) -> str:
    """The package's `__init__`: which module serves which key."""
    out = Lines()
    out(GENERATED, *_PACKAGE_DOCSTRING.splitlines(), "", "from typing import Final", "")
    with out.block("MODULES: Final[dict[int, str]] = {"):
        out(*(f'{api.key}: "{api.module}",' for api in apis if api.key is not None))
    out("}")
    return out.text()


def _head(api: Api, body: str) -> str:
    out = Lines()
    title = f"{api.name} ({api.key})" if api.key is not None else api.name
    out(GENERATED, f'"""{title}, versions {api.versions[0]} to {api.versions[-1]}."""', "")
    out(
        "from __future__ import annotations",
        "",
        "from collections.abc import Sequence",
        "from struct import Struct",
    )
    if "struct_error" in body:
        out("from struct import error as struct_error")
    out("from typing import Final", "")
    with out.block("from postroad.wire.primitives import ("):
        out(*(f"{name}," for name in _RUNTIME if re.search(rf"\b{name}\b", body)))
    out(")", "")
    if api.key is not None:
        out(f"KEY: Final = {api.key}")
    out(f'NAME: Final = "{api.name}"')
    out(f"MIN_VERSION: Final = {api.versions[0]}", f"MAX_VERSION: Final = {api.versions[-1]}")
    out(f"FLEXIBLE_FROM: Final = {api.flexible_from}", "", "new = object.__new__", "", "")
    return out.text()


def _structs(formats: set[str]) -> str:
    lines = [f'{struct_name(codes)} = Struct(">{codes}")' for codes in sorted(formats)]
    return "\n".join([*lines, "", "", ""])


def _distinct(struct: Struct) -> list[Struct]:
    """The message's structs, leaves first, each once."""
    found: dict[str, Struct] = {}
    for nested in [*struct.nested(), struct]:
        if found.setdefault(nested.name, nested).fields != nested.fields:
            raise ValueError(f"two different structs are called {nested.name}")
    return list(found.values())


def _write_classes(out: Lines, struct: Struct, api: Api) -> None:
    for found in _distinct(struct):
        write_class(out, found, api)
        out("", "")


def _write_functions(out: Lines, struct: Struct, api: Api, formats: set[str]) -> None:
    views = any(field.type == "records" for found in _distinct(struct) for field in found.fields)
    decoder, encoder = DecoderWriter(out, api, formats, views), EncoderWriter(out, api, formats)
    for found in _distinct(struct):
        decoder.write(found)
        out("", "")
        encoder.write(found)
        out("", "")


def _write_entries(out: Lines, struct: Struct, direction: str, api: Api) -> None:
    suffix = "" if direction == "data" else f"_{direction}"
    name = api.name if direction == "data" else f"{api.name} {direction}"
    views = any(field.type == "records" for found in _distinct(struct) for field in found.fields)
    refuse = "raise unsupported(NAME, version, MIN_VERSION, MAX_VERSION)"
    with out.block(f"def decode{suffix}(body: Buffer, version: int) -> {struct.name}:"):
        with out.block("if not MIN_VERSION <= version <= MAX_VERSION:"):
            out(refuse)
        out('buffer = memoryview(body).cast("B")' if views else "buffer = bytes(body)")
        with out.block("try:"):
            out(f"items, _ = {reader_name(struct)}(buffer, 0, len(buffer), version, 1)")
        with out.block("except UNREADABLE as error:"):
            out(f'raise malformed("{name}", version, error) from None')
        out("return items[0]")
    out("", "")
    argument = "data" if direction == "data" else direction
    with out.block(f"def encode{suffix}({argument}: {struct.name}, version: int) -> bytes:"):
        with out.block("if not MIN_VERSION <= version <= MAX_VERSION:"):
            out(refuse)
        out("out: list[Buffer] = []")
        with out.block("try:"):
            out(f"{writer_name(struct)}(out, ({argument},), version)")
        with out.block("except struct_error as error:"):
            out(f'raise does_not_fit("{name}", version, error) from error')
        out('return b"".join(out)')
    out("", "")
