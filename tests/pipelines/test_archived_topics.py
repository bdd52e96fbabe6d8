"""A topic is known again, by its id and by its partitions."""

from __future__ import annotations

import uuid

import pytest

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.tables.topics import check_is_archived, made_anew, topic_number
from postroad.spark.cluster import TopicInfo

ID = uuid.UUID("6f9619ff-8b86-d011-b42d-00cf4fc964ff").bytes
UNKNOWN = bytes(16)


def test_number_of_a_topic_fits_where_tables_keep_it() -> None:
    assert 0 < topic_number(b"\xff" * 16) < 2**63
    assert topic_number(ID) == topic_number(ID)
    assert topic_number(UNKNOWN) == 0


def test_topic_without_a_number_on_either_side_is_taken_for_the_same() -> None:
    assert made_anew({"a": 1}, {"a": 1, "b": 2}) is None
    assert made_anew({"a": 1}, {"a": 0}) is None
    assert made_anew({"a": 0}, {"a": 1}) is None
    assert made_anew({"a": 1, "b": 2}, {"a": 1, "b": 3}) == "b"


def test_topic_that_lacks_an_archived_partition_is_another() -> None:
    ends = {("orders", 0): 10, ("orders", 2): 10, ("payments", 9): 1}
    check_is_archived(TopicInfo("orders", ID, (0, 1, 2)), ends, {"orders": topic_number(ID)}, "")
    check_is_archived(TopicInfo("orders", UNKNOWN, (0, 1, 2)), ends, {"orders": topic_number(ID)}, "")
    with pytest.raises(PipelineError, match=r"orders is not the topic .* .it has no partition 2.*Go home$"):
        check_is_archived(TopicInfo("orders", ID, (0, 1)), ends, {"orders": topic_number(ID)}, "Go home")
