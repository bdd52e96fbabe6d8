"""Topics that look inside batches: compacted ones want keys, others their own compression."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Producer

from postroad.broker import inspection
from postroad.broker.inspection import inspector
from postroad.errors import ApiError, InvalidRecord
from postroad.wire.batch import check, read_header
from postroad.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from postroad.wire.messages import produce
from postroad.wire.records import Record, decode_records, encode_batch
from tests.broker.harness import Running
from tests.faults.raw import batch_of, produce_request, send_batch

CODECS = {"gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD, "uncompressed": NONE}
INVALID_RECORD = 87


def test_a_topic_that_asks_for_nothing_keeps_its_batches_closed() -> None:
    assert inspector(compacted=False, compression_type="producer") is None


@pytest.mark.parametrize("given", [NONE, GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("wanted", CODECS)
def test_batches_are_recompressed_as_the_topic_wants_them(wanted: str, given: int) -> None:
    inspect = inspector(compacted=False, compression_type=wanted)
    assert inspect is not None
    batch = memoryview(batch_of(b"a" * 100, b"b", compression=given, producer_id=5, base_sequence=9))
    anew, header = inspect(batch, read_header(batch))
    assert header == read_header(anew)
    check(anew, header)
    assert (header.compression, header.producer_id, header.base_sequence) == (CODECS[wanted], 5, 9)
    assert [(r.key, r.value) for r in decode_records(anew)] == [(b"key", b"a" * 100), (b"key", b"b")]
    assert not anew.readonly, "the log writes the offset into it"
    if given == CODECS[wanted]:
        assert anew is batch


@pytest.mark.parametrize("compression", [NONE, ZSTD])
def test_a_compacted_topic_refuses_messages_without_a_key(compression: int) -> None:
    inspect = inspector(compacted=True, compression_type="producer")
    assert inspect is not None
    keyed = memoryview(batch_of(b"a", compression=compression))
    assert inspect(keyed, read_header(keyed))[0] is keyed
    keyless = memoryview(batch_of(b"a", key=None, compression=compression))
    with pytest.raises(InvalidRecord):
        inspect(keyless, read_header(keyless))


def test_a_small_batch_that_unpacks_to_a_huge_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "UNPACKED_BYTES_MAX", 100_000)
    inspect = inspector(compacted=False, compression_type="lz4")
    assert inspect is not None
    bomb = memoryview(batch_of(b"\0" * 1_000_000, compression=GZIP))
    with pytest.raises(ApiError):
        inspect(bomb, read_header(bomb))


def test_a_topic_serves_what_it_recompressed(shared: Running, topic: str) -> None:
    shared.create(topic, compression_type="zstd")
    with shared.connect() as connection:
        assert send_batch(connection, topic, batch_of(b"x" * 500, compression=GZIP)).error_code == 0
    batch = memoryview(bytes(shared.fetch(topic, 0).records))
    header = read_header(batch)
    check(batch, header)
    assert header.compression == ZSTD
    assert decode_records(batch)[0].value == b"x" * 500


def test_a_compacted_topic_answers_invalid_record_to_a_keyless_message(shared: Running, topic: str) -> None:
    shared.create(topic, cleanup_policy="compact")
    with shared.connect() as connection:
        assert send_batch(connection, topic, batch_of(b"x", key=None)).error_code == INVALID_RECORD
        assert send_batch(connection, topic, batch_of(b"x")).base_offset == 0


def test_a_config_change_takes_effect_with_the_next_batch(shared: Running, topic: str) -> None:
    from postroad.wire.messages import incremental_alter_configs as alter

    shared.create(topic)
    change = alter.AlterableConfig("cleanup.policy", 0, "compact")
    resource = alter.AlterConfigsResource(2, topic, [change])
    with shared.connect() as connection:
        assert send_batch(connection, topic, batch_of(b"x", key=None)).error_code == 0
        answer = connection.call(alter, 1, alter.IncrementalAlterConfigsRequest(resources=[resource]))
        assert answer.responses[0].error_code == 0
        assert send_batch(connection, topic, batch_of(b"x", key=None)).error_code == INVALID_RECORD


@pytest.mark.parametrize("version", range(3, 13))
@pytest.mark.parametrize("compression", [NONE, ZSTD])
def test_only_the_records_without_a_key_are_named_as_wrong(
    shared: Running, topic: str, version: int, compression: int
) -> None:
    shared.create(topic, cleanup_policy="compact")
    bad = list(range(3, 100, 10))
    records = [Record(n, shared.began_ms, None if n in bad else b"k", b"v") for n in range(100)]
    request = produce_request(topic, encode_batch(records, compression=compression))
    with shared.connect() as connection:
        for _ in range(2):  # the second repeats the first
            [answer] = connection.call(produce, version, request).responses[0].partition_responses
            assert (answer.error_code, answer.base_offset) == (INVALID_RECORD, -1)
            if version >= 8:
                assert [error.batch_index for error in answer.record_errors] == bad
                texts = {error.batch_index_error_message for error in answer.record_errors}
                assert texts == {answer.error_message}
    assert shared.partition(topic).log.end_offset == 0


def test_wrong_records_are_named_for_each_partition_of_a_request(shared: Running, topic: str) -> None:
    shared.create(topic, 2, cleanup_policy="compact")
    data = [produce.PartitionProduceData(index=n, records=mixed_keys(n)) for n in (0, 1)]
    request = produce.ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[produce.TopicProduceData(name=topic, partition_data=data)]
    )
    for version in (8, 9, 12):
        answers = shared.call(produce, version, request).responses[0].partition_responses
        named = [[error.batch_index for error in answer.record_errors] for answer in answers]
        assert named == [[0], [1]]


def mixed_keys(keyless: int) -> bytes:
    return bytes(encode_batch([Record(n, 1, None if n == keyless else b"k", b"v") for n in range(3)]))


def test_librdkafka_tells_bad_records_from_those_that_were_only_with_them(
    shared: Running, topic: str
) -> None:
    shared.create(topic, cleanup_policy="compact")
    producer = Producer(
        {"bootstrap.servers": shared.bootstrap, "linger.ms": 60_000, "batch.num.messages": 100}
    )
    codes: list[int] = []
    for n in range(100):
        key = None if n % 10 == 3 else b"k"
        producer.produce(
            topic, b"v", key=key, partition=0, on_delivery=lambda error, _: codes.append(error.code())
        )
    producer.flush(20)
    assert codes.count(KafkaError.INVALID_RECORD) == 10
    assert len(codes) == 100
