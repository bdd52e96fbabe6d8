"""What the generated decoders accept and refuse, and what the classes are like."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import postroad
from postroad.errors import ProtocolError, UnsupportedVersion
from postroad.wire.messages import (
    MODULES,
    api_versions,
    create_topics,
    describe_topic_partitions,
    fetch,
    metadata,
    produce,
    sasl_handshake,
)
from postroad.wire.primitives import ZERO_UUID

NO_TAGS = b"\0"
HUGE_VARINT = b"\xff\xff\xff\xff\x0f"


def metadata_request(*topics: str | None) -> metadata.MetadataRequest:
    return metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name) for name in topics])


@pytest.mark.parametrize("version", [-1, 14])
def test_version_out_of_range_is_unsupported_in_both_ways(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match=r"Metadata v-?[0-9]+ is not supported; v0 to v13 are"):
        metadata.decode_request(b"", version)
    with pytest.raises(UnsupportedVersion):
        metadata.encode_response(metadata.MetadataResponse(), version)


def test_modules_are_found_by_their_key() -> None:
    for key, name in MODULES.items():
        module = importlib.import_module(f"postroad.wire.messages.{name}")
        assert key == module.KEY
        assert module.MIN_VERSION <= module.MAX_VERSION
    assert (metadata.NAME, metadata.FLEXIBLE_FROM) == ("Metadata", 9)
    assert sasl_handshake.FLEXIBLE_FROM > sasl_handshake.MAX_VERSION


def test_nothing_that_is_shipped_imports_kio() -> None:
    sources = Path(postroad.__file__).parent.rglob("*.py")
    assert not [path for path in sources if re.search(r"^\s*(from|import) kio\b", path.read_text(), re.M)]


# --- lengths and counts ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "version"),
    [
        (HUGE_VARINT, 12),  # the five bytes that stop a process that believes them
        (b"\x7f\xff\xff\xff", 1),
        (b"\xff\xff\xff\xfe", 1),
        (b"\x00\x00\x00\x02\x00\x01a", 1),
    ],
)
def test_count_that_the_bytes_left_cannot_hold_is_refused(body: bytes, version: int) -> None:
    with pytest.raises(ProtocolError, match=r"MetadataRequest\.topics claims a length of"):
        metadata.decode_request(body, version)


@pytest.mark.parametrize(
    ("body", "version"), [(b"\x00\x00\x00\x01\x7f\xffa", 1), (b"\x02" + HUGE_VARINT + b"ab", 9)]
)
def test_string_longer_than_the_body_is_refused(body: bytes, version: int) -> None:
    with pytest.raises(ProtocolError, match=r"MetadataRequestTopic\.name claims a length of"):
        metadata.decode_request(body, version)


def test_null_is_refused_where_the_version_has_none() -> None:
    with pytest.raises(ProtocolError, match=r"MetadataRequest\.topics is null"):
        metadata.decode_request(b"\xff\xff\xff\xff", 0)
    assert metadata.decode_request(b"\xff\xff\xff\xff", 1).topics is None


def test_body_that_ends_early_names_its_api_and_version() -> None:
    with pytest.raises(ProtocolError, match="Metadata response v13 ends before its last field"):
        metadata.decode_response(b"\0\0", 13)


def test_bytes_behind_the_message_are_ignored() -> None:
    body = metadata.encode_request(metadata_request("a"), 12)
    assert metadata.decode_request(body + b"more", 12) == metadata.decode_request(body, 12)


# --- values ------------------------------------------------------------------------------------


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ProtocolError, match="not UTF-8"):
        metadata.decode_request(b"\x00\x00\x00\x01\x00\x02\xc3\x28", 1)


def test_bool_other_than_0_and_1_is_refused() -> None:
    with pytest.raises(ProtocolError, match=r"allow_auto_topic_creation is neither true nor false: 2"):
        metadata.decode_request(b"\xff\xff\xff\xff\x02", 4)


@pytest.mark.parametrize("varint", [b"\xff\xff\xff\xff\xff\x01", b"\xff\xff\xff\xff\x1f"])
def test_varint_beyond_five_bytes_or_32_bits_is_refused(varint: bytes) -> None:
    with pytest.raises(ProtocolError, match="varint"):
        metadata.decode_request(varint + bytes(100), 12)


def test_padded_varint_is_accepted_as_kafka_does() -> None:
    padded = b"\x82\x80\x00" + ZERO_UUID + b"\x02a" + NO_TAGS + b"\1\0" + NO_TAGS
    request = metadata.decode_request(padded, 12)
    assert request.topics == [metadata.MetadataRequestTopic(name="a")]


def test_nullable_struct_is_there_or_null_and_nothing_else() -> None:
    request = describe_topic_partitions.DescribeTopicPartitionsRequest()
    body = describe_topic_partitions.encode_request(request, 0)
    assert describe_topic_partitions.decode_request(body, 0).cursor is None
    with pytest.raises(ProtocolError, match="cursor is neither there"):
        describe_topic_partitions.decode_request(body[:-2] + b"\2" + NO_TAGS, 0)


@pytest.mark.parametrize("view", [memoryview, bytes, bytearray])
def test_records_are_a_view_of_the_body(view: type) -> None:
    data = produce.PartitionProduceData(index=3, records=b"the batch")
    topic = produce.TopicProduceData(name="t", partition_data=[data])
    body = view(produce.encode_request(produce.ProduceRequest(acks=-1, topic_data=[topic]), 9))
    records = produce.decode_request(body, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert bytes(records) == b"the batch"
    assert records.obj is (body.obj if isinstance(body, memoryview) else body)


# --- tagged fields -----------------------------------------------------------------------------


def tagged(*fields: tuple[int, bytes]) -> bytes:
    """An ApiVersions v3 response with these tagged fields; all lengths below 128."""
    return (
        b"\0\0"
        + b"\1"
        + bytes(4)
        + bytes((len(fields),))
        + b"".join(bytes((tag, len(value))) + value for tag, value in fields)
    )


def test_unknown_tags_are_skipped_between_known_ones() -> None:
    body = tagged((1, (7).to_bytes(8, "big")), (5, b"what a later version says"), (90, b""))
    assert api_versions.decode_response(body, 3) == api_versions.ApiVersionsResponse(
        finalized_features_epoch=7
    )


def test_unknown_tags_are_skipped_where_none_is_known() -> None:
    body = metadata.encode_request(metadata_request("a"), 12)[:-1] + b"\x02\x00\x01x\x81\x01\x02yz"
    assert metadata.decode_request(body, 12) == metadata_request("a")


@pytest.mark.parametrize(
    "fields", [[(1, bytes(8)), (1, bytes(8))], [(5, b""), (5, b"")], [(3, b"\1"), (1, bytes(8))]]
)
def test_tag_that_comes_twice_or_out_of_order_is_refused(fields: list[tuple[int, bytes]]) -> None:
    with pytest.raises(ProtocolError, match="comes twice or out of order"):
        api_versions.decode_response(tagged(*fields), 3)


@pytest.mark.parametrize("value", [bytes(7), bytes(9)])
def test_tag_whose_value_does_not_fill_its_size_is_refused(value: bytes) -> None:
    with pytest.raises(ProtocolError):
        api_versions.decode_response(tagged((1, value), (9, b"more")), 3)


def test_tag_larger_than_the_body_is_refused() -> None:
    with pytest.raises(ProtocolError, match="tag 9 has 127 bytes, 1 are left"):
        api_versions.decode_response(tagged((9, b"x")).replace(b"\x09\x01", b"\x09\x7f"), 3)


def test_number_of_tags_is_not_believed() -> None:
    with pytest.raises(ProtocolError):
        api_versions.decode_response(tagged()[:-1] + HUGE_VARINT, 3)


def test_tagged_struct_with_default_values_is_left_out() -> None:
    bare = fetch.PartitionData(partition_index=1)
    named = fetch.PartitionData(partition_index=1, current_leader=fetch.LeaderIdAndEpoch())
    bodies = [
        fetch.encode_response(
            fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(partitions=[partition])]), 13
        )
        for partition in (bare, named)
    ]
    assert bodies[0] == bodies[1]


# --- what a version lacks ----------------------------------------------------------------------


def test_what_a_version_lacks_is_left_out_and_read_as_default() -> None:
    topic = metadata.MetadataResponseTopic(name="t", topic_id=b"i" * 16, is_internal=True)
    sent = metadata.MetadataResponse(throttle_time_ms=9, cluster_id="c", topics=[topic])
    (found,) = metadata.decode_response(metadata.encode_response(sent, 0), 0).topics
    assert found == metadata.MetadataResponseTopic(name="t", topic_id=ZERO_UUID, is_internal=False)


def test_none_is_refused_where_the_version_has_no_null() -> None:
    with pytest.raises(ValueError, match=r"MetadataRequestTopic\.name must not be None in v9"):
        metadata.encode_request(metadata_request(None), 9)


def test_value_that_does_not_fit_its_field_is_refused() -> None:
    with pytest.raises(ValueError, match="CreateTopics request v2 has a value that its field can't hold"):
        create_topics.encode_request(create_topics.CreateTopicsRequest(timeout_ms=1 << 31), 2)
    with pytest.raises(ValueError, match="can't hold"):
        metadata.encode_request(metadata_request("x" * 40_000), 1)


# --- the classes -------------------------------------------------------------------------------


def test_messages_compare_and_show_their_values() -> None:
    topic = metadata.MetadataRequestTopic(name="a")
    assert topic == metadata.MetadataRequestTopic(ZERO_UUID, "a")
    assert topic != metadata.MetadataRequestTopic(name="b")
    assert topic != "a"
    assert repr(fetch.EpochEndOffset(epoch=1)) == "EpochEndOffset(epoch=1, end_offset=-1)"


def test_messages_do_not_share_their_lists() -> None:
    metadata.MetadataResponse().topics.append(metadata.MetadataResponseTopic())
    assert metadata.MetadataResponse().topics == []


def test_a_misspelt_field_is_an_error() -> None:
    with pytest.raises(AttributeError):
        metadata.MetadataRequest().topcis = []  # type: ignore[attr-defined]
