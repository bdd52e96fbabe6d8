"""Where a cluster is found, in one text."""

from __future__ import annotations

import pytest

from postroad.client.bootstrap import read
from postroad.client.metadata import Address
from postroad.errors import ConfigurationError


def test_addresses_alone_are_plain() -> None:
    assert read("a:1,b:2") == ([Address("a", 1), Address("b", 2)], None, None)


def test_tls_has_its_files_behind_a_question_mark() -> None:
    found = read("tls://a:1,b?ca=/x%26y/ca.pem&certificate=c&key=k&verify=ca")
    assert found.addresses == [Address("a", 1), Address("b", 9092)]
    assert found.tls == {"ca": "/x&y/ca.pem", "certificate": "c", "key": "k", "verify": "ca"}
    assert read("tls://a:1").tls == {}


@pytest.mark.parametrize(
    "text",
    [
        "tls://",
        "tls://a?b=c",
        "tls://a?ca=",
        "tls://a?verify=no",
        "tls://a?key=k",
        "tls://a?ca=x&ca=y",
        "ssl://a",
    ],
)
def test_what_can_not_be_read_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        read(text)
