"""No body, however broken, gives anything but a message or a ProtocolError, in bounded memory."""

from __future__ import annotations

import pytest

from tools.fuzz import Fuzzer, Target, all_targets

BODIES = 100_000
MEASURED = 2_000
SEED = 20_240_601


@pytest.fixture(scope="module")
def fuzzer() -> Fuzzer:
    return Fuzzer(SEED, all_targets())


def test_broken_bodies_give_only_clean_errors(fuzzer: Fuzzer) -> None:
    fuzzer.run(BODIES)
    assert fuzzer.tried == BODIES
    assert 0 < fuzzer.accepted < BODIES / 2


def test_broken_bodies_take_memory_in_proportion(fuzzer: Fuzzer) -> None:
    fuzzer.measure(MEASURED)


def _every_cut(target: Target) -> list[bytes]:
    body = max((body for body in target.bodies if len(body) < 2_000), key=len)
    return [body[:length] for length in range(len(body))]


def test_every_cut_of_a_body_is_read_or_refused(fuzzer: Fuzzer) -> None:
    for target in fuzzer.targets[::7]:
        for body in _every_cut(target):
            fuzzer.try_one(target, body)
