"""Who somebody is: a kind and a name, written `User:shop` as in Kafka."""

from __future__ import annotations

from typing import Final, NamedTuple

from postroad.errors import InvalidPrincipal

USER: Final = "User"
NODE: Final = "Node"  # a node of the same cluster
GATEWAY: Final = "Gateway"  # a gateway beside a node; it asks for its callers' rights itself
OPERATOR: Final = "Operator"  # who holds the master key
MACHINES: Final = (NODE, GATEWAY, OPERATOR)

NAME_CHARACTERS_MAX: Final = 256
MACHINE_PREFIX: Final = "postroad."  # names of machines: no user is called so


class Principal(NamedTuple):
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def is_machine(self) -> bool:
        """A part of the cluster itself, or who holds its key."""
        return self.kind in MACHINES


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")  # who came by a listener that asks for nothing
EVERYBODY: Final = "User:*"  # in an ACL


def user(name: str) -> Principal:
    return Principal(USER, name)


def read_principal(text: str) -> Principal:
    """Raises InvalidPrincipal unless the text is `User:name`."""
    kind, colon, name = text.partition(":")
    if kind != USER or not colon or not 0 < len(name) <= NAME_CHARACTERS_MAX or "\0" in name:
        raise InvalidPrincipal(
            f"{text!r} is no principal: write User:name (at most {NAME_CHARACTERS_MAX} characters)."
        )
    return Principal(kind, name)


def check_user_name(name: str) -> None:
    """Raises InvalidPrincipal where no user can be called so."""
    if not 0 < len(name) <= NAME_CHARACTERS_MAX or any(ord(letter) < 32 for letter in name):
        raise InvalidPrincipal(f"A user's name has 1 to {NAME_CHARACTERS_MAX} visible characters.")
    if name == "*" or name == ANONYMOUS.name or name.startswith(MACHINE_PREFIX):
        raise InvalidPrincipal(f"{name!r} is reserved: give the user another name.")
