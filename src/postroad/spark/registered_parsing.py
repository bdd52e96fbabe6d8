"""Values that begin with the id of their schema: a zero byte, four bytes of the id, and then the message.

    parser = RegisteredParser(registry, schema, kind)      on the driver; it can be pickled
    values, bad = parser.parse(array_of_binaries)          in a task

In Protobuf the path to the message within its file follows the id: how many numbers, and these, as zigzag
varints; a zero alone is the first message.

Each message is read by the schema that it was written with, as the schema that is wanted. The ids of a batch
are few: their messages are read together (`lanes`), and the rows put back in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from postroad.errors import ConfigurationError, InvalidSchema
from postroad.schemas.protobuf import ProtoFile, ProtoMessage
from postroad.schemas.schema import AVRO, JSON, KINDS, PROTOBUF
from postroad.spark import json_parsing
from postroad.spark.avro_reading import Unreadable, reader
from postroad.spark.avro_types import arrow_type
from postroad.spark.json_schema_types import arrow_type_of
from postroad.spark.lanes import Lanes, Messages, Numbers
from postroad.spark.proto_reading import MessageReader
from postroad.spark.proto_types import message_type
from postroad.spark.schema_registry import NotRegistered, RegisteredText, SchemaRegistry

FORMATS: Final = {"avro": AVRO, "json-schema": JSON, "protobuf": PROTOBUF}
HEADER_BYTES: Final = 5
READERS_MAX: Final = 1_000  # kept by a process
PATH_MAX: Final = 64  # messages within messages

_readers: dict[tuple[RegisteredText, str, str, int], Callable[[Lanes], Any] | str] = {}


def kind_of(schema: RegisteredText, message: str = "") -> Any:
    """Arrow's type of messages of the schema. Raises ConfigurationError, InvalidSchema."""
    tree = schema.parsed().tree
    if schema.kind == PROTOBUF:
        return message_type(tree, wanted_message(tree, message))
    return arrow_type(tree) if schema.kind == AVRO else arrow_type_of(tree)


def wanted_message(file: ProtoFile, message: str) -> str:
    """The full name of the message that is asked for: the file's first one, where none is. Raises
    ConfigurationError."""
    known = [name for name, made in file.types() if isinstance(made, ProtoMessage)]
    if not known:
        raise ConfigurationError("The Protobuf schema has no message.")
    found = [name for name in known if not message or name == message or name.endswith(f".{message}")]
    if not found:
        raise ConfigurationError(f"The Protobuf schema has no message {message!r}, only {', '.join(known)}.")
    return found[0]


class RegisteredParser(NamedTuple):
    """`wanted` is the schema as which messages are read, `kind` the type that the query has for it."""

    registry: SchemaRegistry
    wanted: RegisteredText
    kind: Any
    message: str = ""  # of a Protobuf file

    def check(self) -> None:
        """Raises ConfigurationError if the query's type is not one of the schema's."""
        try:
            pa.array([], kind_of(self.wanted, self.message)).cast(self.kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise ConfigurationError(f"The column value can't be of this type: {error}") from None

    def parse(self, values: Any) -> tuple[Any, dict[int, str]]:
        """An array of the type, null where the row is null or bad, and why a row is bad."""
        messages = Messages(values)
        pieces, order, count = [], np.full(len(values), -1, np.int64), 0
        for id_, lanes in by_id(messages, values):
            piece = self._read(id_, lanes)
            if piece is not None:
                order[lanes.rows] = np.arange(count, count + len(lanes))
                pieces.append(piece)
                count += len(lanes)
        if messages.bad:
            order[np.fromiter(messages.bad, np.int64, len(messages.bad))] = -1
        if not pieces:
            return pa.nulls(len(values), self.kind), messages.bad
        whole = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
        if len(whole) != len(values) or (order != np.arange(len(values))).any():
            whole = whole.take(pa.array(order, mask=order < 0))
        return whole if whole.type == self.kind else whole.cast(self.kind), dict(sorted(messages.bad.items()))

    def _read(self, id_: int, lanes: Lanes) -> Any:
        """None: none of them can be read."""
        found = self._reader(id_)
        if isinstance(found, str):
            lanes.fail(np.ones(len(lanes), bool), found)
            return None
        if self.wanted.kind == JSON:
            return read_json(lanes, self.kind)
        return read_whole(lanes, found)

    def _reader(self, id_: int) -> Callable[[Lanes], Any] | str:
        """How messages of the id are read, or why they can't be. Raises RegistryUnavailable."""
        key = self.wanted, self.message, self.registry.url, id_
        if key not in _readers:
            if len(_readers) >= READERS_MAX:
                _readers.clear()
            _readers[key] = self._made(id_)
        return _readers[key]

    def _made(self, id_: int) -> Callable[[Lanes], Any] | str:
        try:
            writer = self.registry.by_id(id_)
            if writer.kind != self.wanted.kind:
                return f"schema {id_} is of type {writer.kind}, not {self.wanted.kind}"
            if writer.kind == JSON:
                return _nothing
            if writer.kind == PROTOBUF:
                return _proto_reader(writer.parsed().tree, self.wanted.parsed().tree, self.message)
            return reader(writer.parsed().tree, self.wanted.parsed().tree)
        except (NotRegistered, InvalidSchema, Unreadable, ConfigurationError) as error:
            return f"schema {id_}: {error}"


def _proto_reader(writer: ProtoFile, wanted: ProtoFile, message: str) -> Callable[[Lanes], Any]:
    """Messages are found by name, without their package, and their fields by number."""
    name = wanted_message(wanted, message)
    read = MessageReader(wanted, name)
    local = _local(wanted, name)

    def read_headed(lanes: Lanes) -> Any:
        for path, which in paths(lanes):
            found = message_at(writer, path)
            if found != local:
                lanes.fail(which, f"it is a message {found or 'that its schema does not have'}, not {local}")
        return read(lanes)

    return read_headed


def _local(file: ProtoFile, name: str) -> str:
    return name.removeprefix(f"{file.package}.") if file.package else name


def message_at(file: ProtoFile, path: tuple[int, ...]) -> str:
    """The message's name within its file; "" if there is none."""
    names, messages = [], file.messages
    for number in path:
        if not 0 <= number < len(messages):
            return ""
        names.append(messages[number].name)
        messages = messages[number].messages
    return ".".join(names)


def path_of(file: ProtoFile, name: str) -> tuple[int, ...]:
    """The path to a message of the file, by its full name."""
    path, messages = [], file.messages
    for local in _local(file, name).split("."):
        number = next(number for number, each in enumerate(messages) if each.name == local)
        path.append(number)
        messages = messages[number].messages
    return tuple(path)


def paths(lanes: Lanes) -> Iterator[tuple[tuple[int, ...], Numbers]]:
    """The paths that lanes begin with, and which lanes begin with each."""
    counts = lanes.zigzags()
    for count in np.unique(counts).tolist():
        which = np.flatnonzero(counts == count)
        if not 0 <= count <= PATH_MAX:
            lanes.fail(which, "it does not say which message of its schema it is")
        elif count == 0:
            yield (0,), which
        else:
            some = lanes.some(which)
            numbers = np.stack([some.zigzags() for _ in range(count)], axis=1)
            lanes.moved(which, some)
            paths, of_lanes = np.unique(numbers, axis=0, return_inverse=True)
            for number, path in enumerate(paths.tolist()):
                yield tuple(path), which[of_lanes.reshape(-1) == number]


def by_id(messages: Messages, values: Any) -> Iterator[tuple[int, Lanes]]:
    """The messages of each id; those that have none are bad."""
    begin, end = messages.offsets[:-1], messages.offsets[1:]
    rows = _headed(messages, np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False)))
    ids = messages.data[begin[rows][:, None] + np.arange(1, HEADER_BYTES)].astype(np.int64)
    numbers = ids @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
    for id_ in np.unique(numbers).tolist():
        those = rows[numbers == id_]
        yield id_, Lanes(messages, begin[those] + HEADER_BYTES, end[those].copy(), those)


def read_whole(lanes: Lanes, read: Callable[[Lanes], Any]) -> Any:
    """What is read of lanes in which nothing may be left."""
    found = read(lanes)
    left = lanes.at < lanes.end
    if left.any():
        lanes.fail(left, "it is longer than its schema says")
    return found


def read_json(lanes: Lanes, kind: Any) -> Any:
    """The documents say themselves what they are."""
    texts = lanes.binaries(*lanes.spans(lanes.end - lanes.at))
    read, bad = json_parsing.parse(texts, kind)
    for row, reason in bad.items():
        lanes.messages.bad[int(lanes.rows[row])] = reason
    return read


def _nothing(lanes: Lanes) -> Any:
    raise AssertionError("JSON is read by its own parser")


def _headed(messages: Messages, rows: Numbers) -> Numbers:
    """Those of the rows that begin with an id."""
    begin = messages.offsets[:-1][rows]
    short = messages.offsets[1:][rows] - begin < HEADER_BYTES
    wrong = short | (messages.data[begin] != 0)
    for row in rows[wrong].tolist():
        messages.bad[row] = "it does not begin with the id of a schema"
    headed: Numbers = rows[~wrong]
    return headed


def check_format(schema: RegisteredText, format_: str) -> None:
    """Raises ConfigurationError."""
    assert FORMATS[format_] in KINDS
    if schema.kind != FORMATS[format_]:
        raise ConfigurationError(f"valueFormat={format_}: schema {schema.id} is of type {schema.kind}.")
