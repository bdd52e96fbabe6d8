"""Where settings come from. A later place overrides an earlier one; each error says which place it was."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from postroad.cluster.config_definition import nearest
from postroad.config.declaration import ENVIRONMENT_PREFIX, Setting
from postroad.config.settings import SECTIONS, Settings, all_settings, declared
from postroad.errors import ConfigurationError

FILE_VARIABLE: Final = "POSTROAD_CONFIG"
# Where the command line finds a node, and who it is there: no settings of one.
CLIENT_VARIABLES: Final = ("POSTROAD_BOOTSTRAP", "POSTROAD_PROFILE")
DEFAULT: Final = "default"
COMMAND_LINE: Final = "command line"
SECURE: Final = "--secure"

Fill = Callable[[Mapping[str, Any]], Mapping[str, object]]
"""From what was given, by full name, to values for what was not."""

# Kubernetes gives every container variables for the services beside it, so a service called postroad
# brings POSTROAD_SERVICE_HOST, POSTROAD_PORT_9092_TCP and others, which are not meant for us.
_OF_KUBERNETES: Final = re.compile(
    r"POSTROAD_(\w+_)?(SERVICE_(HOST|PORT\w*)|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)\w*)"
)


class Given(NamedTuple):
    setting: Setting
    value: object
    origin: str


@dataclass(frozen=True)
class Loaded:
    """The settings in effect, and where each came from by its full name ("default" and so on)."""

    settings: Settings
    origins: Mapping[str, str]


def load(
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
    fill: Fill | None = None,
) -> Loaded:
    """Settings from all places; raises ConfigurationError.

    `file` is that of --config, else POSTROAD_CONFIG names one; `flags` go by full name, as in
    {"kafka.port": "9093"}. What none of them names may be filled in (`--secure`).
    """
    variables = os.environ if environment is None else environment
    path = file or variables.get(FILE_VARIABLE)
    origins = {setting.full_name: DEFAULT for setting in all_settings()}
    values: dict[str, Any] = {}
    for setting, value, origin in _given(path, variables, flags or {}):
        values[setting.full_name] = _read(setting, value, origin)
        origins[setting.full_name] = origin
    filled = {} if fill is None else fill(values)
    for name in filled.keys() - values.keys():
        values[name] = _read(_declared(name, SECURE), filled[name], SECURE)
        origins[name] = SECURE
    sections: dict[str, dict[str, Any]] = {}
    for full_name, value in values.items():
        section, _, name = full_name.partition(".")
        sections.setdefault(section, {})[name] = value
    return Loaded(Settings.from_sections(sections), origins)


def _given(
    path: str | Path | None, variables: Mapping[str, str], flags: Mapping[str, object]
) -> Iterator[Given]:
    if path is not None:
        yield from _from_file(Path(path))
    yield from _from_environment(variables)
    for name, value in flags.items():
        yield Given(_declared(name, COMMAND_LINE), value, COMMAND_LINE)


def _from_file(path: Path) -> Iterator[Given]:
    origin = str(path)
    for section, table in _read_toml(path).items():
        if section not in SECTIONS:
            raise ConfigurationError(f"{origin}: there is no section [{section}]{nearest(section, SECTIONS)}")
        if not isinstance(table, dict):
            raise ConfigurationError(
                f"{origin}: {section} is a section: write [{section}] above its settings."
            )
        for name, value in table.items():
            yield Given(_declared(f"{section}.{name}", origin), value, origin)


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib  # most nodes have no file

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} can't be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}.") from error


def _from_environment(variables: Mapping[str, str]) -> Iterator[Given]:
    known = {setting.environment_name: setting for setting in all_settings()}
    for name, value in sorted(variables.items()):
        if name in known:
            yield Given(known[name], value, name)
        elif (
            name.startswith(ENVIRONMENT_PREFIX)
            and name not in (FILE_VARIABLE, *CLIENT_VARIABLES)
            and not _OF_KUBERNETES.fullmatch(name)
        ):
            raise ConfigurationError(f"environment: there is no setting {name!r}{nearest(name, known)}")


def _declared(name: str, origin: str) -> Setting:
    try:
        return declared(name)
    except ConfigurationError as error:
        raise ConfigurationError(f"{origin}: {error}") from None


def _read(setting: Setting, value: object, origin: str) -> Any:
    try:
        return setting.read(value)
    except ValueError as error:
        raise ConfigurationError(
            f"{origin}: {setting.as_given(value)} is not valid; it must be {error}.{_hint(value)}"
        ) from None


def _hint(value: object) -> str:
    if isinstance(value, str) and value.startswith("tcp://"):
        return " Kubernetes sets this for a service of that name: rename it, or turn enableServiceLinks off."
    return ""
