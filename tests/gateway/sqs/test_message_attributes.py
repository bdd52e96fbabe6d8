"""Message attributes as headers, and their MD5s, without a gateway."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.gateway.sqs import md5, message_attributes
from postroad.gateway.sqs.errors import SqsError
from postroad.gateway.sqs.message_attributes import TYPES, Wanted
from postroad.gateway.sqs.requests import MessageAttribute, MessageAttributes

TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF), min_size=1, max_size=20)
ATTRIBUTES = st.dictionaries(
    st.from_regex(r"\A[a-z][a-z_-]{0,10}\Z").filter(lambda name: not name.startswith("postroad-")),
    st.builds(MessageAttribute, st.sampled_from(["String", "String.label"]), TEXT)
    | st.builds(MessageAttribute, st.just("Number"), st.integers(-(10**20), 10**20).map(str))
    | st.builds(
        MessageAttribute,
        st.sampled_from(["Binary", "Binary.gif"]),
        st.none(),
        st.binary(min_size=1, max_size=20),
    ),
    max_size=10,
)


@given(ATTRIBUTES)
def test_attributes_survive_as_headers(attributes: MessageAttributes) -> None:
    assert message_attributes.read(message_attributes.write(attributes).headers) == attributes


def test_plain_strings_are_plain_headers() -> None:
    written = message_attributes.write({"a": MessageAttribute("String", "x")})
    assert written.headers == [("a", b"x")]
    assert written.size_bytes == len("a") + len("String") + len("x")


@pytest.mark.parametrize("types", [b"", b"{", b"[]", b'{"a": 1}', b'{"a": "Thing"}', b"\xff", b"[" * 10_000])
def test_types_that_others_wrote_wrong_are_none(types: bytes) -> None:
    found = message_attributes.read([("a", b"1"), (TYPES, types)])
    assert found == {"a": MessageAttribute("String", "1")}


def test_a_number_that_is_no_text_is_binary() -> None:
    found = message_attributes.read([("a", b"\xff"), (TYPES, b'{"a": "Number"}')])
    assert found == {"a": MessageAttribute("Binary", None, b"\xff")}


def test_of_headers_with_one_name_the_last_counts() -> None:
    assert message_attributes.read([("a", b"1"), ("a", b"2")]) == {"a": MessageAttribute("String", "2")}


def test_numbers_have_38_digits_at_most() -> None:
    for right in ("1" * 38, "-1.5", "+.5", "1.", "1E-3"):
        message_attributes.write({"a": MessageAttribute("Number", right)})
    for wrong in ("1" * 39, "NaN", "Infinity", "1e", "0x1", "1" * 300, "1_0", " 1", "1 ", "\u0661", "."):
        with pytest.raises(SqsError):
            message_attributes.write({"a": MessageAttribute("Number", wrong)})


def test_wanted_attributes_are_names_prefixes_or_all() -> None:
    attributes = {name: MessageAttribute("String", "x") for name in ("a", "ab", "b.c")}
    assert not Wanted([])
    assert set(Wanted(["a"]).of(attributes)) == {"a"}
    assert set(Wanted(["a.*"]).of(attributes)) == {"a", "ab"}
    assert set(Wanted(["All"]).of(attributes)) == set(attributes)


def test_md5s_are_those_of_amazon() -> None:
    assert md5.of_body(b"hello") == "5d41402abc4b2a76b9719d911017c592"
    assert md5.of_attributes(None) is None
    one = {"attribName1": MessageAttribute("String", "attribValue 1")}
    assert md5.of_attributes(one) == "19e27d4e946b072f3f58da80d94fd778"
