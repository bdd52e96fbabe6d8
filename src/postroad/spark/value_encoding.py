"""The column `value` as messages of a registered schema, on the way into topics.

On the driver the schema is registered, so that the tasks know its id. A query that starts again, or a task
that is repeated, registers the same one and writes the same bytes. So it is the one that the user gives, or
the one of the column's type: never whatever is the newest by then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from postroad.errors import ConfigurationError, InvalidRecord, InvalidSchema
from postroad.schemas import avro
from postroad.schemas.schema import AVRO
from postroad.spark.avro_of_types import record_of
from postroad.spark.avro_types import arrow_type
from postroad.spark.avro_writing import Ragged, write
from postroad.spark.columns import VALUE
from postroad.spark.schema_registry import NotRegistered, SchemaRegistry


class ValueEncoder(NamedTuple):
    """It can be pickled."""

    text: str  # of the Avro schema
    id: int

    def encode(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches with their values as bytes; null stays null. Raises InvalidRecord."""
        type_ = avro.parse(self.text)
        kind = arrow_type(type_)
        head = b"\0" + self.id.to_bytes(4, "big")
        for batch in batches:
            at = batch.schema.get_field_index(VALUE)
            values = _messages(type_, kind, batch.column(at), head)
            yield batch.set_column(at, VALUE, values)


def prepare(registry: SchemaRegistry, subject: str, given: str | None, kind: Any) -> ValueEncoder:
    """`given`: the schema's text, if the user has one. `kind`: Arrow's type of the column. Raises
    ConfigurationError."""
    if given is None and not pa.types.is_struct(kind):
        raise ConfigurationError("valueFormat=avro: the column value must be a struct, or give valueSchema.")
    text = json.dumps(record_of(kind, "Value")) if given is None else given
    try:
        type_ = avro.parse(text)
        pa.array([], kind).cast(arrow_type(type_))
        id_ = registry.register(subject, AVRO, text)
    except (InvalidSchema, NotRegistered) as error:
        raise ConfigurationError(f"valueFormat=avro: {error}") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise ConfigurationError(
            f"valueFormat=avro: the column value is not of the schema: {error}"
        ) from None
    return ValueEncoder(text, id_)


def _messages(type_: avro.AvroType, kind: Any, values: Any, head: bytes) -> Any:
    valid = values.is_valid()
    try:
        some = values.filter(valid).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidRecord(f"A value is not of the Avro schema: {error}") from None
    body = write(type_, some)
    found = _headed(body, head)
    if len(found) == len(values):
        return found
    order = pc.cumulative_sum(valid.cast(pa.int64()))
    return found.take(pc.if_else(valid, pc.subtract(order, 1), None))


def _headed(body: Ragged, head: bytes) -> Any:
    parts = pa.Array.from_buffers(
        pa.binary(),
        len(body.lengths),
        [
            None,
            pa.array([0, *body.lengths.cumsum()], pa.int32()).buffers()[1],
            pa.py_buffer(body.data.tobytes()),
        ],
    )
    return pc.binary_join_element_wise(pa.scalar(head, pa.binary()), parts, pa.scalar(b"", pa.binary()))
