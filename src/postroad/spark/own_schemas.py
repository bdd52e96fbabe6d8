"""Values that begin with the id of a schema, each read as the schema that it was written with says.

For tables that take whatever columns there are, where `registered_parsing` reads all messages as one type.
What a schema says of its id never changes, so a message is read alike whenever that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from postroad.errors import ConfigurationError, InvalidSchema
from postroad.schemas.protobuf import ProtoFile
from postroad.schemas.schema import AVRO, PROTOBUF
from postroad.spark.avro_reading import Unreadable, reader
from postroad.spark.avro_types import arrow_type
from postroad.spark.json_schema_types import arrow_type_of
from postroad.spark.lanes import Lanes, Messages, Numbers
from postroad.spark.proto_reading import MessageReader
from postroad.spark.registered_parsing import READERS_MAX, by_id, message_at, paths, read_json, read_whole
from postroad.spark.schema_registry import NotRegistered, RegisteredText, SchemaRegistry


class Piece(NamedTuple):
    """Rows of one type: which they are, and a struct for each. Rows that are bad may be among them."""

    rows: Numbers
    values: Any


Pieces = Callable[[Lanes], Iterator[Piece]]


class OwnSchemas(NamedTuple):
    """It can be pickled. `kind` is the one of all schemas: others make a row bad."""

    registry: SchemaRegistry
    kind: str

    def read(self, values: Any) -> tuple[list[Piece], dict[int, str]]:
        """Binaries as pieces in any order, and why rows are bad. Rows that are null are in none. Raises
        RegistryUnavailable."""
        messages = Messages(values)
        pieces: list[Piece] = []
        for id_, lanes in by_id(messages, values):
            found = self._reader(id_)
            if isinstance(found, str):
                lanes.fail(np.ones(len(lanes), bool), found)
            else:
                pieces += found(lanes)
        return pieces, messages.bad

    def _reader(self, id_: int) -> Pieces | str:
        """How messages of the id are read, or why they can't be."""
        key = self.registry.url, self.kind, id_
        if key not in _readers:
            if len(_readers) >= READERS_MAX:
                _readers.clear()
            _readers[key] = self._made(id_)
        return _readers[key]

    def _made(self, id_: int) -> Pieces | str:
        try:
            schema = self.registry.by_id(id_)
            if schema.kind != self.kind:
                return f"schema {id_} is of type {schema.kind}, not {self.kind}"
            return _pieces_of(schema)
        except (NotRegistered, InvalidSchema, Unreadable, ConfigurationError) as error:
            return f"schema {id_}: {error}"


_readers: Final[dict[tuple[str, str, int], Pieces | str]] = {}


def _pieces_of(schema: RegisteredText) -> Pieces | str:
    """Raises ConfigurationError, InvalidSchema."""
    tree = schema.parsed().tree
    if schema.kind == PROTOBUF:
        return _Messages(tree)
    kind = arrow_type(tree) if schema.kind == AVRO else arrow_type_of(tree)
    if not pa.types.is_struct(kind) or _is_choice(schema.kind, tree):
        return f"schema {schema.id} is no record: it has no fields"
    if schema.kind == AVRO:
        read = reader(tree, tree)
        return lambda lanes: iter([Piece(lanes.rows, read_whole(lanes, read))])
    return lambda lanes: iter([Piece(lanes.rows, read_json(lanes, kind))])


def _is_choice(kind: str, tree: Any) -> bool:
    """Whether its struct is one of alternatives, and not one of fields."""
    return kind == AVRO and bool(tree.kind == "union")


class _Messages:
    """The messages of a Protobuf file: each says which one it is."""

    def __init__(self, file: ProtoFile) -> None:
        self._file = file
        self._read: dict[str, MessageReader | str] = {}

    def __call__(self, lanes: Lanes) -> Iterator[Piece]:
        for path, which in paths(lanes):
            some = lanes.some(which)
            read = self._reader(message_at(self._file, path))
            if isinstance(read, str):
                some.fail(np.ones(len(some), bool), read)
            else:
                yield Piece(some.rows, read_whole(some, read))
            lanes.moved(which, some)

    def _reader(self, name: str) -> MessageReader | str:
        if name not in self._read:
            self._read[name] = self._made(name)
        return self._read[name]

    def _made(self, name: str) -> MessageReader | str:
        if not name:
            return "it is a message that its schema does not have"
        try:
            package = f"{self._file.package}." if self._file.package else ""
            return MessageReader(self._file, f"{package}{name}")
        except ConfigurationError as error:
            return str(error)
