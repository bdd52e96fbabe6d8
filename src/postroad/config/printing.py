"""Settings as people and tools read them: commented TOML, the reference page, Kafka's DescribeConfigs."""

from __future__ import annotations

from collections.abc import Iterator

from postroad.cluster import group_config, topic_config
from postroad.cluster.config_definition import ConfigEntry, ConfigSource, Definition, Synonym
from postroad.config.declaration import Setting, declarations
from postroad.config.settings import SECTIONS, all_settings
from postroad.config.sources import DEFAULT, Loaded

_INTRODUCTION = """# Configuration

Made from the declarations by `python -m postroad.config`; a test keeps it true.

Settings come from four places, a later one overriding an earlier one: the defaults below, a TOML file
(`postroad serve --config FILE`, or `POSTROAD_CONFIG=FILE`), the environment, and the command line.
`postroad config` prints all of them with the values in effect and where each came from.

Durations are in milliseconds and sizes in bytes; both may also be written as text with a unit: `"500ms"`,
`"30s"`, `"10m"`, `"12h"`, `"7d"`; `"64KiB"`, `"100MiB"`, `"1GiB"`, and in powers of ten `"64KB"`, `"100MB"`.

## Settings of the node
"""

_TOPICS = """
## Configs of topics

Set when a topic is created, or altered later, by any Kafka client or `postroad topic`. Values are written as
Kafka wants them: milliseconds, bytes, `true`, `false`, lists with commas. Where a setting of the node gives
the default, its name is in the last column.

"""

_GROUPS = """
## Configs of groups

These are configs of subscriptions, which Kafka calls share groups: any Kafka client that knows configs of
groups sets them, before or after the first member joins. Where a setting of the node gives the default, its
name is in the last column.

"""


def to_toml(loaded: Loaded) -> str:
    """All settings with their values in effect; reading it back gives the same settings."""
    lines: list[str] = []
    for name, section in SECTIONS.items():
        lines += [f"# {section.__doc__}", f"[{name}]"]
        for setting in declarations(section):
            lines += _toml_lines(setting, loaded)
        lines.append("")
    return "\n".join(lines)


def _toml_lines(setting: Setting, loaded: Loaded) -> Iterator[str]:
    value, origin = loaded.settings.get(setting.full_name), loaded.origins[setting.full_name]
    note = ", ".join(
        filter(None, [setting.kind.note(value), f"from {origin}" if origin != DEFAULT else DEFAULT])
    )
    yield f"# {setting.help}"
    yield f"{setting.name} = {setting.kind.toml(value)}  # {note}"


def reference() -> str:
    """docs/configuration.md."""
    parts = [_INTRODUCTION]
    for name, section in SECTIONS.items():
        parts.append(f"\n### [{name}]\n\n{section.__doc__}\n\n")
        parts.append("| setting | default | meaning | environment | in Kafka |\n|---|---|---|---|---|\n")
        parts += [_reference_row(setting) for setting in declarations(section)]
    parts += [_TOPICS, "| config | default | meaning | default from |\n|---|---|---|---|\n", *_topic_rows()]
    parts += [_GROUPS, "| config | default | meaning | default from |\n|---|---|---|---|\n", *_group_rows()]
    return "".join(parts)


def _reference_row(setting: Setting) -> str:
    note = setting.kind.note(setting.default)
    default = f"`{setting.kind.toml(setting.default)}`" + (f" ({note})" if note else "")
    meaning = setting.help + (f" One of {setting.kind.examples}." if setting.kind.examples else "")
    kafka = f"`{setting.kafka_name}`" if setting.kafka_name and not _is_ours(setting) else ""
    return f"| `{setting.name}` | {default} | {meaning} | `{setting.environment_name}` | {kafka} |\n"


def _topic_rows() -> Iterator[str]:
    sources = {setting.topic_config: setting.full_name for setting in all_settings() if setting.topic_config}
    for name, definition in topic_config.DEFINITIONS.items():
        source = f"`{sources[name]}`" if name in sources else ""
        yield f"{_config_row(definition)} {source} |\n"


def _group_rows() -> Iterator[str]:
    sources = {setting.group_config: setting.full_name for setting in all_settings() if setting.group_config}
    for name, definition in group_config.TABLE.definitions.items():
        source = f"`{sources[name]}`" if name in sources else ""
        yield f"{_config_row(definition)} {source} |\n"


def _config_row(definition: Definition) -> str:
    default = f"`{definition.default}`" if definition.default else ""
    return f"| `{definition.name}` | {default} | {definition.documentation} |"


def describe(loaded: Loaded) -> list[ConfigEntry]:
    """For DescribeConfigs of a node: under Kafka's name where it has one, else `postroad.section.name`.

    Secrets are left out: any Kafka client may ask."""
    return sorted(_entry(setting, loaded) for setting in all_settings())


def _entry(setting: Setting, loaded: Loaded) -> ConfigEntry:
    name = setting.kafka_name or f"postroad.{setting.full_name}"
    default = Synonym(name, setting.kafka_text(setting.default), ConfigSource.DEFAULT)
    synonyms = [default]
    if loaded.origins[setting.full_name] != DEFAULT:
        value = "" if setting.is_secret else setting.kafka_text(loaded.settings.get(setting.full_name))
        synonyms.insert(0, Synonym(name, value, ConfigSource.NODE))
    _, value, source = synonyms[0]
    return ConfigEntry(name, value, setting.kind.type, source, True, setting.help, tuple(synonyms))


def _is_ours(setting: Setting) -> bool:
    return setting.kafka_name.startswith("postroad.")
