"""Many messages read side by side: one position in each, moved on together by numpy.

A field of a row-by-row format lies at another place in each message, but it is the same field for all. So
each step reads it for all messages at once, whatever its length, and nothing is done message by message.

A lane that can't be read is noted in `bad`, by its row, and stands at its end from then on: what is read of
it later is zeros, and nobody looks at them. No position ever leaves its message."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]

PAD_BYTES: Final = 16  # behind all messages, so that a fixed number of bytes can be read at any position
VARINT_BYTES_MAX: Final = 10
_LOW: Final = np.uint64(0x7F)


class Messages:
    """The bytes of all messages, and what is wrong with which row."""

    def __init__(self, values: Any) -> None:
        """`values`: an array of binaries, of which null ones have no bytes."""
        _, offsets, data = values.buffers()
        count = len(values)
        self.offsets = np.frombuffer(offsets, np.int32)[values.offset : values.offset + count + 1].astype(
            np.int64
        )
        size = int(self.offsets[-1]) if count else 0
        padded = np.zeros(size + PAD_BYTES, np.uint8)
        if size:
            padded[:size] = np.frombuffer(data, np.uint8, size)
        self.data = padded
        self.buffer = pa.py_buffer(padded)
        self.bad: dict[int, str] = {}


class Lanes:
    def __init__(self, messages: Messages, at: Numbers, end: Numbers, rows: Numbers) -> None:
        self.messages = messages
        self.at = at
        self.end = end
        self.rows = rows

    def __len__(self) -> int:
        return len(self.at)

    def some(self, which: Any) -> Lanes:
        """Those that a mask or indices name; where they get to is told by `moved`."""
        return Lanes(self.messages, self.at[which], self.end[which], self.rows[which])

    def moved(self, which: Any, some: Lanes) -> None:
        self.at[which] = some.at

    def fail(self, which: Any, reason: str) -> None:
        """They can't be read on."""
        for row in self.rows[which].tolist():
            self.messages.bad.setdefault(row, reason)
        self.at[which] = self.end[which]

    def _check(self) -> Any:
        """Those that have left their message, and stand at its end now; None if there are none."""
        over = self.at > self.end
        if not over.any():
            return None
        self.fail(over, "it is cut short")
        return over

    # --- what formats are made of

    def varints(self) -> npt.NDArray[np.uint64]:
        """Base 128, the lowest bits first."""
        data = self.messages.data
        byte = data[self.at]
        self.at += 1
        value = byte.astype(np.uint64)
        more = np.flatnonzero(byte >= 0x80)
        if len(more):
            value[more] &= _LOW
            for shift in range(7, 7 * VARINT_BYTES_MAX, 7):
                at = np.minimum(self.at[more], len(data) - 1)
                byte = data[at]
                self.at[more] += 1
                value[more] |= (byte.astype(np.uint64) & _LOW) << np.uint64(shift)
                more = more[byte >= 0x80]
                if not len(more):
                    break
            else:
                self.fail(more, "a number has more than ten bytes")
        over = self._check()
        if over is not None:
            value[over] = 0
        return value

    def zigzags(self) -> Numbers:
        """Signed numbers as Avro and Protobuf's sint have them."""
        value = self.varints()
        found: Numbers = (
            (value >> np.uint64(1)) ^ (-(value & np.uint64(1)).astype(np.int64)).astype(np.uint64)
        ).view(np.int64)
        return found

    def fixed(self, size: int) -> npt.NDArray[np.uint8]:
        """The next `size` bytes of each, as rows of a table."""
        at = np.minimum(self.at, len(self.messages.data) - min(size, PAD_BYTES))
        if size <= PAD_BYTES:
            found = self.messages.data[at[:, None] + np.arange(size)]
        else:
            padded = np.minimum(at[:, None] + np.arange(size), len(self.messages.data) - 1)
            found = self.messages.data[padded]
        self.at += size
        self._check()
        return found

    def spans(self, lengths: Numbers) -> tuple[Numbers, Numbers]:
        """Where the next bytes of each begin, and how many they are; they are passed over."""
        wrong = (lengths < 0) | (lengths > self.end - self.at)
        if wrong.any():
            self.fail(wrong, "it is cut short")
            lengths = np.where(wrong, 0, lengths)
        begin = self.at.copy()
        self.at += lengths
        return begin, lengths

    def binaries(self, begin: Numbers, lengths: Numbers) -> Any:
        """Those bytes as an Arrow array, copied once."""
        count = len(begin)
        if not count:
            return pa.array([], pa.binary())
        slots = np.empty(2 * count, np.int32)
        slots[0::2] = begin
        slots[1::2] = begin + lengths
        if (np.diff(slots) < 0).any():  # lanes that are not in the order of their messages
            order = np.argsort(begin, kind="stable")
            back = np.empty(count, np.int64)
            back[order] = np.arange(count)
            if (begin[order][1:] < (begin + lengths)[order][:-1]).any():
                parts = [self.messages.data[a : a + n].tobytes() for a, n in zip(begin, lengths, strict=True)]
                return pa.array(parts, pa.binary())
            return self.binaries(begin[order], lengths[order]).take(pa.array(back))
        whole = pa.Array.from_buffers(
            pa.binary(), 2 * count - 1, [None, pa.py_buffer(slots), self.messages.buffer]
        )
        return whole.take(pa.array(np.arange(0, 2 * count, 2)))

    def texts(self, binaries: Any) -> Any:
        """As UTF-8; a lane that is none fails."""
        try:
            return binaries.cast(pa.string())
        except pa.ArrowInvalid:
            wrong = np.zeros(len(binaries), bool)
            for number, value in enumerate(binaries.to_pylist()):
                try:
                    (value or b"").decode()
                except UnicodeDecodeError:
                    wrong[number] = True
            self.fail(wrong, "a string is not UTF-8")
            return pa.array(
                [
                    None if is_wrong else value.decode()
                    for value, is_wrong in zip(binaries.to_pylist(), wrong, strict=True)
                ],
                pa.string(),
            )
