"""What a reader is told, checked as a whole before anything is read.

An option that is unknown, protected, wrong here or contradicted by another is a ConfigurationError that
names it: a query that starts does what its options say.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

from postroad.client.connection import FRAME_BYTES_MAX
from postroad.client.profile import read_profile
from postroad.errors import ConfigurationError
from postroad.spark import access, offsets, option_names, schema_registry, subscription
from postroad.spark.cluster import FETCH_BYTES, Cluster
from postroad.spark.offsets import EARLIEST, LATEST, STRATEGY, Each, Everywhere, Point
from postroad.spark.option_values import INT_MAX, Values
from postroad.spark.schema_registry import SchemaRegistry
from postroad.spark.subscription import Subscription

MAX_DELAY_MS: Final = 15 * 60_000  # the Kafka connector's
FETCH_BYTES_MAX: Final = FRAME_BYTES_MAX // 2  # a batch that is larger than asked for comes whole
BAD_ROWS: Final = ("fail", "drop", "deadletter")

_STARTING: Final = ("startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp")
_ENDING: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_TRIGGERS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger")
_VALUES: Final = ("valueSchema", "badRows", "deadLetterTopic")
_REGISTERED: Final = (*schema_registry.NAMES, "schemaSubject", "schemaMessage")
_FORMATS: Final = ("binary", "json", "avro", "json-schema", "protobuf")
# They tune the JVM connector's consumers, and there are none here.
_WITHOUT_EFFECT: Final = (
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
)
NAMES: Final = (
    *(subscription.SUBSCRIBE, subscription.PATTERN, subscription.ASSIGN),
    *_STARTING,
    STRATEGY,
    *_ENDING,
    *_TRIGGERS,
    *("minPartitions", "maxRecordsPerPartition", "failOnDataLoss", "includeHeaders", "commitGroup"),
    "valueFormat",
    *_VALUES,
    *_REGISTERED,
    *_WITHOUT_EFFECT,
    *("kafka.isolation.level", "kafka.max.partition.fetch.bytes"),
)
_ELSEWHERE: Final = {
    "topic": "is for writing; say what to read by subscribe",
    "path": "topics are not files; say what to read by subscribe",
    "checkpointLocation": "is for writeStream",
    "bootstrap": f"is called {option_names.BOOTSTRAP}",
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ValueOptions:
    """How values are understood. `schema` is as the user wrote it; None: to be inferred, or the newest one of
    the subject, which is the topic's where none is given."""

    schema: str | None
    format: str
    registry: SchemaRegistry | None  # None: values are what they are without a schema's id
    subject: str | None
    message: str  # of a Protobuf file; "": its first one
    bad_rows: Literal["fail", "drop", "deadletter"]
    dead_letter_topic: str | None


@dataclass(frozen=True, slots=True)
class ReadOptions:
    cluster: Cluster  # not connected; it can be pickled
    subscription: Subscription
    starting: Point
    ending: Point
    late_start: int | None  # what stands in for a starting time after the last record; None: an error
    fail_on_data_loss: bool
    headers: bool
    max_offsets: int | None
    min_offsets: int | None
    max_delay_ms: int
    max_bytes: int | None
    min_partitions: int
    max_records: int | None
    fetch_bytes: int
    commit_group: str | None
    values: ValueOptions | None  # None: they stay bytes


def parse_read(options: Mapping[str, str], *, streaming: bool | None) -> ReadOptions:
    """`streaming` is None where it isn't known yet: then what only one of both allows is let through."""
    option_names.check(options, NAMES, _ELSEWHERE)
    values = Values(options)
    _check_kind(values, streaming)
    _check_pairs(values)
    starting = offsets.parse(values, "starting", LATEST if streaming else EARLIEST)
    ending = offsets.parse(values, "ending", LATEST)
    _check_ends(starting, ending, streaming)
    strategy = values.one_of(STRATEGY, ("error", "latest"), "error")
    return ReadOptions(
        cluster=cluster(values),
        subscription=subscription.parse(values),
        starting=starting,
        ending=ending,
        late_start=LATEST if strategy == "latest" else None,
        fail_on_data_loss=values.yes("failOnDataLoss", True),
        headers=values.yes("includeHeaders", False),
        max_offsets=values.whole("maxOffsetsPerTrigger"),
        min_offsets=values.whole("minOffsetsPerTrigger"),
        max_delay_ms=_or(values.duration_ms("maxTriggerDelay"), MAX_DELAY_MS),
        max_bytes=values.whole("maxBytesPerTrigger"),
        min_partitions=_or(values.whole("minPartitions"), 1),
        max_records=values.whole("maxRecordsPerPartition"),
        fetch_bytes=_or(values.whole("kafka.max.partition.fetch.bytes", most=FETCH_BYTES_MAX), FETCH_BYTES),
        commit_group=values.text("commitGroup"),
        values=_value_options(values),
    )


def cluster(values: Values) -> Cluster:
    """The cluster that the `kafka.` options name, for readers and writers."""
    bootstrap = _address(values)
    settings: dict[str, Any] = {
        "access": access.of_options(values, bootstrap),
        "isolation": values.one_of(
            "kafka.isolation.level", ("read_uncommitted", "read_committed"), "read_uncommitted"
        ),
    }
    if name := values.text("kafka.client.id"):
        settings["client_id"] = name
    if rack := values.text("kafka.client.rack"):
        settings["rack"] = rack
    if timeout_ms := values.whole("kafka.request.timeout.ms", most=INT_MAX):
        settings["request_timeout_s"] = timeout_ms / 1000
    if retry_ms := values.whole("kafka.default.api.timeout.ms", most=INT_MAX):
        settings["retry_s"] = retry_ms / 1000
    if values.has("kafka.group.id"):
        log.warning("kafka.group.id has no effect: no group is joined. commitGroup shows progress to one.")
    return Cluster(bootstrap, **settings)


def _address(values: Values) -> str:
    """Where the cluster is; with a profile that names none, where that says."""
    bootstrap, profile = values.text(option_names.BOOTSTRAP), values.text(access.PROFILE)
    if profile is not None:
        bootstrap = bootstrap or read_profile(Path(profile)).bootstrap
    if not bootstrap:
        raise ConfigurationError(f"Say which broker: option {option_names.BOOTSTRAP} = HOST:PORT.")
    if profile is None:
        return bootstrap
    return f"{bootstrap}{'&' if '?' in bootstrap else '?'}profile={quote(profile)}"


def _value_options(values: Values) -> ValueOptions | None:
    format_ = values.one_of("valueFormat", _FORMATS, "binary")
    if format_ == "binary":
        return None
    registry = None if format_ == "json" else schema_registry.of_options(values)
    return ValueOptions(
        schema=values.text("valueSchema"),
        format=format_,
        registry=registry,
        subject=values.text("schemaSubject"),
        message=values.text("schemaMessage") or "",
        bad_rows=_bad_rows(values),
        dead_letter_topic=values.text("deadLetterTopic"),
    )


def _bad_rows(values: Values) -> Any:
    return values.one_of("badRows", BAD_ROWS, "fail")


def _check_kind(values: Values, streaming: bool | None) -> None:
    """Options that only a stream or only a batch has."""
    if streaming and (given := values.given(*_ENDING)):
        raise ConfigurationError(f"Option {given[0]}: a stream has no end. Leave it out, or use spark.read.")
    if streaming is False and (given := values.given(*_TRIGGERS, "commitGroup")):
        raise ConfigurationError(
            f"Option {given[0]} is for streams; this is a batch. Leave it out, or use spark.readStream."
        )


def _check_pairs(values: Values) -> None:
    """Options that mean something beside another one only, or not beside it."""
    format_ = values.one_of("valueFormat", _FORMATS, "binary")
    for name in values.given(*_VALUES) if format_ == "binary" else ():
        raise ConfigurationError(f"Option {name} means something with another valueFormat, such as json.")
    for name in values.given(*_REGISTERED) if format_ in ("binary", "json") else ():
        raise ConfigurationError(
            f"Option {name} means something with valueFormat=avro, json-schema or protobuf only."
        )
    if values.has("schemaMessage") and format_ != "protobuf":
        raise ConfigurationError("Option schemaMessage means something with valueFormat=protobuf only.")
    sets_aside = _bad_rows(values) == "deadletter"
    if sets_aside != values.has("deadLetterTopic"):
        raise ConfigurationError("badRows=deadletter and deadLetterTopic belong together: set both.")
    if values.has(STRATEGY) and not values.given(*_STARTING[1:]):
        raise ConfigurationError(f"Option {STRATEGY} means something with a starting timestamp only.")
    least, most = values.whole("minOffsetsPerTrigger"), values.whole("maxOffsetsPerTrigger")
    if values.has("maxTriggerDelay") and least is None:
        raise ConfigurationError("Option maxTriggerDelay means something with minOffsetsPerTrigger only.")
    if least is not None and most is not None and least > most:
        raise ConfigurationError("minOffsetsPerTrigger is larger than maxOffsetsPerTrigger.")


def _check_ends(starting: Point, ending: Point, streaming: bool | None) -> None:
    if streaming is False and LATEST in _offsets_of(starting):
        raise ConfigurationError("Option startingOffsets: a batch that starts at the latest reads nothing.")
    if EARLIEST in _offsets_of(ending):
        raise ConfigurationError("Option endingOffsets: a batch that ends at the earliest reads nothing.")


def _offsets_of(point: Point) -> list[int]:
    if isinstance(point, Everywhere):
        return [point.offset]
    return list(point.offsets.values()) if isinstance(point, Each) else []


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
