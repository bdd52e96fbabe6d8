import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.gateway import message_ids
from postroad.gateway.message_ids import WrongMessageId


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))
def test_an_id_says_where_the_message_is(topic_id: bytes, partition: int, offset: int) -> None:
    text = message_ids.write(topic_id, partition, offset)
    assert re.fullmatch(message_ids.PATTERN, text)
    assert message_ids.read(text) == (topic_id, partition, offset)


@given(st.text(max_size=50) | st.from_regex(message_ids.PATTERN, fullmatch=True))
def test_each_place_has_one_spelling_and_all_else_is_refused(text: str) -> None:
    try:
        found = message_ids.read(text)
    except WrongMessageId:
        return
    assert message_ids.write(*found) == text


@pytest.mark.parametrize(
    "text", ["", "x", "\ud800" * 38, "=" * 38, "é" * 38, "A" * 39, "A" * 37 + "B", "_" * 38]
)
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(WrongMessageId):
        message_ids.read(text)
