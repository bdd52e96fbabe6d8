"""Batches that must be opened on their way in: compacted topics, and topics that recompress.

Most topics never come here: their batches stay closed from socket to disk. Decompression is bounded,
so that a small hostile batch can't become a large one in memory.
"""

from __future__ import annotations

from typing import Final

from postroad.broker.partition import Inspect
from postroad.errors import InvalidRecord
from postroad.wire import records
from postroad.wire.batch import ATTRIBUTES, COMPRESSION_MASK, Fields, read_header
from postroad.wire.compression import NONE, codec_of

UNPACKED_BYTES_MAX: Final = (
    32 * 1024 * 1024
)  # some 30 times the default max.message.bytes: text, never a bomb


def inspector(compacted: bool, compression_type: str) -> Inspect | None:
    """What a topic with these configs does to each batch; None if nothing."""
    names = {"producer": None, "uncompressed": NONE}
    codec = names[compression_type] if compression_type in names else codec_of(compression_type)
    if not compacted and codec is None:
        return None

    def inspect(batch: memoryview, header: Fields) -> tuple[memoryview, Fields]:
        if compacted and (wrong := records.without_key(batch, UNPACKED_BYTES_MAX)):
            raise InvalidRecord("The topic is compacted, so every message needs a key.", records=wrong)
        if codec is None or header[ATTRIBUTES] & COMPRESSION_MASK == codec:
            return batch, header
        anew = memoryview(records.recompress(batch, codec, UNPACKED_BYTES_MAX))
        return anew, read_header(anew)

    return inspect
