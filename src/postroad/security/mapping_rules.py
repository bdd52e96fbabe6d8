"""From the subject of a client's certificate to a user's name (KIP-371).

    rules := rule { "," rule }
    rule  := "DEFAULT" | "RULE:" pattern "/" replacement "/" [ "L" | "U" ]

    RULE:^CN=([^,]+),OU=orders,.*$/$1/L,DEFAULT

The first rule whose pattern fits the whole subject counts; `$1` is what its first group found; L and U
change the letters to small and large ones. DEFAULT is the subject itself. A subject is written as in RFC
2253: `CN=shop,OU=orders,O=Example`, the most specific part first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

DEFAULT: Final = "DEFAULT"
# No slash and no comma that begins another rule within a pattern: as Kafka reads them.
_RULE: Final = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)\s*(?:,|$)\s*")
_DEFAULT: Final = re.compile(r"DEFAULT\s*(?:,|$)\s*")
_GROUP: Final = re.compile(r"\$(\d)")
_SPECIAL: Final = re.compile(r'([,+"\\<>;=])')
_LETTERS: Final[dict[str, Callable[[str], str]]] = {"": str, "L": str.lower, "U": str.upper}

# What certificates call the parts of a name, and what RFC 2253 and Java do.
SHORT: Final = {
    "commonName": "CN",
    "organizationalUnitName": "OU",
    "organizationName": "O",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}


class MappingRule(NamedTuple):
    pattern: re.Pattern[str] | None  # None: DEFAULT
    replacement: str
    letters: str

    def apply(self, subject: str) -> str | None:
        """The name; None if the rule does not fit."""
        if self.pattern is None:
            return subject
        found = self.pattern.fullmatch(subject)
        if found is None:
            return None
        name = _GROUP.sub(lambda group: found.group(int(group[1])) or "", self.replacement)
        return _LETTERS[self.letters](name)


class MappingRules:
    """All rules, in their order."""

    def __init__(self, rules: Sequence[MappingRule]) -> None:
        self._rules = rules

    @classmethod
    def parse(cls, text: str) -> MappingRules:
        """ValueError with what would be right."""
        rules, at = [], 0
        text = text.strip()
        while at < len(text):
            if found := _DEFAULT.match(text, at):
                rules.append(MappingRule(None, "", ""))
            elif found := _RULE.match(text, at):
                rules.append(_rule(*found.groups()))
            else:
                raise ValueError("DEFAULT and RULE:pattern/replacement/[L|U], with commas between")
            at = found.end()
        return cls(rules or [MappingRule(None, "", "")])

    def name(self, subject: str) -> str | None:
        """The user of a certificate with this subject; None if no rule fits, or nothing is left."""
        for rule in self._rules:
            name = rule.apply(subject)
            if name is not None:
                return name or None
        return None


def _rule(pattern: str, replacement: str, letters: str) -> MappingRule:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"rules with valid patterns; {pattern!r} is none: {error}") from None
    if any(int(group) > compiled.groups for group in _GROUP.findall(replacement)):
        raise ValueError(f"rules whose patterns have the groups that they name; {pattern!r} has not")
    return MappingRule(compiled, replacement, letters)


def subject_text(parts: Iterable[Iterable[tuple[str, str]]]) -> str:
    """A subject as `ssl` has it (the most general part first), as RFC 2253 writes it."""
    names = ["+".join(f"{SHORT.get(kind, kind)}={_escaped(value)}" for kind, value in part) for part in parts]
    return ",".join(reversed(names))


def _escaped(value: str) -> str:
    value = _SPECIAL.sub(r"\\\1", value)
    if value[:1] in ("#", " "):
        value = "\\" + value
    return value[:-1] + "\\ " if value.endswith(" ") and not value.endswith("\\ ") else value
