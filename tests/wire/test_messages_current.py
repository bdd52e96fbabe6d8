"""What is committed is what the generator writes."""

from __future__ import annotations

from tools import generate_messages


def test_generated_modules_are_current() -> None:
    assert generate_messages.stale(generate_messages.generate()) == [], "run `make messages`"


def test_generating_twice_gives_the_same_text() -> None:
    assert generate_messages.generate() == generate_messages.generate()
