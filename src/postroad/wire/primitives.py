"""What the generated modules of `wire.messages` share: varints, tagged fields, bounds, the errors.

Sizes on the wire, big endian. In flexible versions (KIP-482) a length is an unsigned varint of length + 1,
0 for null, and every struct ends with its tagged fields; before them a string's length is an int16,
that of bytes and arrays an int32, -1 for null.

    tagged fields = count (varint), then for each: tag (varint), size (varint), value
    varint        = 7 bits a byte, lowest first, the top bit set on all but the last; at most 32 bits

What holds of every decoder, whatever the bytes:

1. A length or count is compared with the bytes that are left before anything is made from it. A count may
   not exceed those bytes divided by the fewest that an element can take, so memory grows with the body:
   at most some 64 bytes for a byte of it (arrays of empty structs; tests measure it). Whoever cuts frames
   bounds the body.
2. Unknown tags are skipped; known and unknown ones must come in rising order, so none comes twice.
3. A wrong byte raises ProtocolError. Nothing recurses; bytes after the message are left alone.

Varints longer than they need to be are accepted, as Kafka does: a client may reserve room for a length
and fill it in later.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import Final, TypeAlias

from postroad.errors import ProtocolError, UnsupportedVersion

Buffer: TypeAlias = bytes | bytearray | memoryview

ZERO_UUID: Final = bytes(16)

# The usual lengths, encoded once; `uvarint` does the others.
SHORT_UVARINTS: Final = tuple(bytes((value,)) for value in range(128))
INT32_ARRAYS: Final = tuple(Struct(f">{count}i") for count in range(17))

# What reading past the end of a body, or text that is not UTF-8, raises.
UNREADABLE: Final = (struct_error, IndexError, UnicodeDecodeError)


class Message:
    """The base of all structs: plain attributes, compared and shown by their values."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({values})"


def uvarint(value: int) -> bytes:
    """An unsigned varint of any length."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def long_uvarint(buffer: bytes | memoryview, position: int, first: int) -> tuple[int, int]:
    """(value, position behind it) of a varint whose first byte, above 127, was read before `position`."""
    value, shift = first & 127, 7
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 28:
            raise ProtocolError("A varint is longer than five bytes.")
    if value > 0xFFFFFFFF:
        raise ProtocolError("A varint is larger than 32 bits.")
    return value, position


def read_tag(
    buffer: bytes | memoryview, position: int, end: int, previous: int, struct: str
) -> tuple[int, int, int]:
    """(tag, where its value starts, where it stops); the value lies within the body."""
    tag = buffer[position]
    position += 1
    if tag > 127:
        tag, position = long_uvarint(buffer, position, tag)
    size = buffer[position]
    position += 1
    if size > 127:
        size, position = long_uvarint(buffer, position, size)
    if tag <= previous:
        raise ProtocolError(f"{struct}: tag {tag} comes twice or out of order.")
    if size > end - position:
        raise ProtocolError(f"{struct}: tag {tag} has {size} bytes, {end - position} are left.")
    return tag, position, position + size


def skip_tags(buffer: bytes | memoryview, position: int, end: int, count: int, struct: str) -> int:
    """The position behind `count` tagged fields (its first byte, if it has several), all unknown."""
    if count > 127:
        count, position = long_uvarint(buffer, position, count)
    tag = -1
    for _ in range(count):  # ends with the body: each takes two bytes at least
        tag, _, position = read_tag(buffer, position, end, tag, struct)
    return position


def tagged_field(tag: int, value: list[Buffer]) -> bytes:
    body = b"".join(value)
    return uvarint(tag) + uvarint(len(body)) + body


def bad_length(field: str, length: int, left: int) -> ProtocolError:
    """For a length or count that is negative, or larger than what is left can hold."""
    if length == -1:
        return ProtocolError(f"{field} is null, which this version does not allow.")
    return ProtocolError(f"{field} claims a length of {length}; {left} bytes are left.")


def bad_bool(field: str, value: int) -> ProtocolError:
    return ProtocolError(f"{field} is neither true nor false: {value}.")


def bad_marker(field: str, value: int) -> ProtocolError:
    return ProtocolError(f"{field} is neither there (1) nor null (-1): {value}.")


def bad_tag_size(struct: str, tag: int) -> ProtocolError:
    return ProtocolError(f"{struct}: the value of tag {tag} does not fill its size.")


def malformed(message: str, version: int, error: Exception) -> ProtocolError:
    """For what a decoder met as one of UNREADABLE."""
    if isinstance(error, UnicodeDecodeError):
        return ProtocolError(f"{message} v{version} has text that is not UTF-8.")
    return ProtocolError(f"{message} v{version} ends before its last field.")


def unsupported(name: str, version: int, lowest: int, highest: int) -> UnsupportedVersion:
    return UnsupportedVersion(f"{name} v{version} is not supported; v{lowest} to v{highest} are.")


def must_not_be_null(field: str, version: int) -> ValueError:
    return ValueError(f"{field} must not be None in v{version}.")


def does_not_fit(message: str, version: int, error: Exception) -> ValueError:
    return ValueError(f"{message} v{version} has a value that its field can't hold: {error}.")
