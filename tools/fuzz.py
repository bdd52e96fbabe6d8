"""Throws broken bodies at every decoder: `make fuzz ARGS="--seconds 600 --seed 7"`.

A body is a valid message that was cut, changed, stretched or given an absurd length, or it is noise. The
decoder may accept it or raise ProtocolError; anything else, or memory out of proportion, is a bug. The
message of a failure has all that is needed to repeat it.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from postroad.errors import ProtocolError
from tools.generator import schema
from tools.samples import module_of, samples

# What a decoder may hold for a byte of body: an object with its lists for each of the smallest structs.
BYTES_FOR_A_BYTE_MAX = 64
BYTES_FOR_A_BODY_MAX = 16 * 1024
MEASURES_MAX = 5

_LENGTHS = (
    b"\xff\xff\xff\xff",  # -1
    b"\xff\xff\xff\xfe",  # -2
    b"\x7f\xff\xff\xff",  # the largest
    b"\x80\x00\x00\x00",  # the smallest
    b"\x7f\xff",
    b"\xff\xfe",
    b"\xff\xff\xff\xff\x0f",  # the largest varint
    b"\xff\xff\xff\xff\x7f",  # more than 32 bits
    b"\xff\xff\xff\xff\xff\xff\x01",  # longer than a varint may be
    b"\x80\x80\x80\x80\x00",  # a padded zero
)


class Found(Exception):
    """A decoder did what it must not do."""


@dataclass(frozen=True)
class Target:
    """One decoder at one version, and valid bodies to start from."""

    name: str
    version: int
    decode: Callable[[bytes, int], Any]
    bodies: list[bytes]


def all_targets(samples_for_each: int = 6) -> list[Target]:
    found = []
    for api in schema.load_all():
        for direction in api.messages:
            suffix = "" if direction == "data" else f"_{direction}"
            module = module_of(api)
            encode, decode = getattr(module, f"encode{suffix}"), getattr(module, f"decode{suffix}")
            for version in api.versions:
                made = samples(api, direction, version, samples_for_each)
                bodies = [encode(message, version) for message in made]
                found.append(Target(f"{api.module}.decode{suffix}", version, decode, bodies))
    return found


class Fuzzer:
    def __init__(self, seed: int, targets: list[Target]) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.targets = targets
        self.tried = self.accepted = 0

    def run(self, count: int) -> None:
        """`count` broken bodies, each to the decoder it was made for."""
        for _ in range(count):
            target = self.random.choice(self.targets)
            self.try_one(target, self.mutate(self.random.choice(target.bodies)))

    def try_one(self, target: Target, body: bytes) -> None:
        self.tried += 1
        try:
            target.decode(body, target.version)
            self.accepted += 1
        except ProtocolError:
            pass
        except BaseException as error:
            raise Found(self._report(target, body, repr(error))) from error

    def measure(self, count: int) -> None:
        """As `run`, with an eye on memory; slower, because every allocation is counted."""
        with self.tracing():
            for _ in range(count):
                target = self.random.choice(self.targets)
                self.measure_one(target, self.mutate(self.random.choice(target.bodies)))

    @contextmanager
    def tracing(self) -> Iterator[None]:
        tracemalloc.start()
        try:
            yield
        finally:
            tracemalloc.stop()

    def measure_one(self, target: Target, body: bytes) -> None:
        """A decoder takes as much each time; what other threads take meanwhile is not its own."""
        limit = BYTES_FOR_A_BODY_MAX + BYTES_FOR_A_BYTE_MAX * len(body)
        taken = [self._memory_of(target, body)]
        while taken[-1] > limit and len(taken) < MEASURES_MAX:
            taken.append(self._memory_of(target, body))
        if min(taken) > limit:
            raise Found(self._report(target, body, f"{min(taken)} bytes of memory"))

    def _memory_of(self, target: Target, body: bytes) -> int:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        self.try_one(target, body)
        _, peak = tracemalloc.get_traced_memory()
        return peak - before

    def _report(self, target: Target, body: bytes, what: str) -> str:
        return f"{target.name}(v{target.version}), seed {self.seed}: {what} from {body[:2000].hex()}"

    def mutate(self, body: bytes) -> bytes:
        change = self.random.choice((_cut, _flip, _overwrite, _insert_length, _write_length, _noise, _repeat))
        changed = change(self.random, body)
        return self.mutate(changed) if self.random.random() < 0.3 else changed


def _place(random: Random, body: bytes) -> int:
    """Somewhere in the body, more often near its start, where most lengths are."""
    return random.randint(0, min(len(body), random.choice((16, 128, len(body)))))


def _cut(random: Random, body: bytes) -> bytes:
    return body[: _place(random, body)]


def _flip(random: Random, body: bytes) -> bytes:
    changed = bytearray(body or b"\0")
    changed[min(_place(random, body), len(changed) - 1)] ^= 1 << random.randrange(8)
    return bytes(changed)


def _overwrite(random: Random, body: bytes) -> bytes:
    start = _place(random, body)
    noise = random.randbytes(random.randint(1, 8))
    return body[:start] + noise + body[start + len(noise) :]


def _insert_length(random: Random, body: bytes) -> bytes:
    start = _place(random, body)
    return body[:start] + random.choice(_LENGTHS) + body[start:]


def _write_length(random: Random, body: bytes) -> bytes:
    start, length = _place(random, body), random.choice(_LENGTHS)
    return body[:start] + length + body[start + len(length) :]


def _noise(random: Random, body: bytes) -> bytes:
    return random.randbytes(random.randint(0, 64))


def _repeat(random: Random, body: bytes) -> bytes:
    """Zeros, ones or a piece of the body, many times: what arrays of tiny structs are made of."""
    start = _place(random, body)
    piece = random.choice((b"\0", b"\1", b"\2", b"\xff", body[start : start + 8] or b"\0"))
    return body[:start] + piece * random.randint(1, 2000)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    fuzzer = Fuzzer(arguments.seed, all_targets())
    stop = time.monotonic() + arguments.seconds
    while time.monotonic() < stop:
        fuzzer.run(200_000)
        fuzzer.measure(5_000)
        print(f"seed {arguments.seed}: {fuzzer.tried:,} bodies, {fuzzer.accepted:,} accepted", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
