"""Options: what a reader is told, and one clear word for what can't be right."""

from __future__ import annotations

import re

import pytest

from postroad.errors import ConfigurationError
from postroad.spark.access import OPEN
from postroad.spark.offsets import EARLIEST, LATEST, Each, EachSince, Everywhere, Since
from postroad.spark.options import NAMES, parse_read

BASE = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}
NO_BROKER = {"subscribe": "orders"}
NO_TOPIC = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
TOO_LARGE = str(10**30)
AVRO = {**BASE, "valueFormat": "avro", "schemaRegistry": "http://127.0.0.1:8080"}


def parse(streaming: bool | None = False, **options: str) -> object:
    return parse_read({**BASE, **options}, streaming=streaming)


def refusal(options: dict[str, str], *, streaming: bool | None = False) -> str:
    with pytest.raises(ConfigurationError) as caught:
        parse_read(options, streaming=streaming)
    return str(caught.value)


def test_defaults_are_those_of_the_kafka_connector() -> None:
    batch, stream = parse_read(BASE, streaming=False), parse_read(BASE, streaming=True)
    assert (batch.starting, batch.ending) == (Everywhere(EARLIEST), Everywhere(LATEST))
    assert stream.starting == Everywhere(LATEST)
    assert batch.fail_on_data_loss
    assert not batch.headers
    assert (batch.max_offsets, batch.min_offsets, batch.max_bytes) == (None, None, None)
    assert batch.max_delay_ms == 15 * 60_000
    assert batch.values is None


def test_names_are_taken_in_any_case() -> None:
    options = {"KAFKA.bootstrap.SERVERS": "h:1", "SUBSCRIBE": "a, b,a", "includeHEADERS": "TRUE"}
    parsed = parse_read(options, streaming=False)
    assert parsed.subscription.topics == ("a", "b")
    assert parsed.headers


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": "earliest"}, Everywhere(EARLIEST)),
        ({"startingOffsets": '{"orders": {"0": 5, "1": -2}}'}, Each),
        ({"startingTimestamp": "1000"}, Since(1000)),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": 5}}'}, EachSince),
    ],
)
def test_each_way_to_say_where_to_start(options: dict[str, str], expected: object) -> None:
    found = parse_read({**BASE, **options}, streaming=False).starting
    assert isinstance(found, expected) if isinstance(expected, type) else found == expected


def test_every_option_of_the_kafka_connector_is_known() -> None:
    of_kafka = {
        "assign",
        "subscribe",
        "subscribePattern",
        "startingTimestamp",
        "startingOffsetsByTimestamp",
        "startingOffsets",
        "endingTimestamp",
        "endingOffsetsByTimestamp",
        "endingOffsets",
        "failOnDataLoss",
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
        "minPartitions",
        "maxRecordsPerPartition",
        "groupIdPrefix",
        "includeHeaders",
        "startingOffsetsByTimestampStrategy",
    }
    assert of_kafka <= set(NAMES)


def test_settings_that_tune_a_jvm_consumer_are_let_through() -> None:
    parse_read({**BASE, "kafka.max.poll.records": "10", "kafka.group.id": "g"}, streaming=False)


def test_client_settings_reach_the_client() -> None:
    options = {
        "kafka.isolation.level": "read_committed",
        "kafka.client.id": "me",
        "kafka.client.rack": "here",
        "kafka.request.timeout.ms": "1500",
        "kafka.default.api.timeout.ms": "2500",
    }
    cluster = parse_read({**BASE, **options}, streaming=False).cluster
    assert cluster.__getstate__()[1] == {
        "access": OPEN,
        "isolation": "read_committed",
        "client_id": "me",
        "rack": "here",
        "request_timeout_s": 1.5,
        "retry_s": 2.5,
    }


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("startingOfsets", "did you mean startingOffsets?"),
        ("maxOffsetPerTrigger", "did you mean maxOffsetsPerTrigger?"),
        ("bootstrap.servers", "did you mean kafka.bootstrap.servers?"),
        ("kafka.isolation.levle", "did you mean kafka.isolation.level?"),
        ("kafka.made.up.by.me", "is not known"),
        ("zzz", "there are assign, badRows"),
        ("topic", "is for writing; say what to read by subscribe"),
        ("path", "topics are not files"),
    ],
)
def test_unknown_option_is_refused_with_the_nearest_name(name: str, says: str) -> None:
    text = refusal({**BASE, name: "1"})
    assert says in text
    assert name.lower() in text.lower()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("kafka.auto.offset.reset", "startingOffsets"),
        ("kafka.enable.auto.commit", "commitGroup"),
        ("kafka.key.deserializer", "keys are bytes"),
        ("kafka.value.deserializer", "valueFormat=json"),
        ("kafka.interceptor.classes", "Java"),
    ],
)
def test_protected_setting_is_refused_with_the_reason(name: str, says: str) -> None:
    assert re.search(f"Option {re.escape(name)} can't be set: .*{says}", refusal({**BASE, name: "x"}))


def test_secrets_are_not_repeated_in_the_refusal() -> None:
    secured = {**BASE, "kafka.security.protocol": "SASL_SSL"}
    for options in ({**BASE}, secured, {**secured, "kafka.sasl.mechanism": "magic"}):
        text = refusal({**options, "kafka.sasl.jaas.config": "password=hunter2"})
        assert "kafka.sasl" in text
        assert "hunter2" not in text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (NO_BROKER, "kafka.bootstrap.servers = HOST:PORT"),
        (NO_TOPIC, "Say what to read"),
        ({**BASE, "assign": '{"orders": [0]}'}, "subscribe and assign contradict"),
        ({**BASE, "subscribe": " "}, "subscribe is empty"),
        ({**BASE, "subscribe": ","}, "topics, with commas between"),
        ({**NO_TOPIC, "subscribePattern": "("}, "a regular expression"),
        ({**NO_TOPIC, "assign": "orders"}, 'JSON like {"orders": [0, 1]}'),
        ({**NO_TOPIC, "assign": '{"orders": ["0"]}'}, 'JSON like {"orders": [0, 1]}'),
        ({**NO_TOPIC, "assign": "{}"}, 'JSON like {"orders": [0, 1]}'),
        ({**BASE, "startingOffsets": "latest"}, "reads nothing"),
        ({**BASE, "startingOffsets": '{"orders": {"0": -1}}'}, "reads nothing"),
        ({**BASE, "endingOffsets": "earliest"}, "reads nothing"),
        ({**BASE, "startingOffsets": "soon"}, "earliest, latest, or JSON like"),
        ({**BASE, "startingOffsets": '{"orders": {"0": "x"}}'}, "earliest, latest, or JSON like"),
        ({**BASE, "startingOffsets": '{"orders": {"0": -7}}'}, "-7 for orders/0 is no offset"),
        ({**BASE, "startingOffsets": "earliest", "startingTimestamp": "5"}, "contradict each other"),
        ({**BASE, "startingTimestamp": "yesterday"}, "a whole number from 0"),
        ({**BASE, "startingTimestamp": TOO_LARGE}, "a whole number from 0 to 9223372036854775807"),
        ({**BASE, "startingTimestamp": "9" * 5_000}, "a whole number from 0 to 9223372036854775807"),
        ({**BASE, "endingOffsetsByTimestamp": f'{{"orders": {{"0": {TOO_LARGE}}}}}'}, "from 0 to 92233720"),
        ({**BASE, "startingOffsets": f'{{"orders": {{"0": {TOO_LARGE}}}}}'}, "for orders/0 is no offset"),
        ({**BASE, "kafka.request.timeout.ms": "2147483648"}, "a whole number from 1 to 2147483647"),
        ({**BASE, "kafka.default.api.timeout.ms": TOO_LARGE}, "a whole number from 1 to 2147483647"),
        ({**BASE, "kafka.max.partition.fetch.bytes": "2147483647"}, "a whole number from 1 to 134217728"),
        ({**BASE, "startingOffsetsByTimestamp": '{"orders": {"0": -5}}'}, "times in ms from 0"),
        ({**BASE, "startingOffsetsByTimestampStrategy": "latest"}, "with a starting timestamp only"),
        ({**BASE, "failOnDataLoss": "maybe"}, "true or false"),
        ({**BASE, "minPartitions": "0"}, "a whole number from 1"),
        ({**BASE, "maxRecordsPerPartition": "many"}, "a whole number from 1"),
        ({**BASE, "maxOffsetsPerTrigger": "10"}, "is for streams"),
        ({**BASE, "commitGroup": "g"}, "is for streams"),
        ({**BASE, "kafka.isolation.level": "serializable"}, "read_uncommitted or read_committed"),
        ({**BASE, "valueFormat": "xml"}, "binary or json or avro or json-schema or protobuf"),
        ({**BASE, "valueFormat": "avro"}, "schemaRegistry = http://HOST:PORT"),
        ({**AVRO, "schemaRegistry": "gateway:8080"}, "it must be http://HOST:PORT"),
        ({**AVRO, "schemaRegistry": "http://a:b@c"}, "schemaRegistryUser and schemaRegistryPassword"),
        ({**AVRO, "schemaRegistryUser": "me"}, "belong together"),
        ({**AVRO, "schemaMessage": "Order"}, "with valueFormat=protobuf only"),
        (
            {**AVRO, "schemaRegistryUser": "a", "schemaRegistryPassword": "b", "schemaRegistryToken": "t"},
            "Give either schemaRegistryToken",
        ),
        (
            {**BASE, "valueFormat": "json", "schemaRegistry": "http://c"},
            "with valueFormat=avro, json-schema",
        ),
        ({**BASE, "valueSchema": "id int"}, "with another valueFormat"),
        ({**BASE, "badRows": "drop"}, "with another valueFormat"),
        ({**BASE, "valueFormat": "json", "badRows": "ignore"}, "fail or drop or deadletter"),
        ({**BASE, "valueFormat": "json", "badRows": "deadletter"}, "belong together"),
        ({**BASE, "valueFormat": "json", "deadLetterTopic": "dead"}, "belong together"),
    ],
)
def test_what_a_batch_can_not_do_is_refused(options: dict[str, str], says: str) -> None:
    assert says in refusal(options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"endingOffsets": "latest"}, "a stream has no end"),
        ({"endingTimestamp": "5"}, "a stream has no end"),
        ({"maxTriggerDelay": "5m"}, "with minOffsetsPerTrigger only"),
        ({"minOffsetsPerTrigger": "5", "maxTriggerDelay": "soon"}, "500ms, 30s, 15m or 2h"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "larger than maxOffsetsPerTrigger"),
        ({"minOffsetsPerTrigger": "5", "maxTriggerDelay": f"{TOO_LARGE}d"}, "500ms, 30s, 15m or 2h"),
        ({"maxBytesPerTrigger": "10MB"}, "a whole number from 1"),
        ({"commitGroup": ""}, "commitGroup is empty"),
    ],
)
def test_what_a_stream_can_not_do_is_refused(options: dict[str, str], says: str) -> None:
    assert says in refusal({**BASE, **options}, streaming=True)


@pytest.mark.parametrize(("text", "ms"), [("90", 90), ("500ms", 500), ("30s", 30_000), ("2h", 7_200_000)])
def test_durations_are_written_as_in_spark(text: str, ms: int) -> None:
    options = {**BASE, "minOffsetsPerTrigger": "1", "maxTriggerDelay": text}
    assert parse_read(options, streaming=True).max_delay_ms == ms
