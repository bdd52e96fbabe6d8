"""What msgspec raises for bytes that some peer has made."""

from __future__ import annotations

from typing import Final

import msgspec

# Texts that are not UTF-8, and what nests deeper than the decoder can go, are no MsgspecError.
UNDECODABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
