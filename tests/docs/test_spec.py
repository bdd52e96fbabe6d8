"""The model of replication (docs/spec) fits together: cases, model, page. `make spec` has TLC check it."""

from __future__ import annotations

import re

import pytest

from docs.spec.cases import CASES
from docs.spec.run import MODEL, Result, configuration, read
from docs.spec.trace import steps

from .markdown import rows

TEXT = MODEL.read_text()
PAGE = MODEL.with_name("README.md").read_text()
MUTATIONS = set(re.findall(r'Has\("(\w+)"\)', TEXT))

PASSED = """\
Model checking completed. No error has been found.
319653 states generated, 66727 distinct states found, 0 states left on queue.
The depth of the complete state graph search is 30.
"""
VIOLATED = """\
Error: Invariant NoLoss is violated.
Error: The behavior up to this point is:
State 1: <Initial predicate>
/\\ log = [m |-> <<>>]
/\\ up = (r1 :> TRUE)

State 2: <Produce line 254, col 3 to line 258, col 9 of module Postroad>
/\\ log = [m |->
  <<1>>]
/\\ up = (r1 :> TRUE)

1,204 states generated, 311 distinct states found, 90 states left on queue.
"""
STUCK = "Error: Deadlock reached.\n"
BACKWARDS = "Error: Action property WatermarkRises is violated.\n"
UNFINISHED = "Progress(12) at 2026-01-01 12:00:00: 5 states generated, 4 distinct states found\nTIME OUT\n"


def test_each_rule_of_the_model_is_taken_away_by_some_case() -> None:
    assert {name for case in CASES.values() for name in case.mutations} == MUTATIONS


def test_page_names_every_rule_and_every_invariant() -> None:
    table = rows(PAGE, "name", "the rule that it takes away")
    assert {name for row in table for name in re.findall(r"`(\w+)`", row[0])} == MUTATIONS
    checked = {name for case in CASES.values() for name in (*case.checked, *case.properties)}
    assert {row[0].strip("`") for row in rows(PAGE, "name", "what always holds")} == checked


def test_invariants_are_those_of_the_model() -> None:
    for case in CASES.values():
        for name in (*case.checked, *case.properties):
            assert re.search(rf"^{name} ==", TEXT, re.MULTILINE), name


def test_configuration_sets_every_constant_of_the_model() -> None:
    declared = re.search(r"^CONSTANTS (.*?)^VARIABLES", TEXT, re.MULTILINE | re.DOTALL)
    assert declared
    constants = set(re.findall(r"\w+", re.sub(r"\\\*.*", "", declared[1])))
    for case in CASES.values():
        replicas = {f"r{number}" for number in range(1, case.replicas + 1)}
        assert set(re.findall(r"^  (\w+) =", configuration(case), re.MULTILINE)) == constants | replicas


@pytest.mark.parametrize(
    ("output", "result"),
    [
        (PASSED, Result("pass", False, "66727", "319653", "30")),
        (VIOLATED, Result("NoLoss", True, "311", "1,204", steps=2)),
        (STUCK, Result("Deadlock", True)),
        (BACKWARDS, Result("WatermarkRises", True)),
        (UNFINISHED, Result("unfinished", False, "4", "5")),
        ("java.lang.OutOfMemoryError\n", Result("ERROR", False)),
    ],
    ids=["passed", "violated", "stuck", "backwards", "unfinished", "broken"],
)
def test_what_tlc_prints_is_understood(output: str, result: Result) -> None:
    assert read(output) == result


def test_only_a_finished_search_is_a_pass_and_only_a_counterexample_catches_a_mutant() -> None:
    rules, mutant = CASES["os-kill1"], CASES["m-shrinkEarly"]
    assert [read(text).fits(rules) for text in (PASSED, VIOLATED, UNFINISHED, "")] == [
        True,
        False,
        False,
        False,
    ]
    assert [read(text).fits(mutant) for text in (PASSED, VIOLATED, UNFINISHED, "")] == [
        False,
        True,
        False,
        False,
    ]


def test_trace_shows_what_each_step_changed() -> None:
    assert list(steps(VIOLATED)) == ["State 1 Initial", "State 2 Produce", "      log = [m |-> <<1>>]"]
