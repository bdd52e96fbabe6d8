"""Reads the text of a .proto file: proto2 and proto3, without linking its names."""

from __future__ import annotations

import re
from typing import Final, NoReturn

from postroad.errors import InvalidSchema
from postroad.schemas.protobuf import DEPTH_MAX, NUMBER_MAX, ProtoEnum, ProtoField, ProtoFile, ProtoMessage

_TOKEN: Final = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
      | (?P<text>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*')
      | (?P<word>\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
      | (?P<number>-?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?))
      | (?P<sign>[{}\[\]()<>;,=:/+-])""",
    re.VERBOSE | re.DOTALL,
)
TOKENS_MAX: Final = 500_000


def parse_text(text: str) -> ProtoFile:
    """Raises InvalidSchema, with the line that can't be read."""
    return _Parser(text).file()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, int]] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                self._tokens.append(("", at))
                self._at = len(self._tokens) - 1
                self._wrong("something else")
            if found.lastgroup is not None:
                self._tokens.append((found.group(), at))
                if len(self._tokens) > TOKENS_MAX:
                    raise InvalidSchema("The .proto file is too long.")
            at = found.end()
        self._at = 0

    def file(self) -> ProtoFile:
        file = ProtoFile()
        while self._peek():
            word = self._next()
            if word in ("syntax", "edition"):
                self._expect("=")
                file.syntax = self._quoted()
                if word == "edition" or file.syntax not in ("proto2", "proto3"):
                    raise InvalidSchema("The syntax must be proto2 or proto3.")
                self._expect(";")
            elif word == "package":
                file.package = self._next()
                self._expect(";")
            elif word == "import":
                kind = self._next() if self._peek() in ("public", "weak") else ""
                file.imports.append((self._quoted(), kind))
                self._expect(";")
            elif word == "message":
                file.messages.append(self._message(0))
            elif word == "enum":
                file.enums.append(self._enum())
            elif word in ("option", "service", "extend"):
                self._skip()
            elif word != ";":
                self._back("a message, an enum, an option or an import")
        return file

    def _message(self, depth: int) -> ProtoMessage:
        if depth > DEPTH_MAX:
            raise InvalidSchema(f"Messages nest deeper than {DEPTH_MAX} levels.")
        message = ProtoMessage(self._name())
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "message" and self._peek(1) == "{":
                message.messages.append(self._message(depth + 1))
            elif word == "enum" and self._peek(1) == "{":
                message.enums.append(self._enum())
            elif word == "oneof" and self._peek(1) == "{":
                self._oneof(message)
            elif word in ("option", "extend") and self._peek(1) != "=":
                self._skip()
            elif word in ("reserved", "extensions") and self._peek(1) != "=":
                self._ranges(message, word)
            elif word != ";":
                self._at -= 1
                message.fields.append(self._field(message, depth))
        return message

    def _oneof(self, message: ProtoMessage) -> None:
        name = self._name()
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option":
                self._skip()
            elif word != ";":
                self._at -= 1
                field = self._field(message, 0)
                field.oneof = name
                message.fields.append(field)

    def _field(self, message: ProtoMessage, depth: int) -> ProtoField:
        label = self._next() if self._peek() in ("optional", "required", "repeated") else ""
        if self._peek() == "map" and self._peek(1) == "<":
            self._next()
            self._expect("<")
            key = self._word()
            self._expect(",")
            type_ = self._word()
            self._expect(">")
            return self._numbered(ProtoField(self._name(), 0, type_, label, key=key))
        if self._peek() == "group":
            raise InvalidSchema("Groups are not supported; use a message.")
        type_ = self._word()
        return self._numbered(ProtoField(self._name(), 0, type_, label))

    def _numbered(self, field: ProtoField) -> ProtoField:
        self._expect("=")
        field.number = self._integer()
        if self._peek() == "[":
            self._next()
            while (word := self._next()) != "]":
                if word == "default" and self._peek() == "=":
                    self._next()
                    field.default = self._next()
                elif word in ("{", "["):
                    self._at -= 1
                    self._skip_brackets()
                elif not word:
                    self._back("]")
        self._expect(";")
        return field

    def _ranges(self, message: ProtoMessage, word: str) -> None:
        while True:
            token = self._next()
            if token[:1] in "\"'" and token:
                message.reserved_names.append(token[1:-1])
            elif token[0].isdigit():
                self._at -= 1
                first = last = self._integer()
                if self._peek() == "to":
                    self._next()
                    if self._peek() == "max":
                        self._next()
                        last = NUMBER_MAX
                    else:
                        last = self._integer()
                (message.reserved if word == "reserved" else message.extensions).append((first, last))
            else:
                self._back("a number or a name")
            if self._peek() == "[":
                self._skip_brackets()
            following = self._next()
            if following == ";":
                return
            if following != ",":
                self._back(";")

    def _enum(self) -> ProtoEnum:
        enum = ProtoEnum(self._name())
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option":
                enum.allow_alias |= self._peek() == "allow_alias" and self._peek(2) == "true"
                self._skip()
            elif word == "reserved":
                self._skip()
            elif word != ";":
                self._at -= 1
                name = self._name()
                self._expect("=")
                enum.values.append((name, self._integer()))
                if self._peek() == "[":
                    self._skip_brackets()
                self._expect(";")
        return enum

    # --- tokens

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at][0] if at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            self._wrong("more")
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._next() != token:
            self._back(repr(token))

    def _word(self) -> str:
        token = self._next()
        if not re.fullmatch(r"\.?[A-Za-z_][\w.]*", token):
            self._back("a name")
        return token

    def _name(self) -> str:
        name = self._word()
        if "." in name:
            self._back("a name without dots")
        return name

    def _quoted(self) -> str:
        token = self._next()
        if token[0] not in "\"'":
            self._back("a string")
        return token[1:-1]

    def _integer(self) -> int:
        token = self._next()
        sign = 1
        if token == "-":
            sign, token = -1, self._next()
        try:
            return sign * int(token, 0 if token.lower().lstrip("-").startswith("0x") else 10)
        except ValueError:
            self._back("a whole number")

    def _skip(self) -> None:
        """To the end of a statement, which is `;` or the bracket that closes its body."""
        while self._peek() not in ("{", ";", ""):
            self._next()
        if self._peek() == "{":
            self._skip_brackets()
            if self._peek() == ";":
                self._next()
        else:
            self._expect(";")

    def _skip_brackets(self) -> None:
        depth = 0
        while True:
            token = self._next()
            depth += (token in "{[") - (token in "}]")
            if depth == 0:
                return

    def _back(self, wanted: str) -> NoReturn:
        self._at -= 1
        self._wrong(wanted)

    def _wrong(self, wanted: str) -> NoReturn:
        at = self._tokens[self._at][1] if self._at < len(self._tokens) else len(self._text)
        line = self._text.count("\n", 0, at) + 1
        found = self._peek() or self._text[at : at + 1] or "the end"
        raise InvalidSchema(f"The .proto file, line {line}: {wanted} was expected, not {found[:50]!r}.")
