"""What an endpoint may answer to a challenge, however hostile it is."""

from __future__ import annotations

import pytest

from postroad.gateway.webhooks.challenge import _echoes

TOKEN = "t0ken"


@pytest.mark.parametrize("answer", [b"t0ken", b" t0ken\n", b'{"challenge": "t0ken"}'])
def test_an_echo_is_the_token_or_an_object_with_it(answer: bytes) -> None:
    assert _echoes(answer, TOKEN)


@pytest.mark.parametrize(
    "answer",
    [b"", b"other", b"{", b'{"challenge": 7}', b'{"challenge": "\xff"}', b'{"a":' + b"[" * 100_000, b"\xff"],
    ids=["nothing", "another", "no JSON", "a number", "no UTF-8", "too deep", "bytes"],
)
def test_anything_else_is_no_echo(answer: bytes) -> None:
    assert not _echoes(answer, TOKEN)
