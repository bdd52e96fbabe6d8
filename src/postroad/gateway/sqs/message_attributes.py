"""Message attributes are record headers: the same name, and the value as bytes.

A Kafka client sees plain headers, and an SQS client sees a Kafka client's headers as attributes: String where
they are text, else Binary. What a header alone can't tell, the types of Numbers, Binaries and those with a
label, stands in one more header, `postroad-sqs-types`, as JSON. Headers that begin with `postroad-` are
Postroad's own and no attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

import msgspec

from postroad.gateway.sqs import text
from postroad.gateway.sqs.errors import SqsError, invalid
from postroad.gateway.sqs.requests import MessageAttribute, MessageAttributes

TYPES: Final = "postroad-sqs-types"
RESERVED: Final = ("postroad-", "aws.", "amazon.")
BODY_ENCODING: Final = "postroad-body-encoding"
BASE64: Final = MessageAttribute("String", "base64")

ATTRIBUTES_MAX: Final = 10
CHARACTERS_MAX: Final = 256  # of a name or a type
NUMBER_DIGITS_MAX: Final = 38
KINDS: Final = ("String", "Number", "Binary")

Headers = Sequence[tuple[str, bytes | None]]

_NAME_MARKS: Final = frozenset("_-.")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")  # Decimal takes more
_types_encoder: Final = msgspec.json.Encoder()
_types_decoder: Final = msgspec.json.Decoder(dict[str, str])


class Written(NamedTuple):
    """Attributes as headers, and how much they count towards the size of the message."""

    headers: list[tuple[str, bytes | None]]
    size_bytes: int


NONE_WRITTEN: Final = Written([], 0)


def write(attributes: MessageAttributes | None) -> Written:
    """Raises SqsError if an attribute is not one that SQS takes."""
    if not attributes:
        return NONE_WRITTEN
    if len(attributes) > ATTRIBUTES_MAX:
        raise invalid("MessageAttributes", len(attributes), f"There may be {ATTRIBUTES_MAX} at most.")
    headers: list[tuple[str, bytes | None]] = []
    types: dict[str, str] = {}
    size = 0
    for name, attribute in attributes.items():
        _check_name(name)
        value = _value(name, attribute)
        headers.append((name, value))
        size += len(name.encode()) + len(attribute.data_type.encode()) + len(value)
        if attribute.data_type != "String":
            types[name] = attribute.data_type
    if types:
        headers.append((TYPES, _types_encoder.encode(types)))
    return Written(headers, size)


def read(headers: Headers) -> MessageAttributes:
    """The attributes that these headers are. Of several with one name the last one counts."""
    found = dict(headers)
    types = _types(found.get(TYPES))
    attributes: MessageAttributes = {}
    for name, value in found.items():
        if name and not name.startswith(RESERVED[0]) and text.encode(name) is not None:
            attributes[name] = _read_one(value or b"", types.get(name, "String"))
    return attributes


class Wanted:
    """Which attributes a receiver asked for: names, `prefix.*`, and `All`, `.*` or `*` for all of them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._all = bool(self._names & {"All", "ALL", ".*", "*"})
        self._prefixes = tuple(name[:-2] for name in self._names if name.endswith(".*"))

    def __bool__(self) -> bool:
        return bool(self._names)

    def of(self, attributes: MessageAttributes) -> MessageAttributes:
        if self._all:
            return attributes
        return {
            name: attribute
            for name, attribute in attributes.items()
            if name in self._names or name.startswith(self._prefixes)
        }


def _read_one(value: bytes, data_type: str) -> MessageAttribute:
    string = None if data_type.startswith("Binary") else text.decode(value)
    if string is not None:
        return MessageAttribute(data_type, string)
    binary_type = data_type if data_type.startswith("Binary") else "Binary"
    return MessageAttribute(binary_type, None, value)


def _types(data: bytes | None) -> dict[str, str]:
    """Anybody may write headers: types that can't be right are none."""
    if data is None:
        return {}
    try:
        types = _types_decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
    return {name: type_ for name, type_ in types.items() if type_.partition(".")[0] in KINDS}


def _check_name(name: str) -> None:
    """Letters and digits of any script, as with Amazon."""
    right = 0 < len(name) <= CHARACTERS_MAX and all(
        character.isalnum() or character in _NAME_MARKS for character in name
    )
    if not right or name.startswith(".") or name.endswith(".") or ".." in name:
        raise invalid(
            "MessageAttributes",
            name[:CHARACTERS_MAX],
            "A name has letters, digits, '_', '-' and '.', none of these at its ends or twice in a row.",
        )
    if name.lower().startswith(RESERVED):
        raise invalid("MessageAttributes", name, "The beginning of the name is reserved.")


def _value(name: str, attribute: MessageAttribute) -> bytes:
    kind = attribute.data_type.partition(".")[0]
    if kind not in KINDS or len(attribute.data_type) > CHARACTERS_MAX:
        raise _wrong(
            name,
            "has an invalid message attribute type, the set of supported type prefixes is Binary, Number, "
            "and String",
        )
    if kind == "Binary":
        if not attribute.binary_value:
            raise _empty(name, attribute)
        return attribute.binary_value
    if not attribute.string_value:
        raise _empty(name, attribute)
    value = text.encode(attribute.string_value)
    if value is None or text.encode(attribute.data_type) is None:
        raise _wrong(name, "contains characters that are not allowed")
    if kind == "Number" and not _is_number(attribute.string_value):
        raise _wrong(name, "is not a number")
    return value


def _is_number(value: str) -> bool:
    if len(value) > CHARACTERS_MAX or not _NUMBER.fullmatch(value):
        return False
    try:
        number = Decimal(value)
    except InvalidOperation:  # an exponent beyond all bounds
        return False
    return number.is_finite() and len(number.as_tuple().digits) <= NUMBER_DIGITS_MAX


def _empty(name: str, attribute: MessageAttribute) -> SqsError:
    what = f"must contain a non-empty value of type '{attribute.data_type}'"
    return SqsError("InvalidParameterValueException", f"Message (user) attribute '{name}' {what}.")


def _wrong(name: str, what: str) -> SqsError:
    return SqsError("InvalidParameterValueException", f"The message attribute '{name}' {what}.")
