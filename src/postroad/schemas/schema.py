"""A schema as it is written down, and parsed: the one door to Avro, JSON Schema and Protobuf."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from postroad.errors import InvalidSchema
from postroad.schemas import (
    avro,
    avro_compatibility,
    json_compatibility,
    json_schema,
    protobuf,
    protobuf_compatibility,
    protobuf_descriptor,
    protobuf_text,
    well_known,
)

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
KINDS: Final = (JSON, PROTOBUF, AVRO)

BYTES_MAX: Final = 1024 * 1024  # of a schema's text
REFERENCES_MAX: Final = 1_000  # of one schema, with those of its references
REFERENCED_BYTES_MAX: Final = 4 * BYTES_MAX


class Reference(msgspec.Struct, frozen=True):
    """Another schema that this one needs: under which name, and the subject and version that it is."""

    name: str
    subject: str
    version: int


class Parsed(NamedTuple):
    """`text` is what is kept: a descriptor becomes a .proto file. `tree` is what the kind's modules know."""

    kind: str
    text: str
    canonical: str
    tree: Any


def parse(kind: str, text: str, references: Mapping[str, str] | None = None) -> Parsed:
    """`references`: the texts of the schemas that it needs, by the names in which it refers to them, each
    after those that it needs itself. Raises InvalidSchema."""
    if len(text.encode("utf-8", "surrogatepass")) > BYTES_MAX:
        raise InvalidSchema(f"The schema is larger than {BYTES_MAX} bytes.")
    if not text.strip():
        raise InvalidSchema("The schema is empty.")
    referenced = references or {}
    if sum(map(len, referenced.values())) > REFERENCED_BYTES_MAX:
        raise InvalidSchema(f"The references of the schema are larger than {REFERENCED_BYTES_MAX} bytes.")
    try:
        return _PARSERS[kind](text, referenced)
    except KeyError:
        raise InvalidSchema(f"There is no schema type {kind!r}; there are {', '.join(KINDS)}.") from None
    except RecursionError:
        raise InvalidSchema("The schema nests too deeply.") from None


def digest(parsed: Parsed, references: tuple[Reference, ...]) -> str:
    """The same for schemas that are the same: of one kind, of one canonical form, with the same
    references."""
    about = msgspec.json.encode(
        [parsed.kind, parsed.canonical, sorted(map(msgspec.to_builtins, references), key=str)]
    )
    return hashlib.sha256(about).hexdigest()


def differences(reader: Parsed, writer: Parsed) -> list[str]:
    """Why messages by the writer's schema can't be read by the reader's; empty: they can."""
    if reader.kind != writer.kind:
        return [f"/: the schema's type was changed from {writer.kind} to {reader.kind}"]
    found: list[str] = _DIFFERENCES[reader.kind](reader.tree, writer.tree)
    return found


def serialized(parsed: Parsed, name: str) -> str:
    """A Protobuf schema as a FileDescriptorProto of that name, in base64."""
    return base64.b64encode(protobuf_descriptor.encode(parsed.tree, name)).decode()


# --- each kind


def _avro(text: str, references: Mapping[str, str]) -> Parsed:
    tree = avro.parse(text, references)
    return Parsed(AVRO, text, avro.canonical(tree), tree)


def _json(text: str, references: Mapping[str, str]) -> Parsed:
    tree = json_schema.parse(text, references)
    return Parsed(JSON, text, json_schema.canonical(tree), tree)


def _protobuf(text: str, references: Mapping[str, str]) -> Parsed:
    files: dict[str, protobuf.ProtoFile] = {}
    everything: dict[str, protobuf.ProtoMessage | protobuf.ProtoEnum] = {}
    for name, known in well_known.FILES.items():
        if name in text or any(name in other for other in references.values()) or is_descriptor(text):
            files[name] = protobuf_text.parse_text(known)
            protobuf.link(files[name], (), everything)
    for name, referenced in references.items():
        file = _proto_file(referenced)
        protobuf.link(file, files, everything)
        files[name] = file
    file = _proto_file(text)
    reached = _reached(file, files)
    protobuf.link(
        file,
        reached & files.keys(),
        dict(pair for name in reached if name in files for pair in files[name].types()),
    )
    canonical = protobuf.canonical(file)
    return Parsed(PROTOBUF, canonical if is_descriptor(text) else text, canonical, file)


def _reached(file: protobuf.ProtoFile, files: Mapping[str, protobuf.ProtoFile]) -> set[str]:
    """What it imports, and what those make public. Names beyond that are not known to it."""
    reached: set[str] = set()
    waiting = [name for name, _ in file.imports]
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        if name in files:
            waiting += [each for each, _ in files[name].imports]
    return reached


def is_descriptor(text: str) -> bool:
    """Whether a Protobuf schema came as confluent-kafka's serializer sends it. No .proto file is base64: its
    statements end with a semicolon."""
    return ";" not in text and "{" not in text


def _proto_file(text: str) -> protobuf.ProtoFile:
    if not is_descriptor(text):
        return protobuf_text.parse_text(text)
    try:
        return protobuf_descriptor.decode(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise InvalidSchema("The Protobuf schema is neither a .proto file nor base64.") from None


_PARSERS: Final = {AVRO: _avro, JSON: _json, PROTOBUF: _protobuf}
_DIFFERENCES: Final[Mapping[str, Any]] = {
    AVRO: avro_compatibility.differences,
    JSON: json_compatibility.differences,
    PROTOBUF: protobuf_compatibility.differences,
}
