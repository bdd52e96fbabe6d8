"""What a writer is told, checked as a whole before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from postroad.errors import ConfigurationError
from postroad.spark import option_names, options, schema_registry
from postroad.spark.cluster import Cluster
from postroad.spark.option_values import INT_MAX, Values, wrong
from postroad.spark.schema_registry import SchemaRegistry

REQUEST_BYTES: Final = 1024 * 1024
BATCH_BYTES: Final = 960 * 1024  # below what a topic accepts by default (1 MiB), with room for its own header
TRANSACTION_MS: Final = 600_000  # brokers allow 15 minutes, as Kafka's do
NOT, WHOLE, TASK = TRANSACTIONS = ("false", "true", "task")
"""In no transaction; all tasks in one; each task in one of its own."""
COMPRESSIONS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

_FORMATS: Final = ("binary", "avro", "json-schema", "protobuf")
_REGISTERED: Final = (*schema_registry.NAMES, "schemaSubject", "schemaMessage", "valueSchema")
_ID: Final = "writeId"
_ID_BATCH: Final = "writeBatch"
_TRANSACTIONAL: Final = "transactional"
_TIMEOUT: Final = "kafka.transaction.timeout.ms"
_ACKS: Final = "kafka.acks"
_BATCH: Final = "kafka.batch.size"
_COMPRESSION: Final = "kafka.compression.type"
_REQUEST: Final = "kafka.max.request.size"
_DELIVERY: Final = "kafka.delivery.timeout.ms"
# They tune the JVM's producer, and there is none here: batches are as large as the rows allow.
_WITHOUT_EFFECT: Final = (
    "kafka.buffer.memory",
    "kafka.compression.gzip.level",
    "kafka.compression.lz4.level",
    "kafka.compression.zstd.level",
    "kafka.linger.ms",
    "kafka.max.block.ms",
    "kafka.max.in.flight.requests.per.connection",
    "kafka.metadata.max.idle.ms",
    "kafka.retries",
)
# Spark's own, which it hands over with the rest.
_SPARKS: Final = ("checkpointLocation", "path", "queryName")
NAMES: Final = (
    "topic",
    *(_ID, _ID_BATCH),
    *(_TRANSACTIONAL, _TIMEOUT),
    *("valueFormat", *_REGISTERED),
    "includeHeaders",  # the Kafka sink's; a column `headers` is always written
    *(_ACKS, _BATCH, _COMPRESSION, _REQUEST, _DELIVERY),
    *_WITHOUT_EFFECT,
    *_SPARKS,
)
_ELSEWHERE: Final = {
    "subscribe": "is for reading; say where to write by topic",
    "subscribePattern": "is for reading; say where to write by topic",
    "assign": "is for reading; say where to write by topic and a column 'partition'",
    "commitGroup": "is for reading",
    "kafka.partitioner.class": "is a Java class; choose partitions by a column 'partition'",
    "bootstrap": f"is called {option_names.BOOTSTRAP}",
}


@dataclass(frozen=True, slots=True)
class ValueSchema:
    """As messages of which schema values are written. `schema` is as the user wrote it; None: that of the
    column's type."""

    registry: SchemaRegistry
    subject: str
    format: str
    schema: str | None
    message: str  # of a Protobuf file that the user gives; "": its first one


@dataclass(frozen=True, slots=True)
class WriteOptions:
    cluster: Cluster  # not connected; it can be pickled
    topic: str | None  # None: a column says it
    write_id: str  # '' if none was given
    write_batch: int  # of that writer
    compression: str
    batch_bytes: int
    record_bytes_max: int
    transactional: str = NOT
    transaction_ms: int = TRANSACTION_MS
    values: ValueSchema | None = None  # None: they are bytes or texts already


def parse_write(given: Mapping[str, str], *, streaming: bool) -> WriteOptions:
    """ConfigurationError names the option that is unknown, protected or has a value that can't be used."""
    option_names.check(given, NAMES, _ELSEWHERE)
    values = Values(given)
    acks = values.text(_ACKS) or "all"
    if acks.lower() not in ("all", "-1"):
        raise wrong(_ACKS, acks, "all: without it nothing is written exactly once")
    values.yes("includeHeaders", True)
    _check_write_batch(values, streaming)
    if values.has(_TIMEOUT) and values.one_of(_TRANSACTIONAL, TRANSACTIONS, NOT) == NOT:
        raise ConfigurationError(f"Option {_TIMEOUT} means something with {_TRANSACTIONAL} only.")
    request_bytes = values.whole(_REQUEST, most=INT_MAX) or REQUEST_BYTES
    batch_bytes = values.whole(_BATCH, most=INT_MAX) or BATCH_BYTES
    return WriteOptions(
        cluster=options.cluster(_with_patience(values, given)),
        topic=_topic(values),
        write_id=values.text(_ID) or "",
        write_batch=values.whole(_ID_BATCH, least=0) or 0,
        compression=values.one_of(_COMPRESSION, COMPRESSIONS, "none"),
        batch_bytes=min(batch_bytes, request_bytes),
        record_bytes_max=request_bytes,
        transactional=values.one_of(_TRANSACTIONAL, TRANSACTIONS, NOT),
        transaction_ms=values.whole(_TIMEOUT, most=INT_MAX) or TRANSACTION_MS,
        values=_value_schema(values),
    )


def _with_patience(values: Values, given: Mapping[str, str]) -> Values:
    """A producer's name for how long to try is another one than a consumer's."""
    patience_ms = values.whole(_DELIVERY, most=INT_MAX)
    return (
        values if patience_ms is None else Values({**given, "kafka.default.api.timeout.ms": str(patience_ms)})
    )


def _check_write_batch(values: Values, streaming: bool) -> None:
    if streaming and values.has(_ID_BATCH):
        raise ConfigurationError(f"Option {_ID_BATCH} is for batches; a stream counts its own.")
    if values.has(_ID_BATCH) and not values.has(_ID):
        raise ConfigurationError(f"Option {_ID_BATCH} means something with {_ID} only.")


def _value_schema(values: Values) -> ValueSchema | None:
    format_ = values.one_of("valueFormat", _FORMATS, "binary")
    if format_ == "binary":
        for name in values.given(*_REGISTERED):
            raise ConfigurationError(
                f"Option {name} means something with valueFormat=avro, json-schema or protobuf only."
            )
        return None
    if values.has("schemaMessage") and (format_ != "protobuf" or not values.has("valueSchema")):
        raise ConfigurationError(
            "Option schemaMessage names a message of the Protobuf file that valueSchema is: set both."
        )
    topic, subject = values.text("topic"), values.text("schemaSubject")
    if subject is None and topic is None:
        raise ConfigurationError("Which schema's subject? Set the option schemaSubject, or topic.")
    return ValueSchema(
        schema_registry.of_options(values),
        subject or f"{topic}-value",
        format_,
        values.text("valueSchema"),
        values.text("schemaMessage") or "",
    )


def _topic(values: Values) -> str | None:
    topic = values.text("topic")
    if topic is not None and ("," in topic or " " in topic):
        raise ConfigurationError(f"Option topic = {topic!r}: it names one topic; for several add a column.")
    return topic
