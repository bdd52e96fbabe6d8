"""Which texts SQS takes for bodies and attributes: those that XML can hold.

#x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF
"""

from __future__ import annotations

import re
from typing import Final

_CONTROL: Final = bytes(set(range(32)) - {9, 10, 13})
_BEYOND: Final = (b"\xef\xbf\xbe", b"\xef\xbf\xbf")  # U+FFFE and U+FFFF

_UNFIT: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def fit(text: str) -> str:
    """The same, with what is not allowed replaced."""
    return _UNFIT.sub("\ufffd", text)


def encode(text: str) -> bytes | None:
    """As UTF-8; None if a character is not allowed."""
    try:
        data = text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return None
    return data if _allowed(data) else None


def decode(data: bytes) -> str | None:
    """The text of these bytes; None if they are none, or a character is not allowed."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if _allowed(data) else None


def _allowed(data: bytes) -> bool:
    if len(data.translate(None, _CONTROL)) != len(data):
        return False
    return data.isascii() or not any(sequence in data for sequence in _BEYOND)
