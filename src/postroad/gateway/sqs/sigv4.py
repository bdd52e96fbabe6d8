"""Signature Version 4: that a request comes, unchanged and just now, from somebody who knows a key's secret.

    canonical request := method · path · query · signed headers and their values · SHA-256 of the body
    string to sign    := AWS4-HMAC-SHA256 · time · day/region/sqs/aws4_request · SHA-256 of the former

each on lines of their own. The signature is an HMAC of that with a key derived from the secret and the scope.
It stands in the header `Authorization`, or, with all that belongs to it, in the query of a presigned URL.

What is not signed is not believed: `host` and all `x-amz-` headers must be, and the body's hash is always our
own. A request is good for 15 minutes, a presigned one for as long as it says.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote

from postroad.gateway.exchange import Head
from postroad.gateway.sqs.errors import SqsError
from postroad.security.access_keys import TERMINATOR, signing_key

ALGORITHM: Final = "AWS4-HMAC-SHA256"
SERVICE: Final = "sqs"
SKEW_S: Final = 900
EXPIRES_S_MAX: Final = 604_800
FIELDS_MAX: Final = 2000
TIME_FORMAT: Final = "%Y%m%dT%H%M%SZ"

_SIGNATURE: Final = "X-Amz-Signature"


class Claim(NamedTuple):
    """What a request says about its signature."""

    key_id: str
    day: str
    region: str
    signed_headers: str
    signature: str
    time: str
    expires_s: int | None  # of a presigned URL


class Signed(NamedTuple):
    """A request's claim, read, and the query that it stood with."""

    claim: Claim
    query: list[tuple[str, str]]


def is_shown(headers: Mapping[str, str], target: str) -> bool:
    """Whether the request shows a signature; else it says who it is in another way, or not at all."""
    header = headers.get("authorization")
    return "X-Amz-Algorithm=" in target if header is None else header.startswith("AWS4-")


def read(headers: Mapping[str, str], target: str) -> Signed:
    """What can be told before the body has come: with whose key the request claims to be signed, and when.
    Raises SqsError."""
    _, _, raw_query = target.partition("?")
    try:
        query = parse_qsl(raw_query, keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise _incomplete("the query can't be read") from None
    claim = _claim(headers, dict(query))
    _check_time(claim, datetime.now(UTC))
    return Signed(claim, query)


def unknown_key() -> SqsError:
    return SqsError("InvalidClientTokenId", "The security token included in the request is invalid.", 403)


def check(head: Head, body: bytes, signed: Signed, key: bytes) -> None:
    """Raises SqsError if the request is not signed with this signing key."""
    claim, query = signed
    path, _, _ = head.target.partition("?")
    canonical = "\n".join(
        (
            head.method,
            quote(path, safe="/~"),
            _canonical_query(query),
            *_canonical_headers(head, claim),
            "",
            claim.signed_headers,
            hashlib.sha256(body).hexdigest(),
        )
    )
    scope = f"{claim.day}/{claim.region}/{SERVICE}/{TERMINATOR}"
    to_sign = "\n".join((ALGORITHM, claim.time, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    right = hmac.digest(key, to_sign.encode(errors="surrogateescape"), hashlib.sha256).hex()
    if not hmac.compare_digest(right.encode(), claim.signature.encode(errors="surrogateescape")):
        raise _does_not_match(
            "The request signature we calculated does not match the signature you provided. "
            "Check your secret access key and signing method."
        )


@lru_cache(maxsize=256)
def key_of_secret(secret: str, day: str, region: str) -> bytes:
    """The signing key, where the secret itself is here."""
    return signing_key(secret, day, region, SERVICE)


def _claim(headers: Mapping[str, str], query: Mapping[str, str]) -> Claim:
    header = headers.get("authorization")
    if header is None and query.get("X-Amz-Algorithm") is None:
        raise SqsError("MissingAuthenticationToken", "Request is missing Authentication Token.", 403)
    if header is None:
        return _presigned(query)
    algorithm, _, rest = header.partition(" ")
    if algorithm != ALGORITHM:
        raise _incomplete(f"Authorization does not begin with {ALGORITHM}")
    parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
    key_id, day, region = _scope(parts.get("Credential", ""))
    time = headers.get("x-amz-date", "")
    return Claim(key_id, day, region, parts.get("SignedHeaders", ""), parts.get("Signature", ""), time, None)


def _presigned(query: Mapping[str, str]) -> Claim:
    if query["X-Amz-Algorithm"] != ALGORITHM:
        raise _incomplete(f"X-Amz-Algorithm is not {ALGORITHM}")
    key_id, day, region = _scope(query.get("X-Amz-Credential", ""))
    expires = query.get("X-Amz-Expires", "")
    if not (
        expires.isascii() and expires.isdecimal() and len(expires) < 10 and int(expires) <= EXPIRES_S_MAX
    ):
        raise _incomplete(f"X-Amz-Expires is not 0 to {EXPIRES_S_MAX} seconds")
    signed, signature = query.get("X-Amz-SignedHeaders", ""), query.get(_SIGNATURE, "")
    return Claim(key_id, day, region, signed, signature, query.get("X-Amz-Date", ""), int(expires))


def _scope(credential: str) -> tuple[str, str, str]:
    """The key's id, the day and the region; an id may have slashes in it."""
    parts = credential.rsplit("/", 4)
    if len(parts) != 5 or parts[3:] != [SERVICE, TERMINATOR]:
        raise _incomplete(f"the credential is not <key id>/<day>/<region>/{SERVICE}/{TERMINATOR}")
    return parts[0], parts[1], parts[2]


def _check_time(claim: Claim, now: datetime) -> None:
    try:
        signed_at = datetime.strptime(claim.time, TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise _incomplete("X-Amz-Date is not a time like 20260131T120000Z") from None
    if not claim.time.startswith(claim.day) or len(claim.day) != 8:
        raise _does_not_match("The credential's day is not that of X-Amz-Date.")
    age_s = (now - signed_at).total_seconds()
    if age_s < -SKEW_S:
        raise _does_not_match(f"Signature not yet current: {claim.time} is more than 15 minutes ahead.")
    if age_s > (SKEW_S if claim.expires_s is None else claim.expires_s):
        raise _does_not_match(f"Signature expired: {claim.time} is too long ago.")


def _canonical_query(query: list[tuple[str, str]]) -> str:
    pairs = sorted((_encode(name), _encode(value)) for name, value in query if name != _SIGNATURE)
    return "&".join(f"{name}={value}" for name, value in pairs)


def _canonical_headers(head: Head, claim: Claim) -> list[str]:
    names = claim.signed_headers.split(";")
    needed = {"host", *(name for name in head.headers if name.startswith("x-amz-"))}
    if names != sorted(set(names)) or not needed.issubset(names):
        raise _incomplete("SignedHeaders must have host and every x-amz- header, sorted, each once")
    return [f"{name}:{' '.join(head.headers.get(name, '').split())}" for name in names]


def _encode(text: str) -> str:
    return quote(text, safe="-_.~")


def _incomplete(what: str) -> SqsError:
    return SqsError("IncompleteSignature", f"The request's signature is incomplete: {what}.")


def _does_not_match(text: str) -> SqsError:
    return SqsError("SignatureDoesNotMatch", text, 403)
