"""The configs of a topic or a subscription: what they mean, which values they take, and a form for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from postroad.gateway.console import reading, widgets, words
from postroad.gateway.console.forms import KEY, FormMaker
from postroad.gateway.console.page import Form
from postroad.gateway.console.visit import Visit
from postroad.gateway.rest import configs
from postroad.gateway.rest.configs import ConfigDetails
from postroad.markup import Html, Node, tag

RESET: Final = "to-default"
COLUMNS: Final = ("Config", "Value", "Default", "Values", "")


async def config_section(
    visit: Visit, of: str, values: Mapping[str, str | None], overrides: Sequence[str], may_alter: bool
) -> Html:
    """Those that were set come first; what has no effect here is left out."""
    if not values:
        return Html("")
    known = await visit.call(configs.list_configs, {"of": of})
    shown = [each for each in known.configs if each.has_effect and each.name in values]
    shown.sort(key=lambda each: (each.name not in overrides, each.name))
    rows = [(each.name, _row(visit, each, values, overrides, may_alter)) for each in shown]
    columns = COLUMNS if may_alter and visit.changes else COLUMNS[:-1]
    return widgets.section("Configs", widgets.still_table("configs", columns, rows, caption="Configs"))


def changes_of(form: Form) -> dict[str, str | None]:
    """The config with its new value; None resets it. Raises Refused."""
    name = form.get(KEY, "")
    if not name:
        raise reading.refused("Which config is to be changed?")
    return {name: None if RESET in form else form.get("value", "").strip()}


def difference(changes: Mapping[str, str | None], before: Mapping[str, str | None]) -> Html:
    rows = [
        [name, said(name, before.get(name)), "its default" if value is None else said(name, value)]
        for name, value in changes.items()
    ]
    return widgets.plain_table(("Config", "Now", "Afterwards"), rows)


def said(name: str, value: str | None) -> str:
    """The value, and what it is in a person's units."""
    if value is None:
        return words.NONE
    if value == "":
        return "(empty)"
    if value.lstrip("-").isdecimal():
        number = int(value)
        if name.endswith(".ms"):
            return f"{value} ({words.span_ms(number)})" if number >= 0 else value
        if name.endswith(".bytes") and number >= 1024:
            return f"{value} ({words.size(number)})"
    return value


def _row(
    visit: Visit, config: ConfigDetails, values: Mapping[str, str | None], overrides: Sequence[str],
    may_alter: bool,
) -> list[Node]:  # fmt: skip
    name = config.name
    is_set = [" ", widgets.badge("set", "good")] if name in overrides else None
    cells: list[Node] = [
        [tag("strong", name), tag("p", config.meaning, class_="hint")],
        [said(name, values.get(name)), is_set],
        said(name, config.default),
        config.range or config.type,
    ]
    if may_alter and visit.changes:
        cells.append(_form(visit, config, values.get(name) or "", name in overrides))
    return cells


def _form(visit: Visit, config: ConfigDetails, value: str, is_set: bool) -> Html:
    form = visit.form("configs", config.name)
    return form.dialog(
        "Change…", config.name, tag("p", config.meaning), _field(form, config, value),
        form.check(RESET, f"Back to the default: {said(config.name, config.default)}") if is_set else None,
        submit="Show what changes", label_for=config.name,
    )  # fmt: skip


def _field(form: FormMaker, config: ConfigDetails, value: str) -> Html:
    if config.choices and config.type != "list":
        return form.choice("value", "Value", [(each, each) for each in config.choices], value)
    return form.text("value", "Value", value, hint=config.range or config.type, spellcheck="false")
