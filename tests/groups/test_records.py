from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.groups import assignment, records
from postroad.groups.coordinator import Groups
from postroad.groups.records import OffsetValue, Record
from postroad.groups.requests import TopicPartition, Topics
from postroad.groups.settings import GroupSettings
from postroad.groups.subscription import read_subscription, subscribed_topics
from tests.groups.shell import subscription

NO_TOPICS = Topics(0, {})


def test_records_are_json_that_any_tool_can_read() -> None:
    record = records.encode(records.OFFSET, "g", "t", 3, value=OffsetValue(7, 1000, metadata="é"))
    assert json.loads(record.key) == ["offset", "g", "t", 3]
    assert record.value is not None
    assert json.loads(record.value) == {"offset": 7, "commit_ms": 1000, "metadata": "é"}
    assert records.encode(records.CLASSIC, "g", value=None) == (b'["classic","g"]', None)


def test_kind_that_a_newer_version_writes_is_skipped() -> None:
    groups = Groups(GroupSettings(), lambda: NO_TOPICS)
    groups.apply(Record(b'["share","g",1]', b'{"x":1}'))
    assert groups.list() == []


def test_field_that_a_newer_version_writes_is_skipped() -> None:
    groups = Groups(GroupSettings(), lambda: NO_TOPICS)
    groups.apply(Record(b'["offset","g","t",0]', b'{"offset":4,"commit_ms":0,"new":[]}'))
    assert groups.fetch("g", [("t", 0)])[0].value == OffsetValue(4, 0)


@given(
    st.frozensets(st.builds(TopicPartition, st.binary(min_size=16, max_size=16), st.integers(0, 2**31 - 1)))
)
def test_partitions_come_back_as_they_were(partitions: frozenset[TopicPartition]) -> None:
    assert records.unpack(records.pack(partitions)) == partitions


@given(st.binary(max_size=40))
def test_any_metadata_is_a_subscription_or_not(metadata: bytes) -> None:
    found = subscribed_topics(metadata)
    assert found is None or all(isinstance(topic, str) for topic in found)


@pytest.mark.parametrize("cut", range(1, 14))
def test_subscription_that_is_cut_is_none(cut: int) -> None:
    whole = subscription("abc", "de")
    after_topics = 8  # user data and owned partitions, which the topics do not need
    assert subscribed_topics(whole[: len(whole) - after_topics - cut]) is None


@given(st.binary(max_size=60))
def test_any_bytes_are_an_assignment_or_malformed(data: bytes) -> None:
    for read in (assignment.decode, read_subscription):
        with suppress(assignment.Malformed):
            read(data)


@given(st.dictionaries(st.text(max_size=20), st.lists(st.integers(0, 2**31 - 1)), max_size=4))
def test_assignment_comes_back_as_it_was(named: dict[str, list[int]]) -> None:
    assert assignment.decode(assignment.encode(named, 1)) == named
