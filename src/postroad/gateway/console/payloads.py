"""Keys, values and headers as people can read them, whatever their bytes are.

Y1 Bytes become text here, and text becomes markup only by `tag`: no payload is ever markup.
Y2 What would deceive a reader is spelled out: characters that turn the direction of text, that can't be
   seen, or that control a terminal.
Y3 What is long is cut, and says so.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final, NamedTuple

import msgspec

from postroad.gateway.json_depth import is_too_deep
from postroad.gateway.rest.content import Base64
from postroad.markup import Html, Node, tag

AUTO, JSON, TEXT, HEX, MESSAGE_PACK = "auto", "json", "text", "hex", "msgpack"
FORMATS: Final = (
    (AUTO, "automatically"),
    (JSON, "JSON"),
    (TEXT, "text"),
    (HEX, "hex"),
    (MESSAGE_PACK, "MessagePack"),
)
SHOWN_CHARACTERS_MAX: Final = 64 * 1024
HEX_BYTES_MAX: Final = 4096
LINES_MAX: Final = 50_000  # of JSON that is indented
PREVIEW_CHARACTERS: Final = 160
PER_LINE: Final = 16

_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)


class Shown(NamedTuple):
    """`format`: in which way it was read."""

    format: str
    text: str
    is_cut: bool = False


def data_of(content: Any) -> bytes | None:
    """The bytes of what REST answered with `values=text`."""
    if content is None:
        return None
    if isinstance(content, Base64):
        return base64.b64decode(content.base64)
    return str(content).encode(errors="surrogatepass")


def shown(data: bytes, asked: str = AUTO, characters_max: int = SHOWN_CHARACTERS_MAX) -> Shown:
    """As it was asked for where that is possible; else as hex."""
    if asked in (AUTO, JSON) and (found := _json(data)) is not None:
        return _cut(JSON, found, characters_max)
    if asked in (AUTO, TEXT) and (found := _text(data)) is not None:
        return _cut(TEXT, found, characters_max)
    if asked in (AUTO, MESSAGE_PACK) and (found := _message_pack(data, asked)) is not None:
        return _cut(MESSAGE_PACK, found, characters_max)
    return Shown(HEX, _hex(data[:HEX_BYTES_MAX]), len(data) > HEX_BYTES_MAX)


def preview(content: Any) -> Html:
    """One line of a table."""
    if content is None:
        return tag("em", "null", class_="soft")
    data = data_of(content)
    assert data is not None, "it is there"
    text = _text(data)
    if text is None:
        return tag("span", data[:24].hex(" "), class_="mono soft")
    line = (
        " ".join(text[: 2 * PREVIEW_CHARACTERS].split()) if len(text) < 1 << 20 else text[:PREVIEW_CHARACTERS]
    )
    more = "…" if len(line) > PREVIEW_CHARACTERS else None
    return tag("span", spelled(line[:PREVIEW_CHARACTERS]), more, class_="mono payload")


def block(found: Shown) -> Html:
    note = tag("p", "Only the beginning is shown.", class_="hint") if found.is_cut else None
    return tag("div", tag("pre", spelled(found.text), class_="payload", tabindex="0"), note)


def spelled(text: str) -> list[Node]:
    """Text in which nothing is hidden (Y2)."""
    parts: list[Node] = []
    end = 0
    for match in _HIDDEN.finditer(text):
        parts += [text[end : match.start()], tag("span", f"U+{ord(match[0]):04X}", class_="hidden-character")]
        end = match.end()
    return [*parts, text[end:]]


def spelled_text(text: str) -> str:
    """The same where there can be no markup: in titles and labels."""
    return _HIDDEN.sub(lambda match: f"U+{ord(match[0]):04X}", text)


def _cut(format_: str, text: str, characters_max: int) -> Shown:
    return Shown(format_, text[:characters_max], len(text) > characters_max)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _json(data: bytes) -> str | None:
    """Formatted, with every number as it was written. Only objects and lists are worth it."""
    if data[:1] not in (b"{", b"[") and data.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        if is_too_deep(data):
            return None
        data.decode()
        msgspec.json.decode(data)
        return _indented(data)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None


def _message_pack(data: bytes, asked: str) -> str | None:
    """Almost any bytes are some MessagePack: unless it was asked for only maps and lists count."""
    if asked == AUTO and (not data or not (data[0] >> 4 in (8, 9) or 0xDC <= data[0] <= 0xDF)):
        return None
    try:
        found = msgspec.json.encode(msgspec.msgpack.decode(data))
        return None if is_too_deep(found) else _indented(found)
    except (msgspec.MsgspecError, RecursionError, ValueError, TypeError):
        return None


def _indented(data: bytes) -> str:
    """Unless it has so many lines that their indents could take hundreds of megabytes."""
    lines = sum(map(data.count, (b",", b"[", b"{", b"]", b"}")))
    return (data if lines > LINES_MAX else msgspec.json.format(data, indent=2)).decode()


def _hex(data: bytes) -> str:
    lines = []
    for start in range(0, len(data), PER_LINE):
        line = data[start : start + PER_LINE]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in line)
        lines.append(f"{start:08x}  {line.hex(' '):<{3 * PER_LINE - 1}}  {letters}")
    return "\n".join(lines)
