"""What is told of users who don't exist, so that nobody finds out who does.

Whoever begins a login by SCRAM is told a salt and iterations. Those of somebody unknown are derived from the
master key, the same each time. But users are made by several tools: Kafka's takes 4,096 iterations and salts
of some 26 letters and digits, ours 8,192 and 16 bytes. So a stranger's have the shape of some user's: which
one is drawn by the name, and stays while there are users of that shape.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Final, NamedTuple

from postroad.security import scram
from postroad.security.master_key import derive
from postroad.security.scram import Verifier

_LETTERS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"
_IS_TEXT: Final = re.compile(rb"[0-9a-z]+")


class Shape(NamedTuple):
    """How a verifier looks to who begins a login."""

    mechanism: str
    iterations: int
    salt_bytes: int
    is_text: bool  # a salt of letters and digits

    @classmethod
    def of(cls, mechanism: str, iterations: int, salt: bytes) -> Shape:
        return cls(mechanism, iterations, len(salt), _IS_TEXT.fullmatch(salt) is not None)


class Strangers:
    """Is told of all users; `verifier` is one that nothing passes."""

    def __init__(self) -> None:
        self._shapes: Counter[Shape] = Counter()  # how many users have it
        self._of_user: dict[str, tuple[Shape, ...]] = {}

    def note(self, name: str, shapes: tuple[Shape, ...]) -> None:
        """These are the user's now; none: there is no such user any more."""
        before = self._of_user.pop(name, ())
        if shapes:
            self._of_user[name] = shapes
        self._shapes.update(shapes)
        self._shapes.subtract(before)
        for shape in before:
            if not self._shapes[shape]:
                del self._shapes[shape]

    def verifier(self, master: bytes, mechanism: str, name: str) -> Verifier:
        shape = self._shape(master, mechanism, name)
        salt = hashlib.shake_256(derive(master, "salt", mechanism, name)).digest(shape.salt_bytes)
        if shape.is_text:
            salt = bytes(_LETTERS[byte % len(_LETTERS)] for byte in salt)
        size = hashlib.new(scram.HASHES[mechanism]).digest_size
        return Verifier(mechanism, salt, shape.iterations, bytes(size), bytes(size))

    def _shape(self, master: bytes, mechanism: str, name: str) -> Shape:
        found = [shape for shape in self._shapes if shape.mechanism == mechanism]
        if not found:
            return Shape(mechanism, scram.ITERATIONS, scram.SALT_BYTES, is_text=False)
        return max(found, key=lambda shape: derive(master, "shape", name, repr(shape)))
