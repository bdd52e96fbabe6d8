"""Decisions about quotas: what users and clients may take in a second, and whose quota holds for whom.

The most exact entity that has a quota of the kind counts, in Kafka's order:

    user and client id > user and any client > user > any user and client id > any user and any client >
    any user > client id > any client

"Any" is the default of those who have none of their own. Whoever an entity names shares its quota, over all
connections to a node: a user's clients one, the users of a client id one; by a default each has his own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from postroad.cluster import keys
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image
from postroad.cluster.keys import QuotaEntity, QuotaValue
from postroad.cluster.store import Compare, Delete, Put
from postroad.errors import InvalidRequest, PolicyViolation

PRODUCE_RATE: Final = "producer_byte_rate"
FETCH_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
NAMES: Final = (PRODUCE_RATE, FETCH_RATE, REQUEST_PERCENTAGE)

QUOTAS_MAX: Final = 10_000  # all of them are in every node's memory
NAME_CHARACTERS_MAX: Final = 1024


DEFAULT: Final = ""


class Limit(NamedTuple):
    """A quota that holds for somebody; what those take together counts who have the same `shared_by`."""

    rate: float
    shared_by: tuple[str | None, str | None]  # user and client id, as far as the entity says them


def limit_of(
    quotas: Mapping[QuotaEntity, Mapping[str, float]], name: str, user: str, client: str
) -> Limit | None:
    """None: there is no quota of that kind for the user's client."""
    for who in (user, DEFAULT, None):
        for what in (client, DEFAULT, None):
            rate = quotas.get(QuotaEntity(who, what), {}).get(name)
            if rate is not None:
                return Limit(rate, (None if who is None else user, None if what is None else client))
    return None


def alter_quota(image: Image, entity: QuotaEntity, changes: Mapping[str, float | None]) -> Decision:
    """These limits hold for the entity from now on, None: no limit; others stay as they are."""
    _check_entity(entity)
    before = image.quotas.get(entity, {})
    for name, value in changes.items():
        if name not in NAMES:
            raise InvalidRequest(f"There is no quota {name!r}; there are {', '.join(NAMES)}.")
        if value is not None and not (math.isfinite(value) and value > 0):
            raise InvalidRequest(f"{name}: a quota is a number above zero.")
    merged = before | {name: value for name, value in changes.items() if value is not None}
    after = {name: value for name, value in merged.items() if changes.get(name, value) is not None}
    if after == before:
        return Decision([], [])
    if not before and len(image.quotas) >= QUOTAS_MAX:
        raise PolicyViolation(f"{QUOTAS_MAX} users and clients have quotas; delete some first.")
    key = keys.quota_key(entity)
    operation = Put(key, keys.encode(QuotaValue(after))) if after else Delete(key)
    return Decision([Compare(key, image.key_revision(key))], [operation])


def _check_entity(entity: QuotaEntity) -> None:
    if entity == (None, None):
        raise InvalidRequest("A quota is a user's, a client's, or that of a client of a user.")
    for name in entity:
        if name is not None and (len(name) > NAME_CHARACTERS_MAX or "\0" in name):
            raise InvalidRequest(f"A name in a quota has at most {NAME_CHARACTERS_MAX} characters.")
