"""The column `value` as messages of a registered schema, on the way into topics.

On the driver the schema is registered, so that the tasks know its id. A query that starts again, or a task
that is repeated, registers the same one and writes the same bytes. So it is the one that the user gives, or
the one of the column's type: never whatever is the newest by then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from postroad.errors import ConfigurationError, InvalidRecord, InvalidSchema
from postroad.schemas.protobuf import ProtoFile
from postroad.schemas.schema import AVRO, PROTOBUF
from postroad.spark import avro_writing, json_writing, proto_writing
from postroad.spark.avro_of_types import record_of
from postroad.spark.columns import VALUE
from postroad.spark.json_of_types import document_of
from postroad.spark.json_schema_types import shape_of
from postroad.spark.proto_of_types import file_of, renumbered
from postroad.spark.ragged import Ragged, zigzags
from postroad.spark.registered_parsing import FORMATS, kind_of, path_of, wanted_message
from postroad.spark.schema_registry import NotRegistered, RegisteredText, SchemaRegistry

NAME = "Value"  # of a schema that is made of a column's type


class ValueEncoder(NamedTuple):
    """It can be pickled."""

    schema: RegisteredText
    message: str  # of a Protobuf file

    def encode(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches with their values as bytes; null stays null. Raises InvalidRecord."""
        kind = kind_of(self.schema, self.message)
        write, head = self._writer(), self._head()
        for batch in batches:
            at = batch.schema.get_field_index(VALUE)
            values = _messages(write, kind, batch.column(at), head)
            yield batch.set_column(at, VALUE, values)

    def _head(self) -> bytes:
        """What stands before each message: the id, and in Protobuf the path to the message in its file."""
        head = b"\0" + self.schema.id.to_bytes(4, "big")
        if self.schema.kind != PROTOBUF:
            return head
        file = self.schema.parsed().tree
        path = path_of(file, wanted_message(file, self.message))
        return head + (b"\0" if path == (0,) else _zigzags(len(path), *path))

    def _writer(self) -> Callable[[Any], Any]:
        """Makes binaries of values of the schema's type."""
        tree = self.schema.parsed().tree
        if self.schema.kind == AVRO:
            return lambda values: _binaries(avro_writing.write(tree, values))
        if self.schema.kind == PROTOBUF:
            name = wanted_message(tree, self.message)
            return lambda values: _binaries(proto_writing.write(tree, name, values))
        shape = shape_of(tree)
        return lambda values: pa.array(json_writing.texts(values, shape), pa.binary())


def prepare(
    registry: SchemaRegistry, subject: str, format_: str, given: str | None, message: str, kind: Any
) -> ValueEncoder:
    """`given`: the schema's text, if the user has one. `kind`: Arrow's type of the column. Raises
    ConfigurationError."""
    if given is None and not pa.types.is_struct(kind):
        raise ConfigurationError(
            f"valueFormat={format_}: the column value must be a struct, or give valueSchema."
        )
    name = FORMATS[format_]
    text = _text_of(name, kind) if given is None else given
    try:
        made = RegisteredText(0, name, text, ())
        pa.array([], kind).cast(kind_of(made, message))
        if given is None and name == PROTOBUF:
            _check_numbers(registry, subject, made)
        found = made._replace(id=registry.register(subject, name, text))
    except (InvalidSchema, NotRegistered) as error:
        raise ConfigurationError(f"valueFormat={format_}: {error}") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise ConfigurationError(
            f"valueFormat={format_}: the column value is not of the schema: {error}"
        ) from None
    return ValueEncoder(found, message)


def _text_of(name: str, kind: Any) -> str:
    if name == PROTOBUF:
        return file_of(kind, NAME)
    return json.dumps(record_of(kind, NAME) if name == AVRO else document_of(kind, NAME))


def _check_numbers(registry: SchemaRegistry, subject: str, made: RegisteredText) -> None:
    try:
        newest = registry.latest(subject)
    except NotRegistered:
        return
    if newest.kind != PROTOBUF:
        return  # which the registry refuses
    old: ProtoFile = newest.parsed().tree
    if field := renumbered(old, made.parsed().tree):
        raise ConfigurationError(
            f"valueFormat=protobuf: {field} would have another number than in schema {newest.id} of "
            f"{subject}, and messages would be mixed up. Put new fields last, or give valueSchema."
        )


def _zigzags(*numbers: int) -> bytes:
    return zigzags(np.array(numbers, np.int64)).data.tobytes()


def _messages(write: Callable[[Any], Any], kind: Any, values: Any, head: bytes) -> Any:
    valid = values.is_valid()
    try:
        some = values.filter(valid).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidRecord(f"A value is not of the schema: {error}") from None
    headed = pa.scalar(head, pa.binary())
    found = pc.binary_join_element_wise(headed, write(some), pa.scalar(b"", pa.binary()))
    if len(found) == len(values):
        return found
    order = pc.cumulative_sum(valid.cast(pa.int64()))
    return found.take(pc.if_else(valid, pc.subtract(order, 1), None))


def _binaries(body: Ragged) -> Any:
    offsets = pa.array([0, *body.lengths.cumsum()], pa.int32()).buffers()[1]
    data = pa.py_buffer(body.data.tobytes())
    return pa.Array.from_buffers(pa.binary(), len(body.lengths), [None, offsets, data])
