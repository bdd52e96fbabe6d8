"""What went wrong, as problem details (RFC 9457): one table from errors to statuses, for all of REST.

A type is a reference to its paragraph on the page at /docs. 400 is a request that does not fit the OpenAPI
document; 422 one that fits, and that the nodes refuse all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from aiohttp import hdrs, web

from postroad import errors
from postroad.errors import PostroadError

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 1


class Problem(msgspec.Struct, omit_defaults=True):
    """Problem details as of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str = ""


class ProblemKind(NamedTuple):
    status: int
    slug: str
    title: str

    @property
    def type(self) -> str:
        return f"/docs#{self.slug}"

    def says(self, detail: str) -> Problem:
        return Problem(self.type, self.title, self.status, detail)


MALFORMED: Final = ProblemKind(400, "malformed", "The request does not fit the OpenAPI document.")
UNAUTHENTICATED: Final = ProblemKind(401, "unauthenticated", "A user or an access key is needed.")
FORBIDDEN: Final = ProblemKind(403, "forbidden", "The caller may not do that.")
NOT_FOUND: Final = ProblemKind(404, "not-found", "Not found.")
METHOD: Final = ProblemKind(405, "method-not-allowed", "Method not allowed.")
NOT_ACCEPTABLE: Final = ProblemKind(406, "not-acceptable", "Answers are application/json.")
CONFLICT: Final = ProblemKind(409, "conflict", "The request conflicts with what exists.")
LOCK_LOST: Final = ProblemKind(409, "lock-lost", "The receipt no longer holds its message.")
TOO_LARGE: Final = ProblemKind(413, "too-large", "The body or the message is too large.")
MEDIA: Final = ProblemKind(415, "unsupported-media-type", "The body's content type is not supported.")
REFUSED: Final = ProblemKind(422, "refused", "The request is not valid.")
KEY_REUSED: Final = ProblemKind(
    422, "idempotency-key-reused", "The Idempotency-Key was used for another request."
)
WRONG_RECEIPT: Final = ProblemKind(422, "wrong-receipt", "The receipt does not belong to this subscription.")
THROTTLED: Final = ProblemKind(429, "throttled", "The quota is used up.")
INTERNAL: Final = ProblemKind(500, "internal", "Internal error; see the gateway's log.")
UNSUPPORTED: Final = ProblemKind(501, "unsupported", "The node can't do that.")
UNAVAILABLE: Final = ProblemKind(503, "unavailable", "Temporarily unavailable: try again.")
OUTCOME_UNKNOWN: Final = ProblemKind(
    504, "outcome-unknown", "It is not known whether the transaction was committed."
)

KINDS: Final = (
    MALFORMED, UNAUTHENTICATED, FORBIDDEN, NOT_FOUND, METHOD, NOT_ACCEPTABLE, CONFLICT, LOCK_LOST, TOO_LARGE,
    MEDIA, REFUSED, KEY_REUSED, WRONG_RECEIPT, THROTTLED, INTERNAL, UNSUPPORTED, UNAVAILABLE,
    OUTCOME_UNKNOWN,
)  # fmt: skip

# The nearest class in an error's family tree decides.
_BY_ERROR: Final[Mapping[type[PostroadError], ProblemKind]] = {
    errors.UnknownTopicOrPartition: NOT_FOUND,
    errors.UnknownTopicId: NOT_FOUND,
    errors.GroupIdNotFound: NOT_FOUND,
    errors.OffsetOutOfRange: NOT_FOUND,
    errors.TopicAlreadyExists: CONFLICT,
    errors.NonEmptyGroup: CONFLICT,
    errors.GroupSubscribedToTopic: CONFLICT,
    errors.InvalidRecordState: LOCK_LOST,
    errors.MessageTooLarge: TOO_LARGE,
    errors.RecordListTooLarge: TOO_LARGE,
    errors.OutOfOrderSequence: KEY_REUSED,  # only publishing under an Idempotency-Key comes to it
    errors.TopicAuthorizationFailed: FORBIDDEN,
    errors.GroupAuthorizationFailed: FORBIDDEN,
    errors.ClusterAuthorizationFailed: FORBIDDEN,
    errors.TransactionalIdAuthorizationFailed: FORBIDDEN,
    errors.TopicDeletionDisabled: FORBIDDEN,
    errors.ThrottlingQuotaExceeded: THROTTLED,
    errors.UnsupportedVersion: UNSUPPORTED,
    errors.BrokerNotAvailable: UNAVAILABLE,
    errors.StoreUnavailable: UNAVAILABLE,
    errors.TryAgain: UNAVAILABLE,
    errors.RequestRefused: REFUSED,
}


class Refused(Exception):
    """Raised anywhere in a handler, answered at one place."""

    def __init__(self, kind: ProblemKind, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.problem = kind.says(detail)
        self.headers = dict(headers or {})


def of(error: PostroadError) -> Problem:
    kind = kind_of(error)
    return kind.says("" if kind is INTERNAL else str(error))


def kind_of(error: PostroadError) -> ProblemKind:
    for family in type(error).__mro__:
        kind = _BY_ERROR.get(family)
        if kind is not None:
            return kind
    return INTERNAL


def answer(problem: Problem, headers: Mapping[str, str] | None = None) -> web.Response:
    found = dict(headers or {})
    if problem.status in (THROTTLED.status, UNAVAILABLE.status):
        found.setdefault(hdrs.RETRY_AFTER, str(RETRY_AFTER_S))
    body = msgspec.json.encode(problem)
    return web.Response(status=problem.status, body=body, content_type=MEDIA_TYPE, headers=found)
