"""How a config is declared, read from text and shown, in the terms of Kafka's DescribeConfigs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from postroad.errors import InvalidConfig

LONG_MAX: Final = 2**63 - 1
INT_MAX: Final = 2**31 - 1

Value: TypeAlias = bool | int | float | str | tuple[str, ...]


class ConfigResource(IntEnum):
    """What has configs, by the codes of DescribeConfigs."""

    TOPIC = 2
    NODE = 4
    GROUP = 32


class ConfigType(IntEnum):
    """The codes of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9  # its value is told to nobody


class ConfigSource(IntEnum):
    """The codes of DescribeConfigs, for where a value comes from."""

    TOPIC = 1
    ONE_NODE = 2  # changed while it runs, for this one
    ALL_NODES = 3  # the same, for all
    NODE = 4
    DEFAULT = 5
    GROUP = 8


class Synonym(NamedTuple):
    """One place that gives the config a value; the first of several wins."""

    name: str
    value: str
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One answer of DescribeConfigs."""

    name: str
    value: str
    type: ConfigType
    source: ConfigSource
    read_only: bool
    documentation: str
    synonyms: tuple[Synonym, ...]


Rule: TypeAlias = Callable[[Value], str | None]  # what would be right, or None if the value is


@dataclass(frozen=True)
class Range:
    """A rule that says beforehand what is right: numbers between two bounds, or some of these words."""

    words: str
    holds: Callable[[Value], bool]
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    def __call__(self, value: Value) -> str | None:
        return None if self.holds(value) else self.words


@dataclass(frozen=True)
class Definition:
    """One config. `node_name` is the node's config that gives its default, as Kafka calls it."""

    name: str
    type: ConfigType
    default: str
    doc: str
    rule: Rule
    node_name: str = ""
    supported: bool = True

    @property
    def documentation(self) -> str:
        return self.doc if self.supported else f"Accepted for compatibility, has no effect. {self.doc}"

    def parse(self, text: str) -> Value:
        """Raises InvalidConfig, with the name and what would be right."""
        try:
            return self.read(text)
        except ValueError as error:
            raise InvalidConfig(f"{self.name}: {text!r} is not valid; it must be {error}.") from None

    def read(self, text: str) -> Value:
        """Raises ValueError, with what would be right."""
        value = _PARSERS[self.type](text.strip())
        right = self.rule(value)
        if right is not None:
            raise ValueError(right)
        return value


def at_least(low: float) -> Rule:
    return Range(f"at least {low}", lambda value: _number(value) >= low, low)


def between(low: float, high: float) -> Rule:
    return Range(f"from {low} to {high}", lambda value: low <= _number(value) <= high, low, high)


def one_of(*words: str) -> Rule:
    return Range(f"one of {', '.join(words)}", lambda value: value in words, choices=words)


def some_of(*words: str) -> Rule:
    def holds(value: Value) -> bool:
        assert isinstance(value, tuple)
        return set(value) <= set(words) and len(set(value)) == len(value)

    right = f"empty, or one or more of {', '.join(words)} with commas between"
    return Range(right, holds, choices=words)


def anything(value: Value) -> str | None:
    return None


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: asks for the nearest known one, if one is near."""
    import difflib  # seldom needed, and every start would pay for it

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else "."


def _number(value: Value) -> float:
    assert isinstance(value, (int, float))
    return value


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def _integer(maximum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        # int() alone would also take '1_000' and other scripts' digits, which no Kafka client can mean.
        if not (text.isascii() and text.lstrip("+-").isdigit()):
            raise ValueError("a whole number")
        value = int(text) if len(text) <= 20 else maximum + 1
        if abs(value) > maximum:
            raise ValueError(f"a whole number up to {maximum}")
        return value

    return parse


def _double(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("a number") from None
    if value != value:
        raise ValueError("a number")
    return value


def _list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",")) if text else ()


_PARSERS: Final[Mapping[ConfigType, Callable[[str], Value]]] = {
    ConfigType.BOOLEAN: _boolean,
    ConfigType.STRING: str,
    ConfigType.INT: _integer(INT_MAX),
    ConfigType.SHORT: _integer(2**15 - 1),
    ConfigType.LONG: _integer(LONG_MAX),
    ConfigType.DOUBLE: _double,
    ConfigType.LIST: _list,
}
