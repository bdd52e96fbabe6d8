"""Decisions about users: what their passwords are checked with, by mechanism, and their access keys.

A user is there as long as some mechanism has a password; access keys go with their user.
"""

from __future__ import annotations

from typing import Final

import msgspec

from postroad.cluster import keys
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image
from postroad.cluster.keys import AccessKeyValue, ScramValue, UserValue
from postroad.cluster.store import Compare, Delete, Put
from postroad.errors import PolicyViolation, ResourceNotFound

# All of them are in every node's memory.
USERS_MAX: Final = 100_000
KEYS_MAX: Final = 10  # of a user: enough to change one that is in use


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


# --- access keys


def create_key(image: Image, name: str, key_id: str, key: AccessKeyValue) -> Decision:
    """The user has this access key, too, from now on; nothing to do where that is so already."""
    user = image.users.get(name)
    if user is None:
        raise ResourceNotFound(f"There is no user {name!r}.")
    if key_id in user.keys:
        return Decision([], [])
    if len(user.keys) >= KEYS_MAX:
        raise PolicyViolation(f"User {name!r} has {KEYS_MAX} access keys; delete one first.")
    return _put(image, name, msgspec.structs.replace(user, keys={**user.keys, key_id: key}))


def enable_key(image: Image, key_id: str, *, enabled: bool) -> Decision:
    """Requests that are signed with the key count, or don't."""
    name, user = _owner(image, key_id)
    if user.keys[key_id].enabled == enabled:
        return Decision([], [])
    changed = msgspec.structs.replace(user.keys[key_id], enabled=enabled)
    return _put(image, name, msgspec.structs.replace(user, keys={**user.keys, key_id: changed}))


def delete_key(image: Image, key_id: str) -> Decision:
    """The key is gone for good: another one has another id."""
    name, user = _owner(image, key_id)
    left = {each: key for each, key in user.keys.items() if each != key_id}
    return _put(image, name, msgspec.structs.replace(user, keys=left))


def _owner(image: Image, key_id: str) -> tuple[str, UserValue]:
    name = image.access_keys.get(key_id)
    if name is None:
        raise ResourceNotFound(f"There is no access key {key_id!r}.")
    return name, image.users[name]


def _write(image: Image, name: str, scram: dict[str, ScramValue]) -> Decision:
    user = image.users.get(name)
    if scram == ({} if user is None else user.scram):
        return Decision([], [])
    if scram:
        return _put(image, name, UserValue(scram, {} if user is None else user.keys))
    key = keys.user_key(name)
    return Decision([Compare(key, image.key_revision(key))], [Delete(key)])


def _put(image: Image, name: str, user: UserValue) -> Decision:
    key = keys.user_key(name)
    return Decision([Compare(key, image.key_revision(key))], [Put(key, keys.encode(user))])
