"""Forms: how an action asks for what it needs, and shows what came of it.

F1 A form has the token of the session it was made for; without it nothing is done (`sessions.py`).
F2 What was typed stays there when the action fails, with the reason beside it.
F3 What is hard to undo is shown in numbers first; a second press, with nothing changed, does it (`Review`).
F4 Each form can show what it is about to do as commands, without doing it (`Visit`, V2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from postroad.gateway.console.commands import Command
from postroad.gateway.console.payloads import spelled
from postroad.gateway.rest.problems import Problem
from postroad.markup import Html, Node, tag

if TYPE_CHECKING:
    from postroad.gateway.console.visit import Visit

ACTION: Final = "do"
TOKEN: Final = "token"
SHOW: Final = "show"  # with COMMAND: only say how it is done
COMMAND: Final = "command"
# Which of several forms of the same action it was. Not `form`: a field called so hides the form from scripts.
KEY: Final = "which"
CONFIRMED: Final = "confirmed"  # the digest of what was looked over
OWN_PASSWORD: Final = (
    "own_password"  # the visitor's; it is taken out of the form before anything else is done
)
_NO_CONTENT: Final = frozenset({TOKEN, SHOW, CONFIRMED})


class Review(NamedTuple):
    """What an action is about to do, to be looked over before it is done; the label of the button for it."""

    label: str
    effect: Node
    digest: str
    danger: bool = False


def digest_of(form: Mapping[str, str]) -> str:
    """What was looked over counts for a form with the same content only."""
    content = sorted((name, value) for name, value in form.items() if name not in _NO_CONTENT)
    return hashlib.sha256(repr(content).encode(errors="surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True)
class Outcome:
    """What came of an action, for the page that is shown afterwards."""

    action: str
    key: str = ""
    form: Mapping[str, str] = field(default_factory=dict)
    done: str = ""
    body: Node = None
    problem: Problem | None = None
    command: Command | None = None
    review: Review | None = None

    @property
    def kind(self) -> str:
        if self.command is not None:
            return "command"
        if self.review is not None:
            return "review"
        return "failed" if self.problem is not None else "done"


class FormMaker:
    """The parts of one form. `key` tells forms of the same action on one page apart."""

    def __init__(self, visit: Visit, action: str, key: str = "") -> None:
        self._visit = visit
        self._action = action
        self._key = key
        self._id = f"{action}-{key}" if key else action
        outcome = visit.outcome
        is_mine = outcome is not None and (outcome.action, outcome.key) == (action, key)
        self._outcome = outcome if is_mine else None

    # --- fields

    def text(
        self, name: str, label: str, value: str = "", *, hint: str = "", type_: str = "text", **more: object
    ) -> Html:
        field_ = tag(
            "input", id=self._field(name), name=name, type=type_, value=self._given(name, value),
            autocomplete="off", aria_describedby=self._hint_id(name, hint), **more,
        )  # fmt: skip
        return self._labelled(name, label, field_, hint)

    def number(self, name: str, label: str, value: object = "", *, hint: str = "", **more: object) -> Html:
        return self.text(name, label, str(value), hint=hint, type_="number", **more)

    def area(self, name: str, label: str, value: str = "", *, hint: str = "", **more: object) -> Html:
        # A browser drops a line feed that comes first.
        field_ = tag(
            "textarea", "\n" + self._given(name, value), id=self._field(name), name=name, spellcheck="false",
            aria_describedby=self._hint_id(name, hint), **more,
        )  # fmt: skip
        return self._labelled(name, label, field_, hint)

    def choice(
        self, name: str, label: str, options: Sequence[tuple[str, str]], value: str = "", *, hint: str = ""
    ) -> Html:
        given = self._given(name, value)
        field_ = tag(
            "select",
            [tag("option", text, value=each, selected=each == given) for each, text in options],
            id=self._field(name), name=name, aria_describedby=self._hint_id(name, hint),
        )  # fmt: skip
        return self._labelled(name, label, field_, hint)

    def check(self, name: str, label: str, checked: bool = False) -> Html:
        if self._outcome is not None and self._outcome.kind != "done":
            checked = name in self._outcome.form
        box = tag("input", id=self._field(name), name=name, type="checkbox", value="yes", checked=checked)
        return tag("p", tag("label", box, " ", label), class_="check")

    def own_password(self) -> Html:
        """For what nodes are asked in person (`rest/in_person.py`). What was typed is never written back."""
        if not self._visit.access.is_guarded:
            return Html("")
        hint = "Nodes are asked in your name. The password is not kept."
        field_ = tag(
            "input", id=self._field(OWN_PASSWORD), name=OWN_PASSWORD, type="password",
            autocomplete="current-password", aria_describedby=self._hint_id(OWN_PASSWORD, hint),
        )  # fmt: skip
        return self._labelled(OWN_PASSWORD, "Your password", field_, hint)

    def typed_name(self, name: str) -> Html:
        """The name has to be typed, for what can't be undone; `check_typed` looks at it."""
        return self.text("typed", f"Type {name} to confirm", required=True, spellcheck="false")

    # --- whole forms

    def dialog(
        self,
        label: str,
        title: str,
        *content: Node,
        submit: str = "",
        danger: bool = False,
        wide: bool = False,
        label_for: str = "",
    ) -> Html:
        """A button that opens the form; nothing at all where the console may not change anything."""
        if not self._visit.changes:
            return Html("")
        id_ = f"{self._id}-dialog"
        opener = tag(
            "button", label, type="button", popovertarget=id_, class_="danger" if danger else None,
            id=f"{self._id}-open", aria_label=f"{label} {label_for}" if label_for else None,
        )  # fmt: skip
        closer = tag(
            "button", "Cancel", type="button", popovertarget=id_, popovertargetaction="hide", class_="quiet"
        )
        inside = [
            tag("h2", spelled(title), id=f"{id_}-title"),
            *content,
            self._result(),
            tag("div", self._submit(submit or label, danger), self._show_command(), closer, class_="buttons"),
        ]
        dialog = tag(
            "div", self._form(inside), id=id_, popover="auto", role="dialog",
            class_="dialog wide" if wide else "dialog", aria_labelledby=f"{id_}-title",
        )  # fmt: skip
        return tag("span", opener, dialog, class_="action")

    def button(self, label: str, *content: Node, danger: bool = False, label_for: str = "") -> Html:
        """A form that is one button, for what can be undone or repeated without harm."""
        if not self._visit.changes:
            return Html("")
        return self._form([*content, self._submit(label, danger, label_for), self._result()], "inline")

    def panel(self, *content: Node, submit: str, danger: bool = False) -> Html:
        """A form that stands open on the page."""
        if not self._visit.changes:
            return Html("")
        buttons = tag("div", self._submit(submit, danger), self._show_command(), class_="buttons")
        return self._form([*content, self._result(), buttons], "panel")

    # --- helpers

    def _form(self, inside: Node, class_: str = "") -> Html:
        here = str(self._visit.request.rel_url.without_query_params("live"))
        hidden = [
            tag("input", type="hidden", name=name, value=value)
            for name, value in (
                (ACTION, self._action), (KEY, self._key), (TOKEN, self._visit.visitor.token),
            )
        ]  # fmt: skip
        htmx = {"hx-post": here, "hx-target": "#main", "hx-select": "#main", "hx-swap": "outerMorph"}
        return tag(
            "form", hidden, inside, method="post", action=here, class_=class_ or None, id=f"{self._id}-form",
            **htmx,
        )  # fmt: skip

    def _submit(self, label: str, danger: bool, label_for: str = "") -> Html:
        return tag(
            "button", label, type="submit", class_="danger" if danger else "primary",
            aria_label=f"{label} {label_for}" if label_for else None,
        )  # fmt: skip

    def _show_command(self) -> Html:
        return tag("button", "As a command", type="submit", name=SHOW, value=COMMAND, class_="quiet")

    def _result(self) -> Html:
        """What went wrong, or how it is done by hand."""
        outcome = self._outcome
        self._visit.outcome_has_form |= outcome is not None
        shown: Node = None
        if outcome is not None and outcome.problem is not None:
            shown = tag("p", outcome.problem.detail or outcome.problem.title, class_="problem", role="alert")
        elif outcome is not None and outcome.command is not None:
            lines = [line for line in (outcome.command.cli, outcome.command.curl) if line]
            shown = [tag("pre", line, class_="command", tabindex="0") for line in lines]
        elif outcome is not None and outcome.review is not None:
            shown = self._to_review(outcome.review)
        return tag("div", shown, class_="result", id=f"{self._id}-result", aria_live="polite")

    @staticmethod
    def _to_review(review: Review) -> Html:
        button = tag(
            "button", review.label, type="submit", name=CONFIRMED, value=review.digest,
            class_="danger" if review.danger else "primary",
        )  # fmt: skip
        return tag("div", review.effect, button, class_="notice warn review", role="status")

    def _given(self, name: str, value: str) -> str:
        if self._outcome is None or self._outcome.kind == "done":
            return value
        return self._outcome.form.get(name, value)

    def _field(self, name: str) -> str:
        return f"{self._id}-{name}"

    def _hint_id(self, name: str, hint: str) -> str | None:
        return f"{self._field(name)}-hint" if hint else None

    def _labelled(self, name: str, label: str, field_: Html, hint: str) -> Html:
        said = tag("small", hint, id=self._hint_id(name, hint)) if hint else None
        return tag("p", tag("label", spelled(label), for_=self._field(name)), field_, said, class_="field")
