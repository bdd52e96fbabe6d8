"""Frames of both formats against whatever may come."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.client.share_message import AckType
from postroad.gateway.push.binary_frames import BinaryFormat
from postroad.gateway.push.frames import BadFrame, Credit, Format, Settlement
from postroad.gateway.push.json_frames import JsonFormat

FORMATS: list[Format] = [JsonFormat(1), BinaryFormat()]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
types = st.sampled_from(["credit", "accept", "release", "reject", "extend", "message"])
fields = st.sampled_from(["ids", "receipts", "request", "messages", "lock_ms", "delay_ms", "other"])


def read(format_: Format, frame: str | bytes) -> None:
    """It is understood, or refused with a text."""
    said: object
    try:
        said = format_.read(frame)
    except BadFrame as refused:
        said = str(refused)
    assert isinstance(said, Credit | Settlement | str)
    assert said


@pytest.mark.parametrize("format_", FORMATS, ids=lambda format_: format_.subprotocol)
@given(frame=st.binary(max_size=64) | st.text(max_size=64))
def test_whatever_comes_is_understood_or_refused(format_: Format, frame: str | bytes) -> None:
    read(format_, frame)


@given(kind=st.integers(0, 255), rest=st.binary(max_size=64))
def test_whatever_follows_a_kind_is_understood_or_refused(kind: int, rest: bytes) -> None:
    read(BinaryFormat(), bytes([kind]) + rest)


@given(type_=types, said=st.dictionaries(fields, json_values, max_size=4))
def test_whatever_stands_in_the_fields_is_understood_or_refused(type_: str, said: dict[str, object]) -> None:
    read(JsonFormat(1), json.dumps({"type": type_, **said}))


def test_a_settlement_reads_the_same_in_both_formats() -> None:
    as_json = JsonFormat(1).read('{"type": "release", "ids": [1, 2], "delay_ms": 500, "request": 3}')
    as_bytes = BinaryFormat().read(
        bytes.fromhex("03 00000003 000001f4 0000000000000001 0000000000000002".replace(" ", ""))
    )
    assert isinstance(as_json, Settlement)
    assert isinstance(as_bytes, Settlement)
    assert as_json._replace(ids=(), receipts=()) == as_bytes._replace(ids=(), receipts=())
    assert list(as_json.ids) == list(as_bytes.ids) == [1, 2]
    assert as_json.type is AckType.RELEASE
