"""A pipeline as a file declares it.

    name = "shop"                       by default the file's
    bootstrap = "127.0.0.1:9092"        unless the command says another
    state = "state/shop"                checkpoints and status; beside the file by default
    every = "10s"                       how often each step looks for something new

    [archive.orders]                    topics as they are
    topics = ["orders"]
    to = "lake/orders"

    [merge.customers]                   a topic's keys as they are now
    topic = "customers"
    to = "lake/customers"

    [table.paid]                        what SQL makes of other steps
    sql = "select … from orders"
    to = "lake/paid"

    [topic.large-orders]                the same, into a topic
    sql = "select … as key, … as value from paid"

A step is known to others by its name. Directories are relative to the file. What is wrong is told with its
line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal

from postroad.pipelines.errors import PipelineError

Kind = Literal["archive", "merge", "table", "topic"]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_DURATION: Final = re.compile(r"(\d+)(ms|s|m|h|d)")
_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_QUOTED: Final = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_INPUT: Final = re.compile(r"\b(?:from|join)\s+(`[^`]+`|[\w.-]+)(?!\s*\()(?![\w.-])", re.IGNORECASE)
# FROM that has nothing to do with tables.
_OTHER_FROM: Final = re.compile(
    r"\b(?:extract|trim|substring|substr|overlay)\s*\([^()]*\)|\bdistinct\s+from\b", re.IGNORECASE
)
_NAMED_QUERY: Final = re.compile(r"(?:\bwith|,)\s+(`[^`]+`|\w+)\s+as\s*\(", re.IGNORECASE)


@dataclass(frozen=True)
class Step:
    """One step. `inputs` are the names of steps that its SQL reads; `settings` are the keys of its kind."""

    name: str
    kind: Kind
    settings: Mapping[str, Any]
    inputs: tuple[str, ...] = ()

    @property
    def is_replaced(self) -> bool:
        """Whether its table has other rows each time, instead of more: then nobody can follow it."""
        return self.kind == "merge" or self.settings.get("mode") == "complete"


@dataclass(frozen=True)
class Pipeline:
    """Steps are in an order in which each comes after what it reads."""

    name: str
    bootstrap: str | None
    state: Path
    every_s: float
    steps: tuple[Step, ...]

    def step(self, name: str) -> Step:
        return next(step for step in self.steps if step.name == name)

    def directory(self, step: Step) -> Path:
        """Where the step keeps its checkpoint and its status."""
        return self.state / step.name


@dataclass(frozen=True)
class _Key:
    """What a key may be; `why` says it to people."""

    is_right: Callable[[Any], bool]
    why: str
    is_required: bool = False


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_duration(value: Any) -> bool:
    return isinstance(value, str) and _DURATION.fullmatch(value) is not None


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _is_options(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str | int | bool) for each in value.values())


def _one_of(*words: str) -> _Key:
    return _Key(lambda value: value in words, f"is one of: {', '.join(words)}")


_TEXT: Final = _Key(_is_text, "is a text")
_REQUIRED: Final = _Key(_is_text, "is a text", is_required=True)
_FLAG: Final = _Key(lambda value: isinstance(value, bool), "is true or false")
_EVERY: Final = _Key(_is_duration, "is a duration such as 500ms, 10s, 15m, 2h or 7d")
_OPTIONS: Final = _Key(_is_options, "is a table of options")
_COUNT: Final = _Key(lambda value: type(value) is int and value > 0, "is a whole number above 0")
_NAMES: Final = _Key(_are_texts, "is a list of texts, with one at least")

_TOP: Final = {"name": _TEXT, "bootstrap": _TEXT, "state": _TEXT, "every": _EVERY}
_ICEBERG: Final = {"catalog": _TEXT, "table": _TEXT}
KEYS: Final[dict[str, dict[str, _Key]]] = {
    "archive": {
        "topics": _Key(_are_texts, "is a list of topics, with one at least", is_required=True),
        "to": _REQUIRED,
        "format": _one_of("delta", "iceberg", "parquet"),
        "json-columns": _FLAG,
        "json-schema": _TEXT,
        "bad-rows": _one_of("keep", "fail", "drop", "deadletter"),
        "dead-letter-topic": _TEXT,
        "optimize": _FLAG,
        "retention": _EVERY,
        "every": _EVERY,
        "options": _OPTIONS,
        **_ICEBERG,
    },
    "merge": {
        "topic": _REQUIRED,
        "to": _REQUIRED,
        "format": _one_of("delta", "iceberg"),
        "values": _one_of("json", "debezium", "bytes"),
        "key": _NAMES,
        "json-schema": _TEXT,
        "buckets": _COUNT,
        "bad-rows": _one_of("fail", "drop"),
        "every": _EVERY,
        **_ICEBERG,
    },
    "table": {
        "sql": _REQUIRED,
        "to": _REQUIRED,
        "format": _one_of("delta", "iceberg"),
        "mode": _one_of("append", "complete"),
        "every": _EVERY,
        **_ICEBERG,
    },
    "topic": {"sql": _REQUIRED, "topic": _TEXT, "every": _EVERY, "options": _OPTIONS},
}


def read(path: Path) -> Pipeline:
    """The pipeline that the file declares. PipelineError says what is wrong, and in which line."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path} can't be read: {error}") from None
    return parse(text, path)


def parse(text: str, path: Path) -> Pipeline:
    """The same of a text; `path` is where it is from, and what directories are relative to."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PipelineError(f"{path}: {error}") from None
    return _Reader(text, path, found).pipeline()


def seconds(duration: str) -> float:
    """A duration as the file has it."""
    number, unit = _DURATION.fullmatch(duration).groups()  # type: ignore[union-attr]  # it was checked
    return int(number) * _UNITS_S[unit]


@dataclass
class _Reader:
    text: str
    path: Path
    found: Mapping[str, Any]
    steps: dict[str, Step] = field(default_factory=dict)

    def pipeline(self) -> Pipeline:
        found = self.found
        self._check(found, {**_TOP, **dict.fromkeys(KEYS, _Key(lambda value: True, ""))}, ())
        for kind, name, settings in self._declared():
            self._check(settings, KEYS[kind], (kind, name))
            if name in self.steps:
                raise self._wrong((kind, name), None, f"another step is named {name}, too")
            inputs = tuple(_inputs(settings["sql"])) if "sql" in settings else ()
            self.steps[name] = Step(name, kind, self._whole(settings), inputs)
        if not self.steps:
            raise PipelineError(f"{self.path}: there is no step: begin with [archive.NAME]")
        for step in self.steps.values():
            self._check_inputs(step)
        base = self.path.absolute().parent
        name = found.get("name", self.path.stem)
        state = base / Path(found.get("state", f"{self.path.stem}.state")).expanduser()
        every_s = seconds(found.get("every", "10s"))
        return Pipeline(name, found.get("bootstrap"), state, every_s, tuple(self._ordered()))

    def _declared(self) -> Iterator[tuple[Kind, str, dict[str, Any]]]:
        kinds: tuple[Kind, ...] = ("archive", "merge", "table", "topic")
        for kind in kinds:
            steps = self.found.get(kind, {})
            if not isinstance(steps, dict) or not all(isinstance(each, dict) for each in steps.values()):
                raise self._wrong((), kind, f"steps are tables with names: [{kind}.NAME]")
            for name, settings in steps.items():
                if not _NAME.fullmatch(name):
                    raise self._wrong(
                        (kind, name), None, "a name has letters, digits, - and _, and begins with a letter"
                    )
                yield kind, name, settings

    def _check(self, settings: Mapping[str, Any], keys: Mapping[str, _Key], section: Sequence[str]) -> None:
        for name, value in settings.items():
            if name not in keys:
                near = get_close_matches(name, keys, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"it may be: {', '.join(keys)}"
                raise self._wrong(section, name, f"there is no {name!r} here; {hint}")
            if not keys[name].is_right(value):
                raise self._wrong(section, name, f"{name!r} {keys[name].why}")
        for name, key in keys.items():
            if key.is_required and name not in settings:
                raise self._wrong(section, None, f"it has no {name!r}")

    def _whole(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """With directories as they are from anywhere."""
        whole = dict(settings)
        if "to" in whole and "://" not in whole["to"]:
            whole["to"] = str(self.path.absolute().parent / Path(whole["to"]).expanduser())
        return whole

    def _check_inputs(self, step: Step) -> None:
        for name in step.inputs:
            source = self.steps.get(name)
            section = (step.kind, step.name)
            if source is None:
                near = get_close_matches(name, self.steps, 1)
                hint = f"did you mean {near[0]}?" if near else f"steps are: {', '.join(self.steps)}"
                raise self._wrong(section, "sql", f"it reads {name}, and no step has that name; {hint}")
            if source.kind == "topic":
                raise self._wrong(
                    section, "sql", f"it reads {name}, which is a topic: archive that, and read the archive"
                )
        if "sql" in step.settings and all(self.steps[name].is_replaced for name in step.inputs):
            what = "only tables that are replaced as a whole" if step.inputs else "no other step"
            raise self._wrong((step.kind, step.name), "sql", f"it reads {what}: nothing tells it when to run")

    def _ordered(self) -> Iterator[Step]:
        """Each step after those that it reads."""
        done: set[str] = set()
        under_way: list[str] = []

        def visit(step: Step) -> Iterator[Step]:
            if step.name in done:
                return
            if step.name in under_way:
                circle = [*under_way[under_way.index(step.name) :], step.name]
                raise self._wrong(
                    (step.kind, step.name), None, f"steps read each other: {' → '.join(circle)}"
                )
            under_way.append(step.name)
            for name in step.inputs:
                yield from visit(self.steps[name])
            under_way.pop()
            done.add(step.name)
            yield step

        for step in self.steps.values():
            yield from visit(step)

    def _wrong(self, section: Sequence[str], key: str | None, why: str) -> PipelineError:
        label = f"[{'.'.join(section)}] " if section else ""
        return PipelineError(f"{self.path}, line {_line(self.text, section, key)}: {label}{why}")


def _inputs(sql: str) -> list[str]:
    """The names that stand where SQL has tables, without those that the query makes itself."""
    plain = _QUOTED.sub(lambda found: " " if found[0].startswith(("--", "/*")) else "''", sql)
    plain = _OTHER_FROM.sub(" ", plain)
    own = {found.strip("`").lower() for found in _NAMED_QUERY.findall(plain)}
    names = (found.strip("`") for found in _INPUT.findall(plain))
    return list(dict.fromkeys(name for name in names if name.lower() not in own))


def _line(text: str, section: Sequence[str], key: str | None) -> int:
    """The line in which a key of a section stands, or else the section's heading, or the first."""
    lines = text.splitlines()
    begin = 0
    if section:
        name = r"\s*\.\s*".join(rf"[\"']?{re.escape(part)}[\"']?" for part in section)
        heading = re.compile(rf"\s*\[\s*{name}\s*[\].]")
        begin = next((number for number, line in enumerate(lines) if heading.match(line)), 0)
    if key is not None:
        wanted = re.compile(rf"\s*(?:[\"']?{re.escape(key)}[\"']?\s*[=.]|\[+\s*[\"']?{re.escape(key)}\b)")
        first = begin + 1 if section else 0
        for number in range(first, len(lines)):
            if wanted.match(lines[number]):
                return number + 1
            if section and lines[number].lstrip().startswith("["):
                break
    return begin + 1
