"""Callers (10009), version 0: what gateways ask about who calls them, and what the callers may do.

Postroad's own API, not listed by ApiVersions, for the same reason as `wire.peek`. Nothing in an answer is a
secret of a user, but signing keys, which are good for a day, a region and a service.

    request  := question (MessagePack, a map with its `type`)
    response := answer (MessagePack, a map)

Unknown fields are passed over, and those that are missing have their defaults. A question of a type that the
node does not know is malformed: it ends the connection.
"""

from __future__ import annotations

from typing import Final

import msgspec

from postroad.wire.own_codec import OwnCodec

KEY: Final = 10_009
NAME: Final = "Callers"
MIN_VERSION: Final = 0
MAX_VERSION: Final = 0
FLEXIBLE_FROM: Final = 0


class CallersQuestion(msgspec.Struct, tag_field="type", frozen=True):
    """What a gateway asks."""


class FollowRules(CallersQuestion, tag="follow", frozen=True):
    """What has changed since this revision of this node; answered as soon as there is something, or after a
    while. A node that can't tell says all that there is."""

    incarnation: str = ""  # the node's; empty: nothing is known yet
    revision: int = 0
    users: list[str] = []  # how they stand is said in any case, and at once


class FindSigningKey(CallersQuestion, tag="signing-key", frozen=True):
    """With what requests of this access key are signed on this day, in this region, for this service."""

    id: str
    day: str
    region: str
    service: str


class FindSalt(CallersQuestion, tag="salt", frozen=True):
    """How a password of this user would have to be hashed; answered for users who don't exist, too."""

    user: str


class CheckProof(CallersQuestion, tag="proof", frozen=True):
    """Whether the proof of this message is one of somebody who knows the user's password (RFC 5802)."""

    user: str
    mechanism: str
    message: bytes
    proof: bytes


class ReadToken(CallersQuestion, tag="token", frozen=True):
    """Whose token this is. Only nodes that have said `takes_tokens` know the question."""

    token: str


AnyQuestion = FollowRules | FindSigningKey | FindSalt | CheckProof | ReadToken


class RuleText(msgspec.Struct, frozen=True, array_like=True):
    """One ACL; operation and permission are Kafka's numbers."""

    principal: str
    host: str
    operation: int
    permission: int


class ResourceRules(msgspec.Struct, frozen=True, array_like=True):
    """All rules about what this pattern names; none: it has none any more. Numbers are Kafka's."""

    type: int
    pattern: int
    name: str
    rules: list[RuleText] = []


class UserStanding(msgspec.Struct, frozen=True, omit_defaults=True):
    """By what a user can be known now; by nothing: there is no such user."""

    passwords: list[bytes] = []  # marks of what passwords are checked with, as CheckProof answers them
    keys: list[str] = []  # ids of access keys that are enabled


class CallersAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer to any question: the fields that it asked for are filled."""

    error_code: int = 0
    error_message: str | None = None
    # FollowRules
    incarnation: str = ""
    revision: int = 0
    complete: bool = False  # what is not named has no rules
    rules: list[ResourceRules] = []
    users: dict[str, UserStanding] = {}
    super_users: list[str] = []
    open_without_rules: bool = False
    takes_tokens: bool = False
    # FindSigningKey, CheckProof, ReadToken; an empty user: there is none, or none who is known so
    user: str = ""
    signing_key: bytes = b""
    mark: bytes = b""
    # FindSalt
    mechanism: str = ""
    salt: bytes = b""
    iterations: int = 0
    # ReadToken
    lasts_s: float = 0.0  # from now on


_request: Final[msgspec.msgpack.Decoder[AnyQuestion]] = msgspec.msgpack.Decoder(AnyQuestion)
_codec: Final = OwnCodec(NAME, MIN_VERSION, MAX_VERSION, _request, msgspec.msgpack.Decoder(CallersAnswer))

decode_request, encode_request = _codec.decode_request, _codec.encode_request
decode_response, encode_response = _codec.decode_response, _codec.encode_response
