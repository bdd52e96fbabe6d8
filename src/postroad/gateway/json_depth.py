"""How deep a JSON text nests, found without building anything from it.

Decoders recurse, and what was decoded is walked by others again: a bound on the depth is a bound on both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, count
from operator import sub
from typing import Final

DEPTH_MAX: Final = 64

# It matches at every quotation mark, also where the text ends too early: a scan never goes back.
_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+\\?(?:"|\Z)', re.DOTALL)
_ALL_BUT_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEPS: Final = bytes.maketrans(b"[{]}", b"\2\2\0\0")  # one more than the step: bytes have no sign


def is_too_deep(text: bytes) -> bool:
    """More than `DEPTH_MAX` arrays and objects in each other. Of what is no JSON nothing is promised."""
    steps = _STRINGS.sub(b"", text).translate(_STEPS, _ALL_BUT_BRACKETS)
    if steps.count(2) <= DEPTH_MAX:
        return False
    depths: Iterator[int] = map(sub, accumulate(steps), count(1))
    return max(depths) > DEPTH_MAX
