"""Callers (10009), version 0: gateways follow users and rules, and learn with what a caller's requests are
signed and whether somebody knows a password.

Postroad's own, for gateways. Not advertised (see `wire.callers`).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasClock, HasImage, HasSecurity
from postroad.cluster import keys
from postroad.errors import ApiError, ClusterAuthorizationFailed, SaslAuthenticationFailed, SecurityDisabled
from postroad.security import access_keys, scram
from postroad.security.resources import Operation
from postroad.wire import callers as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(cluster=Operation.CLUSTER_ACTION)
ADVERTISED: Final = False

WAIT_S: Final = 3.0  # a gateway hears something so often
USERS_MAX: Final = 10_000  # in one question
# Signing keys are for days of which requests may still come: a presigned URL is good for a week.
DAYS_PAST: Final = 8
DAYS_AHEAD: Final = 1


class Uses(HasClock, HasImage, HasSecurity, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    question = codec.decode_request(call.body, call.version)
    if isinstance(question, codec.FollowRules) and node.security.enabled:
        return _follow(node, question, call.version)
    if isinstance(question, codec.ReadToken) and node.security.enabled:
        return _read_token(node, question, call.connection.peer, call.version)
    try:
        answer = _find(node, question)
    except ApiError as error:
        answer = codec.CallersAnswer(error.code, str(error))
    return codec.encode_response(answer, call.version)


def refuse(_: object, call: Call) -> Result:
    error = ClusterAuthorizationFailed()
    return codec.encode_response(codec.CallersAnswer(error.code, str(error)), call.version)


def _find(node: Uses, question: codec.AnyQuestion) -> codec.CallersAnswer:
    if not node.security.enabled:
        raise SecurityDisabled()
    match question:
        case codec.FindSigningKey():
            return _signing_key(node, question)
        case codec.FindSalt(user):
            verifier = node.security.password_verifier(user)
            return codec.CallersAnswer(
                mechanism=verifier.mechanism, salt=verifier.salt, iterations=verifier.iterations
            )
        case codec.CheckProof(user, mechanism, message, proof):
            return _checked(node, user, mechanism, message, proof)
    raise AssertionError("what takes a while is answered before")


# --- rules


async def _follow(node: Uses, question: codec.FollowRules, version: int) -> bytes:
    news = node.security.news
    if not question.users:
        await news.wait(question.incarnation, question.revision, WAIT_S)
    changed = news.since(question.incarnation, question.revision)
    told = [*question.users[:USERS_MAX]]
    if changed is None:
        rules = [_rules(node, about) for about in node.image.acls]
    else:
        rules = [_rules(node, keys.read_acl_key(key[len(keys.ACLS) :])) for key in _of(changed, keys.ACLS)]
        told += [key[len(keys.USERS) :] for key in _of(changed, keys.USERS)]
    settings = node.security.rules
    answer = codec.CallersAnswer(
        incarnation=news.incarnation,
        revision=news.revision,
        complete=changed is None,
        rules=rules,
        users={name: _standing(node, name) for name in told},
        super_users=sorted(settings.super_users),
        open_without_rules=settings.open_without_rules,
        takes_tokens=node.security.takes_tokens,
    )
    return codec.encode_response(answer, version)


def _of(changed: list[str], kind: str) -> list[str]:
    return [key for key in changed if key.startswith(kind)]


def _rules(node: Uses, about: keys.AclKey) -> codec.ResourceRules:
    acls = node.image.acls.get(about, ())
    return codec.ResourceRules(
        *about, [codec.RuleText(acl.principal, acl.host, acl.operation, acl.permission) for acl in acls]
    )


def _standing(node: Uses, name: str) -> codec.UserStanding:
    user = node.image.users.get(name)
    if user is None:
        return codec.UserStanding()
    marks = [node.security.mark(mechanism, value.stored_key) for mechanism, value in user.scram.items()]
    return codec.UserStanding(marks, [key_id for key_id, key in user.keys.items() if key.enabled])


# --- credentials


async def _read_token(node: Uses, question: codec.ReadToken, peer: str, version: int) -> bytes:
    try:
        token = await node.security.read_token(question.token, peer)
    except SaslAuthenticationFailed:
        return codec.encode_response(codec.CallersAnswer(), version)
    return codec.encode_response(codec.CallersAnswer(user=token.user, lasts_s=token.lasts_s), version)


def _signing_key(node: Uses, question: codec.FindSigningKey) -> codec.CallersAnswer:
    user = node.image.access_keys.get(question.id)
    key = None if user is None else node.image.users[user].keys[question.id]
    if user is None or key is None or not key.enabled or not _is_current(question.day, node.clock.now_ms()):
        return codec.CallersAnswer()
    secret = access_keys.secret_of(node.security.master_key, question.id, key.version)
    found = access_keys.signing_key(secret, question.day, question.region, question.service)
    return codec.CallersAnswer(user=user, signing_key=found)


def _is_current(day: str, now_ms: int) -> bool:
    """A key for another day is nobody's affair yet, or any more."""
    today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    try:
        asked = date(int(day[:4]), int(day[4:6]), int(day[6:]))
    except ValueError:
        return False
    right = len(day) == 8 and day.isascii() and day.isdecimal()
    return right and today - timedelta(DAYS_PAST) <= asked <= today + timedelta(DAYS_AHEAD)


def _checked(node: Uses, user: str, mechanism: str, message: bytes, proof: bytes) -> codec.CallersAnswer:
    if mechanism not in scram.HASHES:
        return codec.CallersAnswer()
    verifier = node.security.user_verifier(mechanism, user)
    if not scram.proof_matches(verifier, message, proof):
        return codec.CallersAnswer()
    return codec.CallersAnswer(user=user, mark=node.security.mark(mechanism, verifier.stored_key))
