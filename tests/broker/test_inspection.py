"""Topics that look inside batches: compacted ones want keys, others their own compression."""

from __future__ import annotations

import pytest

from postroad.broker import inspection
from postroad.broker.inspection import inspector
from postroad.errors import ApiError, InvalidRecord
from postroad.wire.batch import check, read_header
from postroad.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from postroad.wire.records import decode_records
from tests.broker.harness import Running
from tests.faults.raw import batch_of, send_batch

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
