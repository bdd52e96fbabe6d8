"""The form that a message is written in, and the message that it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from postroad.gateway.console import reading
from postroad.gateway.console.page import Form
from postroad.gateway.console.visit import Visit
from postroad.markup import Html, tag

TEXT, JSON, BASE64, TOMBSTONE = "text", "json", "base64", "null"
KINDS: Final = (
    (TEXT, "text"),
    (JSON, "JSON, as it is written"),
    (BASE64, "bytes, in base64"),
    (TOMBSTONE, "nothing: a tombstone"),
)


def publish_dialog(
    visit: Visit, topic: str, given: Mapping[str, str] | None = None, label: str = "Publish…", key: str = ""
) -> Html:
    """`given`: what stands in the fields, by name."""
    form = visit.form("publish", key)
    start = given or {}
    return form.dialog(
        label, f"Publish to {topic}",
        form.text("key", "Key", start.get("key", ""), hint="Empty: none."),
        form.choice("kind", "The value is", KINDS, start.get("kind", TEXT)),
        form.area("value", "Value", start.get("value", ""), rows="8"),
        form.area(
            "headers", "Headers", start.get("headers", ""), rows="3",
            hint="One a line: name=value. May be empty.",
        ),
        tag(
            "div",
            form.number("partition", "Partition", min="0", hint="Empty: its key decides."),
            form.text("delay", "Delay", hint="Such as 30s, 15m or 2h; for subscriptions only."),
            class_="pair",
        ),
        submit="Publish", wide=True,
    )  # fmt: skip


def message_of(form: Form) -> dict[str, Any]:
    """The message as REST takes it. Raises Refused."""
    message: dict[str, Any] = {"value": value_of(form)}
    if form.get("key"):
        message["key"] = _bytes(form["key"])
    pairs = header_pairs(form.get("headers", ""))
    if pairs:
        message["headers"] = pairs
    if form.get("partition", "").strip():
        message["partition"] = reading.whole_number(form["partition"], "Partition")
    if form.get("delay", "").strip():
        message["delay_ms"] = reading.span_ms(form["delay"], "Delay")
    return message


def value_of(form: Form) -> Any:
    """Raises Refused."""
    # A form's line ends are CR LF, whatever was typed.
    kind, text = form.get("kind", TEXT), form.get("value", "").replace("\r\n", "\n")
    if kind == TOMBSTONE:
        return None
    if kind == BASE64:
        return {"base64": text.strip()}
    return reading.json_of(text, "Value") if kind == JSON else text


def header_pairs(text: str) -> list[list[Any]]:
    """Several of one name are allowed, in order. Raises Refused."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, is_one, value = line.partition("=")
        if not is_one:
            raise reading.refused(f"Headers: {line!r} is not of the form name=value.")
        found.append([name.strip(), _bytes(value)])
    return found


def header_lines(headers: Sequence[Sequence[Any]]) -> str:
    """Headers as the form has them; bytes as `base64:…`."""
    return "\n".join(f"{name}={_text(value)}" for name, value in headers)


def _bytes(text: str) -> Any:
    marked, is_marked, rest = text.partition("base64:")
    return {"base64": rest} if is_marked and not marked else text


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"base64:{value.base64}"
