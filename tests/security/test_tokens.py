"""Tokens that are believed, and the many that are not."""

from __future__ import annotations

import hmac
import json
import time
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from joserfc.jwk import ECKey

from postroad.errors import SaslAuthenticationFailed
from postroad.security.sasl import BearerServer, TokenCheck
from postroad.security.tokens import SKEW_S, Issuer, IssuerKeys, UnknownKey
from tests.identity_provider import AUDIENCE, ISSUER, claims, ec_key, jwks, rsa_key, token, unsigned

RSA, EC = rsa_key("rsa"), ec_key("ec")
KEYS = IssuerKeys.parse(jwks(RSA, EC))
US = Issuer(ISSUER, AUDIENCE)


def read(shown: str, keys: IssuerKeys = KEYS, issuer: Issuer = US) -> tuple[str, float]:
    return keys.read(shown, issuer, time.time())


def refused(shown: str, why: str = "verified", keys: IssuerKeys = KEYS) -> None:
    with pytest.raises(SaslAuthenticationFailed, match=why):
        read(shown, keys)


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"])
def test_what_the_provider_signed_is_believed(algorithm: str) -> None:
    user, lasts_s = read(token(RSA, algorithm))
    assert user == "shop"
    assert 590 < lasts_s <= 600 + SKEW_S


@pytest.mark.parametrize(("algorithm", "curve"), [("ES256", "P-256"), ("ES384", "P-384"), ("ES512", "P-521")])
def test_elliptic_curves_are_believed_with_their_own_hash(algorithm: str, curve: str) -> None:
    key = ec_key(f"of {curve}", curve)
    keys = IssuerKeys.parse(jwks(key))
    assert read(token(key, algorithm), keys)[0] == "shop"


def test_a_token_without_a_keys_name_is_tried_with_all() -> None:
    assert read(token(EC, kid=None))[0] == "shop"


def test_one_of_several_audiences_is_enough() -> None:
    assert read(token(RSA, says=claims(aud=["others", AUDIENCE])))[0] == "shop"


def test_the_claim_that_names_the_user_can_be_chosen() -> None:
    issuer = Issuer(ISSUER, AUDIENCE, "preferred_username")
    assert read(token(RSA, says=claims("17", preferred_username="jo")), issuer=issuer)[0] == "jo"
    with pytest.raises(SaslAuthenticationFailed, match="preferred_username"):
        read(token(RSA), issuer=issuer)


# --- attacks


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None])
def test_a_token_that_nobody_signed_is_refused(algorithm: str | None) -> None:
    for key_id in ({}, {"kid": "rsa"}):
        refused(unsigned({"alg": algorithm, "typ": "JWT", **key_id}, claims()))
        refused(unsigned({"alg": algorithm, **key_id}, claims(), b"x" * 256))


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_the_public_key_is_no_secret_to_sign_with(algorithm: str) -> None:
    """CVE-2015-9235 and its many siblings: an HMAC whose key is the public key's text."""
    header = {"alg": algorithm, "kid": "rsa"}
    signed = unsigned(header, claims())[:-1]
    for secret in (RSA.as_pem(private=False), RSA.as_der(private=False), jwks(RSA)):
        mac = hmac.digest(secret, signed.encode(), f"sha{algorithm[2:]}")
        refused(f"{signed}.{urlsafe_b64encode(mac).decode().rstrip('=')}")


def test_keys_of_the_jwks_that_are_shared_secrets_are_passed_over() -> None:
    secret = urlsafe_b64encode(b"s" * 32).decode().rstrip("=")
    with pytest.raises(ValueError, match="no key that signs"):
        IssuerKeys.parse(json.dumps({"keys": [{"kty": "oct", "k": secret, "kid": "rsa"}]}).encode())


@pytest.mark.filterwarnings("ignore:Key size should be")  # so it should
def test_keys_for_encryption_and_short_ones_sign_nothing() -> None:
    for weak in ({**RSA.as_dict(private=False), "use": "enc"}, rsa_key("short", 1024).as_dict(private=False)):
        with pytest.raises(ValueError, match="no key that signs"):
            IssuerKeys.parse(json.dumps({"keys": [weak]}).encode())


def test_a_key_signs_with_its_own_algorithm_only() -> None:
    tied = IssuerKeys.parse(json.dumps({"keys": [{**RSA.as_dict(private=False), "alg": "RS512"}]}).encode())
    assert read(token(RSA, "RS512"), tied)[0] == "shop"
    refused(token(RSA, "RS256"), keys=tied)
    refused(token(ec_key("big", "P-384"), "ES384", kid="ec"))
    refused(token(EC, kid="rsa"))


def test_somebody_elses_key_is_refused_whatever_it_calls_itself() -> None:
    stranger = rsa_key("stranger")
    with pytest.raises(UnknownKey):
        read(token(stranger))
    refused(token(stranger, kid="rsa"))
    refused(token(stranger, kid=None))


def test_keys_that_the_token_brings_itself_are_not_believed() -> None:
    stranger = rsa_key("stranger")
    brought = stranger.as_dict(private=False)
    for header in ({"jwk": brought}, {"jku": "https://evil.example/jwks"}, {"x5u": "https://evil.example"}):
        refused(token(stranger, kid="rsa", **header))


def test_what_was_changed_after_it_was_signed_is_refused() -> None:
    header, payload, signature = token(RSA).split(".")
    other = urlsafe_b64encode(json.dumps(claims("admin")).encode()).decode().rstrip("=")
    refused(f"{header}.{other}.{signature}")
    refused(f"{header}.{payload}.")
    refused(f"{header}.{payload}")
    refused(f"{header}.{payload}.{signature[:-8]}AAAAAAAA")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"aud": "another-service"}, "another service"),
        ({"aud": None}, "another service"),
        ({"aud": ["a", "b"]}, "another service"),
        ({"aud": {AUDIENCE: 1}}, "another service"),
        ({"aud": AUDIENCE + "x"}, "another service"),
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"iss": ISSUER + "/"}, "another issuer"),
        ({"exp": None}, "'exp'"),
        ({"exp": "4102444800"}, "'exp'"),
        ({"exp": True}, "'exp'"),
        ({"exp": float("inf")}, "'exp'"),
        ({"exp": float("nan")}, "expired"),
        ({"exp": 1_500_000_000}, "expired"),
        ({"nbf": 4_102_444_800}, "not hold yet"),
        ({"nbf": "now"}, "'nbf'"),
        ({"sub": None}, "'sub'"),
        ({"sub": 7}, "'sub'"),
        ({"sub": ""}, "user"),
        ({"sub": "*"}, "reserved"),
        ({"sub": "ANONYMOUS"}, "reserved"),
        ({"sub": "postroad.node"}, "reserved"),
        ({"sub": "postroad.operator"}, "reserved"),
        ({"sub": "a\nb"}, "visible"),
        ({"sub": "x" * 257}, "visible"),
    ],
)
def test_a_token_for_others_of_others_or_of_another_time_is_refused(
    changed: dict[str, Any], why: str
) -> None:
    refused(token(RSA, says={**claims(), **{k: v for k, v in changed.items() if v is not None}}
                  if None not in changed.values()
                  else {k: v for k, v in claims().items() if k not in changed}), why)  # fmt: skip


def test_a_clock_that_is_a_little_wrong_is_forgiven() -> None:
    now = int(time.time())
    assert read(token(RSA, says=claims(exp=now - 20, nbf=now - 60)))[1] <= SKEW_S
    assert read(token(RSA, says=claims(nbf=now + 20)))[0] == "shop"
    refused(token(RSA, says=claims(exp=now - 40)), "expired")
    refused(token(RSA, says=claims(nbf=now + 40)), "not hold")


@pytest.mark.parametrize(
    "shown",
    [
        "",
        ".",
        "..",
        "a.b.c",
        "é.b.c",
        "e30.e30.",
        "bnVsbA.e30.x",
        "W10.e30.x",
        "IiI.e30.x",
        "[" * 9000,
        "a." * 9000,
    ],
)
def test_bytes_that_are_no_token_are_refused(shown: str) -> None:
    refused(shown)


def test_a_header_that_is_nested_without_end_is_refused() -> None:
    deep = urlsafe_b64encode(b'{"alg":"RS256","a":' + b"[" * 3000 + b"]" * 3000 + b"}").decode()
    refused(f"{deep}.e30.AAAA")


def test_headers_that_must_be_understood_are_not_passed_over() -> None:
    refused(unsigned({"alg": "RS256", "kid": "rsa", "crit": ["exp"], "exp": 1}, claims(), b"x" * 256))


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"keys": 7}', b'{"keys": []}', b"[" * 100_000, b"\xff"]
)
def test_what_is_no_jwks_is_told_so(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"no JWKS|no key that signs"):
        IssuerKeys.parse(text)


def test_one_key_that_can_not_be_read_leaves_the_others() -> None:
    broken: list[dict[str, Any]] = [
        {"kty": "RSA", "kid": "x"},
        {"kty": "EC", "crv": "P-256", "x": "!", "y": "!"},
    ]
    text = json.dumps({"keys": [*broken, {"kty": "AKP"}, ECKey.as_dict(EC, private=False)]}).encode()
    assert read(token(EC), IssuerKeys.parse(text))[0] == "shop"


# --- how tokens come by SASL


def test_a_token_is_read_out_of_the_first_message() -> None:
    for message in (b"n,,\1auth=Bearer abc\1\1", b"n,,\1auth=bearer abc\1extension=x\1\1"):
        assert BearerServer().respond(message) == TokenCheck("abc")


@pytest.mark.parametrize(
    "message",
    [
        *(
            b"",
            b"\1",
            b"n,,",
            b"n,,\1\1",
            b"n,,\1auth=Bearer abc",
            b"n,,\1auth=Bearer abc\1",
            b"n,,\1auth=Bearer \1\1",
        ),
        *(
            b"p=tls-unique,,\1auth=Bearer abc\1\1",
            b"n,,\1auth=Basic abc\1\1",
            b"n,a=admin,\1auth=Bearer abc\1\1",
        ),
        *(b"n,,\1auth=Bearer a\1auth=Bearer b\1\1", b"n,,\1auth=Bearer \xff\1\1"),
        b"n,,\1auth=Bearer " + b"a" * (16 * 1024 + 1) + b"\1\1",
    ],
)
def test_messages_without_one_token_are_refused(message: bytes) -> None:
    with pytest.raises(SaslAuthenticationFailed, match="OAUTHBEARER"):
        BearerServer().respond(message)
