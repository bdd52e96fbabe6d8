"""Nobody finds out by salts and iterations who there is."""

from __future__ import annotations

from collections import Counter

from postroad.security.scram import ITERATIONS, SALT_BYTES
from postroad.security.strangers import Shape, Strangers

MASTER = bytes(range(32))
SHA_256 = "SCRAM-SHA-256"
OURS = Shape.of(SHA_256, 8192, b"\0" * 16)
KAFKAS = Shape.of(SHA_256, 4096, b"1nzb9vc0b6q2zq8k3y4tq0f3dh")
NAMES = [f"name-{number}" for number in range(200)]


def shapes(strangers: Strangers, names: list[str] = NAMES) -> list[Shape]:
    return [
        Shape.of(SHA_256, found.iterations, found.salt)
        for found in (strangers.verifier(MASTER, SHA_256, name) for name in names)
    ]


def test_a_stranger_looks_the_same_each_time_and_unlike_others() -> None:
    strangers = Strangers()
    found = [strangers.verifier(MASTER, SHA_256, name) for name in NAMES]
    assert found == [strangers.verifier(MASTER, SHA_256, name) for name in NAMES]
    assert len({each.salt for each in found}) == len(NAMES)
    assert {(each.iterations, len(each.salt)) for each in found} == {(ITERATIONS, SALT_BYTES)}
    assert strangers.verifier(bytes(32), SHA_256, "a") != strangers.verifier(MASTER, SHA_256, "a")


def test_where_another_tool_has_made_the_users_strangers_look_like_those() -> None:
    strangers = Strangers()
    strangers.note("shop", (KAFKAS,))
    assert set(shapes(strangers)) == {KAFKAS}
    assert strangers.verifier(MASTER, "SCRAM-SHA-512", "a").iterations == ITERATIONS  # nobody has that


def test_where_users_differ_strangers_do_and_stay_as_they_are() -> None:
    strangers = Strangers()
    strangers.note("shop", (KAFKAS,))
    strangers.note("jobs", (OURS,))
    before = shapes(strangers)
    counts = Counter(before)
    assert counts.keys() == {OURS, KAFKAS}
    assert min(counts.values()) > len(NAMES) / 4
    strangers.note("more", (KAFKAS,))
    strangers.note("jobs", (OURS,))
    assert shapes(strangers) == before
    strangers.note("jobs", ())
    after = shapes(strangers)
    assert set(after) == {KAFKAS}
    assert all(now == then for now, then in zip(after, before, strict=True) if then == KAFKAS)


def test_what_users_have_had_is_forgotten() -> None:
    strangers = Strangers()
    strangers.note("shop", (KAFKAS, Shape.of("SCRAM-SHA-512", 4096, b"x" * 26)))
    strangers.note("shop", ())
    strangers.note("nobody", ())
    assert strangers._shapes == {}
    assert strangers._of_user == {}
