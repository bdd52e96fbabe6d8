"""Decisions about users: what their passwords are checked with is put and deleted, by mechanism."""

from __future__ import annotations

from typing import Final

from postroad.cluster import keys
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image
from postroad.cluster.keys import ScramValue, UserValue
from postroad.cluster.store import Compare, Delete, Put
from postroad.errors import PolicyViolation, ResourceNotFound

# All of them are in every node's memory.
USERS_MAX: Final = 100_000


def put_verifier(image: Image, name: str, mechanism: str, verifier: ScramValue) -> Decision:
    """The user has this password with this mechanism from now on; a user who is not there is made."""
    user = image.users.get(name)
    if user is None and len(image.users) >= USERS_MAX:
        raise PolicyViolation(f"There are {USERS_MAX} users; delete some first.")
    scram = {} if user is None else user.scram
    return _write(image, name, scram | {mechanism: verifier})


def delete_verifier(image: Image, name: str, mechanism: str) -> Decision:
    """The user can't log in with this mechanism any more; one without any is gone."""
    user = image.users.get(name)
    if user is None or mechanism not in user.scram:
        raise ResourceNotFound(f"User {name!r} has no password for {mechanism}.")
    return _write(image, name, {each: kept for each, kept in user.scram.items() if each != mechanism})


def change_user(image: Image, name: str, put: dict[str, ScramValue], deleted: list[str]) -> Decision:
    """Several changes of one user, in one commit."""
    for mechanism in deleted:
        delete_verifier(image, name, mechanism)
    for mechanism, verifier in put.items():
        put_verifier(image, name, mechanism, verifier)
    user = image.users.get(name)
    kept = {} if user is None else user.scram
    left = {mechanism: verifier for mechanism, verifier in kept.items() if mechanism not in deleted}
    return _write(image, name, left | put)


def _write(image: Image, name: str, scram: dict[str, ScramValue]) -> Decision:
    key = keys.user_key(name)
    user = image.users.get(name)
    if scram == ({} if user is None else user.scram):
        return Decision([], [])
    operation = Put(key, keys.encode(UserValue(scram))) if scram else Delete(key)
    return Decision([Compare(key, image.key_revision(key))], [operation])
