"""Access keys: secrets from the master key, and signing keys as AWS derives them."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from postroad.security import access_keys

MASTER = bytes(range(32))
KEY_ID = access_keys.new_id(bytes(10))


def test_ids_are_as_long_as_those_of_aws() -> None:
    assert len(KEY_ID) == 20
    assert KEY_ID.isalnum()
    assert access_keys.new_id(b"0123456789") != KEY_ID


def test_a_secret_depends_on_master_key_id_and_version() -> None:
    secrets = {
        access_keys.secret_of(master, key_id, version)
        for master in (MASTER, bytes(32))
        for key_id in (KEY_ID, access_keys.new_id(b"0123456789"))
        for version in (1, 11)
    }
    assert len(secrets) == 8
    assert {len(secret) for secret in secrets} == {40}
    assert access_keys.secret_of(MASTER, KEY_ID, 1) == access_keys.secret_of(MASTER, KEY_ID, 1)


def test_id_and_version_are_kept_apart() -> None:
    assert access_keys.secret_of(MASTER, KEY_ID + "1", 1) != access_keys.secret_of(MASTER, KEY_ID, 11)


def test_signing_keys_are_those_of_aws() -> None:
    """botocore signs a text of the same scope."""
    secret = access_keys.secret_of(MASTER, KEY_ID, 1)
    signer = SigV4Auth(Credentials(KEY_ID, secret), "sqs", "eu-central-1")
    request = AWSRequest("POST", "http://localhost/")
    request.context["timestamp"] = datetime(2026, 3, 1, tzinfo=UTC).strftime("%Y%m%dT%H%M%SZ")
    key = access_keys.signing_key(secret, "20260301", "eu-central-1", "sqs")
    assert signer.signature("text to sign", request) == hmac.digest(key, b"text to sign", "sha256").hex()
