"""Bearer tokens (JWT, RFC 7519): what an identity provider has signed about somebody, checked by its keys.

    JWKS   {"keys": [{"kty": "RSA", "kid": "…", …}, …]}, public keys, published by the provider
    token  header.payload.signature; the header names algorithm and key, the payload who, for whom, till when

A token is believed if all of this is true:

T1 Its algorithm is one of `ALGORITHMS`: signatures by a private key. Neither `none`, nor an HMAC, for which
   somebody could take the public key.
T2 The signature is right, by a key of the JWKS that is meant for signatures.
T3 `iss` is the provider, and `aud` names this cluster: a token for another service is not believed.
T4 `exp` is there and ahead, `nbf` behind, give or take `SKEW_S`.
T5 The claim that names the user holds a name that a user can have: no machine's.

Needs `joserfc` (`pip install 'postroad[oauth]'`); whoever imports this file has to do with tokens.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import Final, NamedTuple

from joserfc import jwt
from joserfc.jwk import ECKey, JWKRegistry, RSAKey
from joserfc.jws import JWSRegistry

from postroad.errors import InvalidPrincipal, SaslAuthenticationFailed
from postroad.security.principals import check_user_name

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
SKEW_S: Final = 30.0  # between the provider's clock and ours
RSA_BITS_MIN: Final = 2048
KEYS_MAX: Final = 32  # a token that names none is tried with each
HEADER_BYTES_MAX: Final = 4096
TIME_S_MAX: Final = 1e11  # the year 5138

UNVERIFIED: Final = "The token can't be verified."


class Issuer(NamedTuple):
    """Whom tokens are believed from, and what has to be in them."""

    name: str
    audience: str
    user_claim: str = "sub"


class Token(NamedTuple):
    user: str
    lasts_s: float  # from now on


class UnknownKey(SaslAuthenticationFailed):
    """The token was signed with a key that is not there: the provider may have a new one."""


class IssuerKeys:
    """A provider's public keys."""

    def __init__(self, keys: list[RSAKey | ECKey]) -> None:
        self._keys = keys

    @classmethod
    def parse(cls, text: bytes) -> IssuerKeys:
        """The keys of a JWKS that sign tokens; others are passed over. ValueError if none is left."""
        try:
            listed = json.loads(text)["keys"][:KEYS_MAX]
            keys = [key for each in listed if (key := _key(each)) is not None]
        except (KeyError, TypeError, ValueError, RecursionError):
            raise ValueError("it is no JWKS: a JSON object with a list of keys") from None
        if not keys:
            raise ValueError("it has no key that signs tokens (RSA of 2,048 bits or more, or EC)")
        return cls(keys)

    def read(self, token: str, issuer: Issuer, now_s: float) -> Token:
        """Whose token it is. Raises SaslAuthenticationFailed; UnknownKey for want of a key."""
        claims = self._claims(token)
        _check_addressee(claims, issuer)
        lasts_s = _lasts_s(claims, now_s)
        name = claims.get(issuer.user_claim)
        if not isinstance(name, str):
            raise SaslAuthenticationFailed(
                f"The token has no claim {issuer.user_claim!r} with a user's name."
            )
        try:
            check_user_name(name)
        except InvalidPrincipal as error:
            raise SaslAuthenticationFailed(f"The token's user: {error}") from None
        return Token(name, lasts_s)

    def _claims(self, token: str) -> dict[str, object]:
        """T1 and T2. What the token says."""
        header = _header(token)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise SaslAuthenticationFailed(UNVERIFIED)
        fitting = [key for key in self._keys if _fits(key, str(algorithm), key_id)]
        if not fitting:
            raise UnknownKey(UNVERIFIED)
        for key in fitting:
            try:
                return jwt.decode(token, key, registry=_REGISTRY).claims
            except Exception:  # a library's, about bytes of anybody
                continue
        raise SaslAuthenticationFailed(UNVERIFIED)


_REGISTRY: Final = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
_REGISTRY.max_header_length = HEADER_BYTES_MAX
_CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}


def _key(listed: dict[str, object]) -> RSAKey | ECKey | None:
    """None: it signs no tokens."""
    if listed.get("kty") not in ("RSA", "EC") or listed.get("use", "sig") != "sig":
        return None
    if listed["kty"] == "RSA" and 6 * len(str(listed.get("n"))) < RSA_BITS_MIN:
        return None  # base64: six bits a letter
    try:
        key = JWKRegistry.import_key(listed)  # type: ignore[arg-type]
    except Exception:  # a library's: one key that can't be read leaves the others
        return None
    return key if isinstance(key, (RSAKey, ECKey)) else None


def _fits(key: RSAKey | ECKey, algorithm: str, key_id: object) -> bool:
    """A token without a key's name may be of any."""
    if key_id is not None and key.get("kid") != key_id:
        return False
    if isinstance(key, ECKey) != algorithm.startswith("ES") or key.get("alg", algorithm) != algorithm:
        return False
    return isinstance(key, RSAKey) or key.get("crv") == _CURVES[algorithm]


def _header(token: str) -> dict[str, object]:
    text = token.partition(".")[0]
    if len(text) <= 2 * HEADER_BYTES_MAX:
        try:
            header = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (ValueError, RecursionError):
            header = None
        if isinstance(header, dict):
            return header
    raise SaslAuthenticationFailed(UNVERIFIED)


def _check_addressee(claims: dict[str, object], issuer: Issuer) -> None:
    """T3."""
    audience = claims.get("aud")
    if claims.get("iss") != issuer.name:
        raise SaslAuthenticationFailed("The token is of another issuer.")
    if issuer.audience not in (audience if isinstance(audience, list) else [audience]):
        raise SaslAuthenticationFailed("The token is meant for another service (aud).")


def _lasts_s(claims: dict[str, object], now_s: float) -> float:
    """T4. Written so that no number that is none (NaN) passes."""
    lasts_s = _time(claims, "exp") + SKEW_S - now_s
    if not lasts_s > 0:
        raise SaslAuthenticationFailed("The token has expired.")
    if "nbf" in claims and not _time(claims, "nbf") - SKEW_S <= now_s:
        raise SaslAuthenticationFailed("The token does not hold yet.")
    return lasts_s


def _time(claims: dict[str, object], name: str) -> float:
    found = claims.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or abs(found) > TIME_S_MAX:
        raise SaslAuthenticationFailed(f"The token has no time in {name!r}.")
    return float(found)
