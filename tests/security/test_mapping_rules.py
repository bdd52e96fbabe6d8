"""Names from certificates (KIP-371): the examples of Kafka's documentation, and what holds for any rule."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.security.mapping_rules import MappingRules, subject_text

KAFKAS = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,"
    "DEFAULT"
)
WORDS = st.text(
    st.characters(categories=("L", "N"), include_characters=' ,+"\\<>;=#/'), min_size=1, max_size=12
)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "serviceuser"),
        ("CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "adminuser@admin"),
        ("OU=x,CN=Shop.A", "shop.a"),
        ("O=Example", "O=Example"),
    ],
)
def test_kafkas_examples(subject: str, name: str) -> None:
    assert MappingRules.parse(KAFKAS).name(subject) == name


def test_a_subject_that_no_rule_fits_has_no_name() -> None:
    assert MappingRules.parse("RULE:^CN=(.*)$/$1/").name("O=Example") is None


def test_a_rule_that_leaves_nothing_gives_no_name() -> None:
    assert MappingRules.parse("RULE:^CN=(.*)$/$1/").name("CN=") is None


def test_a_pattern_must_fit_the_whole_subject() -> None:
    """Else `CN=admin` anywhere in a subject would make an admin."""
    assert MappingRules.parse("RULE:CN=admin/admin/").name("CN=evil,OU=CN=admin") is None


@pytest.mark.parametrize(
    "text",
    ["RULE:a", "RULE:(/x/", "RULE:a/$1/", "RULE:a/b/X", "nonsense", "DEFAULT x", ",", "DEFAULTDEFAULT"],
)
def test_rules_that_can_not_be_read_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        MappingRules.parse(text)


@given(
    st.lists(
        st.tuples(st.sampled_from(["commonName", "organizationName", "x.y"]), WORDS), min_size=1, max_size=5
    )
)
def test_subjects_that_differ_have_names_that_differ(parts: list[tuple[str, str]]) -> None:
    """By DEFAULT: no value can look like another part of the subject."""
    text = subject_text([[part] for part in parts])
    pieces = re.split(r"(?<!\\)(?:\\\\)*,", text)
    assert len(pieces) == len(parts)


@given(WORDS)
def test_letters_are_changed_by_l_and_u_only(word: str) -> None:
    subject = f"CN={word}"
    assert MappingRules.parse("RULE:CN=(.+)/$1/").name(subject) == word
    assert MappingRules.parse("RULE:CN=(.+)/$1/L").name(subject) == word.lower()
    assert MappingRules.parse("RULE:CN=(.+)/$1/U").name(subject) == word.upper()


@given(st.lists(WORDS, min_size=1, max_size=4), WORDS)
def test_the_first_rule_that_fits_counts(names: list[str], subject: str) -> None:
    rules = [f"RULE:{re.escape(name).replace('/', chr(92) + '/')}/rule{at}/" for at, name in enumerate(names)]
    expected = f"rule{names.index(subject)}" if subject in names else subject
    assert MappingRules.parse(",".join([*rules, "DEFAULT"])).name(subject) == expected


def test_a_subject_is_written_with_its_most_specific_part_first() -> None:
    parts = ((("countryName", "CH"),), (("organizationName", "Bread, Ltd"),), (("commonName", "shop"),))
    assert subject_text(parts) == "CN=shop,O=Bread\\, Ltd,C=CH"
