"""HTML that can't be broken by what it shows."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from postroad.markup import Html, join, tag


class Seen(HTMLParser):
    """Elements with their attributes, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(), st.text())
def test_text_stays_text_and_attributes_stay_attributes(text: str, value: str) -> None:
    seen = Seen(tag("p", text, title=value))
    assert [name for name, _ in seen.elements] == ["p"]
    assert set(seen.elements[0][1]) == {"title"}


def test_what_a_reader_sees_is_what_was_given() -> None:
    seen = Seen(tag("p", "<b>&amp;'\"", tag("i", "x"), title="\"><script>'"))
    assert seen.text == "<b>&amp;'\"x"
    assert seen.elements == [("p", {"title": "\"><script>'"}), ("i", {})]


def test_attributes_without_a_value() -> None:
    assert tag("input", hidden=True, disabled=False, value=None, class_="a") == '<input hidden class="a">'
    assert tag("path", d="M0 0") == '<path d="M0 0"/>'


def test_markup_joined_to_text_is_text_again() -> None:
    assert not isinstance(tag("b", "x") + "<i>", Html)
    assert join([tag("b", "x"), "<i>", None, ["&"]]) == "<b>x</b>&lt;i&gt;&amp;"
