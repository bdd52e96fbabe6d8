from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.errors import InvalidRegularExpression
from postroad.groups.regex import matcher


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders", ["orders"], ["orders2", "my-orders", ""]),
        ("^orders$", ["orders"], ["orders2"]),
        ("logs-.*", ["logs-", "logs-a.b"], ["log", "xlogs-"]),
        (r"a\.b", ["a.b"], ["axb"]),
        ("[a-c]+[^0-9]?", ["abc", "ax", "c"], ["", "a1", "dx"]),
        ("[]x-]+", ["]", "x-"], ["a"]),
        ("(?:eu|us)-(orders|bills)", ["eu-orders", "us-bills"], ["eu-", "orders"]),
        ("^a|b$", ["a", "b"], ["ab"]),
        ("(^a|^b)(c$|d)", ["ac", "bd"], ["c", "cd"]),
        ("a^b|a$b|x(^y)|(x$)y", [], ["ab", "xy", "a", "x"]),
        ("^^a$$|^$", ["a", ""], ["b"]),
        (r"\d{2,3}", ["12", "123"], ["1", "1234"]),
        (r"\w+\W\S", ["a_1.x"], ["a"]),
        ("x{2}", ["xx"], ["x", "xxx"]),
        ("(ab){2,}", ["abab", "ababab"], ["ab"]),
        ("x{0}y", ["y"], ["xy"]),
        ("a*?b+?", ["b", "aabb"], ["a"]),
        ("", [""], ["a"]),
        ("(a|)b", ["ab", "b"], ["a"]),
    ],
)
def test_pattern_matches_whole_names(pattern: str, matching: list[str], others: list[str]) -> None:
    assert [name for name in matching if not matcher(pattern).matches(name)] == []
    assert [name for name in others if matcher(pattern).matches(name)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "a)", "[", "[a", "[z-a]", "*", "+a", "a**", "a{2}{3}", "a{3,2}", "a{1001}", "a{x}", "{",
        r"\1", r"(a)\1", "(?=a)", "(?!a)", "(?<n>a)", "(?i)a", r"\bx", r"\pL", "[[:alpha:]]",
        "\\",
        "x" * 1025, "((((a{30}){30}){30}){30})", "(" * 60 + ")" * 60,
    ],
)  # fmt: skip
def test_pattern_outside_the_subset_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRegularExpression):
        matcher(pattern)


@pytest.mark.parametrize(
    "pattern", ["(a|a)*b", "(a*)*b", "a*a*a*a*a*a*a*a*b", "(a|aa)+$", "(.*.*)*x", "(a?){100}a{100}"]
)
def test_pattern_that_backtracking_would_choke_on_is_quick(pattern: str) -> None:
    name = "a" * 249 + "c"
    assert not matcher(pattern).matches(name)


_atoms = st.sampled_from(["^", "$", "a", "b", ".", "[ab]", "[^a]", r"\.", r"\d", "c"])
_patterns = st.recursive(
    _atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: "(" + "|".join(parts) + ")"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}"])).map(
            lambda p: f"(?:{p[0]}){p[1]}"
        ),
    ),
    max_leaves=8,
)


@given(_patterns, st.lists(st.text("ab.c1", max_size=8), max_size=8))
@settings(max_examples=150)
def test_patterns_agree_with_the_re_module(pattern: str, names: list[str]) -> None:
    expected = [re.fullmatch(pattern, name) is not None for name in names]
    assert [matcher(pattern).matches(name) for name in names] == expected


@given(st.text("ab(|)[]*+?{}12,^$\\.:-d", max_size=20), st.text("ab1", max_size=5))
@settings(max_examples=150)
def test_any_text_is_a_pattern_or_refused(pattern: str, name: str) -> None:
    with contextlib.suppress(InvalidRegularExpression):
        matcher(pattern).matches(name)
