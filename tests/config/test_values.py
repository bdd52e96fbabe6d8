"""What a value may look like."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.config.values import UNLIMITED, ValueKind, choice, duration, number, path, size, switch, text


@pytest.mark.parametrize(
    ("given_text", "ms"),
    [
        ("500ms", 500),
        ("30s", 30_000),
        ("10m", 600_000),
        ("12h", 43_200_000),
        ("7d", 604_800_000),
        ("1.5s", 1500),
        (" 2 H ", 7_200_000),
        ("250", 250),
        ("0", 0),
    ],
)
def test_durations_have_units(given_text: str, ms: int) -> None:
    assert duration(0).read(given_text) == ms


@pytest.mark.parametrize(
    ("given_text", "count"),
    [
        ("64KiB", 65536),
        ("100MiB", 104_857_600),
        ("1GiB", 1 << 30),
        ("2TiB", 2 << 40),
        ("10B", 10),
        ("64KB", 64_000),
        ("1.5MB", 1_500_000),
        ("100mib", 104_857_600),
        ("123", 123),
    ],
)
def test_sizes_have_units(given_text: str, count: int) -> None:
    assert size(0).read(given_text) == count


@pytest.mark.parametrize(
    "given_value",
    ["", "d", "7 days", "-1d", "1.0001s", "1e3", "٣s", "5K", True, None, 1.5, [], "9" * 50 + "d"],
)
def test_what_is_no_quantity_is_refused_with_examples(given_value: object) -> None:
    with pytest.raises(ValueError, match="500ms, 30s, 10m, 7d"):
        duration(0).read(given_value)


def test_bounds_are_told() -> None:
    with pytest.raises(ValueError, match="a whole number, from 0 to 65535"):
        number(0, 65535).read(65536)
    with pytest.raises(ValueError, match=r"at least -1 \(-1: no limit\)"):
        size(UNLIMITED).read("-2")
    assert size(UNLIMITED).read("-1") == UNLIMITED


@pytest.mark.parametrize(("word", "value"), [("true", True), ("Yes", True), ("0", False), ("off", False)])
def test_switches_know_the_usual_words(word: str, value: bool) -> None:
    assert switch().read(word) is value


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        (switch(), "perhaps", "true or false"),
        (switch(), 1, "true or false"),
        (choice("sync", "os"), "never", "one of sync, os"),
        (text(), "two\nlines", "one line"),
        (text(), 5, "a text"),
        (path(), "", "a path"),
        (path(), "a\0b", "a path"),
        (path(), "~no-such-user/data", "a user of this machine"),
    ],
)
def test_other_wrong_values_are_refused(kind: ValueKind, wrong: object, right: str) -> None:
    with pytest.raises(ValueError, match=right):
        kind.read(wrong)


@given(st.integers(0, 2**62))
def test_a_friendly_note_means_the_same_value(value: int) -> None:
    for kind in (duration(0), size(0)):
        note = kind.note(value)
        assert kind.read(note or value) == value


@given(st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=1))
def test_texts_survive_toml(value: str) -> None:
    for kind in (text(),) if value.startswith("~") else (text(), path()):  # some user's home, or nobody's
        read = kind.read(value)
        assert kind.read(tomllib.loads(f"x = {kind.toml(read)}")["x"]) == read


def test_a_path_may_begin_with_the_home_directory() -> None:
    assert path().read("~/data") == Path.home() / "data"
