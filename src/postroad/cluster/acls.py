"""Decisions about ACLs: all rules about one resource lie in one key, so each change is compared with them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from postroad.cluster import keys
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image
from postroad.cluster.keys import AclKey, AclsValue, AclValue
from postroad.cluster.store import Compare, Delete, Put
from postroad.errors import PolicyViolation

RESOURCES_MAX: Final = 100_000  # with ACLs; all of them are in every node's memory
ACLS_OF_RESOURCE_MAX: Final = 1000  # they are looked at one by one, and lie in one value


def add_acls(image: Image, about: AclKey, acls: Collection[AclValue]) -> Decision:
    """These hold, too, from now on; nothing to do where they do already."""
    before = image.acls.get(about, ())
    after = (*before, *dict.fromkeys(acl for acl in acls if acl not in before))
    if len(after) > ACLS_OF_RESOURCE_MAX:
        raise PolicyViolation(f"At most {ACLS_OF_RESOURCE_MAX} ACLs are kept about one resource.")
    if not before and len(image.acls) >= RESOURCES_MAX:
        raise PolicyViolation(f"{RESOURCES_MAX} resources have ACLs; name some by a prefix instead.")
    return _write(image, about, before, after)


def remove_acls(image: Image, about: AclKey, acls: Collection[AclValue]) -> Decision:
    """None of these holds any more; nothing to do where none did."""
    before = image.acls.get(about, ())
    return _write(image, about, before, tuple(acl for acl in before if acl not in acls))


def _write(
    image: Image, about: AclKey, before: tuple[AclValue, ...], after: tuple[AclValue, ...]
) -> Decision:
    if after == before:
        return Decision([], [])
    key = keys.acl_key(about)
    operation = Put(key, keys.encode(AclsValue(after))) if after else Delete(key)
    return Decision([Compare(key, image.key_revision(key))], [operation])
