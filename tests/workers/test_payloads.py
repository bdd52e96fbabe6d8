"""Payloads that can't be what the worker wants are said to be so, and never tried again."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from postroad import Undecodable
from postroad.workers.payloads import decoder


@pytest.mark.parametrize("of", [dict[str, Any], Decimal, str, Any, list[str]], ids=str)
@pytest.mark.parametrize(
    "payload", [b'["\xff"]', b'"\xff"', b'{"\xff": 1}', b"[" * 100_000, b'{"a":' * 100_000], ids=range(5)
)
def test_poison_is_undecodable(of: Any, payload: bytes) -> None:
    if of is str and b"\xff" not in payload:
        pytest.skip("any UTF-8 is a text")
    with pytest.raises(Undecodable):
        decoder(of)(payload)
