"""SCRAM (RFC 5802, RFC 7677): the arithmetic, the messages, and what is kept of a password.

    client  n,,n=user,r=CLIENT                                   client-first
    server  r=CLIENT+SERVER,s=salt,i=iterations                  server-first
    client  c=biws,r=CLIENT+SERVER,p=proof                       client-final
    server  v=signature                                          server-final

A verifier (salt, iterations, two keys) checks a proof with a hash and two HMACs, and is worth nothing to who
steals it but as the start of a search for the password. As in Kafka, passwords are taken as UTF-8, without
SASLprep. Channel binding is not offered.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import b64decode, b64encode
from typing import Final, NamedTuple

from postroad.errors import SaslAuthenticationFailed

# Kafka's bounds: fewer are searched too quickly, more let a client buy a second of a processor.
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16_384
ITERATIONS: Final = 8192
SALT_BYTES: Final = 16
SALT_BYTES_MAX: Final = 1024
NONCE_CHARACTERS_MAX: Final = 1024

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class Verifier(NamedTuple):
    """What is kept of a password."""

    mechanism: str
    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    def matches(self, password: str) -> bool:
        """Whether it is the verifier's password; takes milliseconds of a processor."""
        salted = salted_password(self.mechanism, password, self.salt, self.iterations)
        return hmac.compare_digest(stored_key(self.mechanism, salted), self.stored_key)


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def stored_key(mechanism: str, salted: bytes) -> bytes:
    return hashlib.new(HASHES[mechanism], _hmac(mechanism, salted, b"Client Key")).digest()


def make_verifier(mechanism: str, password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    salted = salted_password(mechanism, password, salt, iterations)
    return verifier_of_salted(mechanism, salted, salt, iterations)


def verifier_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> Verifier:
    """From a salted password, as AlterUserScramCredentials carries it."""
    server_key = _hmac(mechanism, salted, b"Server Key")
    return Verifier(mechanism, salt, iterations, stored_key(mechanism, salted), server_key)


def proof_matches(verifier: Verifier, auth_message: bytes, proof: bytes) -> bool:
    """Whether who made the proof knows the password."""
    signature = _hmac(verifier.mechanism, verifier.stored_key, auth_message)
    if len(proof) != len(signature):
        return False
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    found = hashlib.new(HASHES[verifier.mechanism], client_key).digest()
    return hmac.compare_digest(found, verifier.stored_key)


def server_signature(verifier: Verifier, auth_message: bytes) -> bytes:
    return _hmac(verifier.mechanism, verifier.server_key, auth_message)


def client_proof(mechanism: str, salted: bytes, auth_message: bytes) -> bytes:
    client_key = _hmac(mechanism, salted, b"Client Key")
    signature = _hmac(mechanism, hashlib.new(HASHES[mechanism], client_key).digest(), auth_message)
    return bytes(a ^ b for a, b in zip(client_key, signature, strict=True))


def _hmac(mechanism: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, HASHES[mechanism])


# --- messages ----------------------------------------------------------------------------------


class ClientFirst(NamedTuple):
    header: str  # the channel's part, `n,,`
    bare: str  # the rest, which is signed
    user: str
    nonce: str


class ServerFirst(NamedTuple):
    nonce: str
    salt: bytes
    iterations: int


class ClientFinal(NamedTuple):
    without_proof: str
    channel: bytes
    nonce: str
    proof: bytes


def encode_name(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def decode_name(name: str) -> str:
    """Raises SaslAuthenticationFailed where '=' stands for nothing."""
    decoded = name.replace("=2C", ",").replace("=3D", "=")
    if encode_name(decoded) != name:
        raise malformed("a name")
    return decoded


def read_client_first(message: bytes) -> ClientFirst:
    text = _text(message)
    binding, _, rest = text.partition(",")
    authorization, _, bare = rest.partition(",")
    if binding not in ("n", "y"):
        raise SaslAuthenticationFailed("Channel binding is not offered: use SCRAM without -PLUS.")
    name, nonce, *extensions = bare.split(",") if "," in bare else ("", "")
    if not name.startswith("n=") or not nonce.startswith("r=") or not 2 < len(nonce) <= NONCE_CHARACTERS_MAX:
        raise malformed("the client's first message")
    _refuse_extensions(extensions)
    user = decode_name(name[2:])
    if authorization and decode_name(authorization.removeprefix("a=")) != user:
        raise SaslAuthenticationFailed("Nobody may act in another user's name.")
    return ClientFirst(f"{binding},{authorization},", bare, user, nonce[2:])


def _refuse_extensions(extensions: list[str]) -> None:
    for extension in extensions:
        if extension.startswith("m="):
            raise SaslAuthenticationFailed("A mandatory extension of SCRAM is not known here.")
        if extension.startswith("tokenauth"):
            raise SaslAuthenticationFailed("There are no delegation tokens: log in with the user's password.")


def server_first(nonce: str, verifier: Verifier) -> str:
    return f"r={nonce},s={b64encode(verifier.salt).decode()},i={verifier.iterations}"


def read_server_first(message: bytes) -> ServerFirst:
    fields = _fields(_text(message), "rsi", "the server's first message")
    if not fields["i"].isdecimal() or not ITERATIONS_MIN <= int(fields["i"]) <= ITERATIONS_MAX:
        raise SaslAuthenticationFailed(
            f"The server asks for {fields['i']} iterations, not {ITERATIONS_MIN} to {ITERATIONS_MAX}."
        )
    return ServerFirst(fields["r"], _bytes(fields["s"]), int(fields["i"]))


def read_client_final(message: bytes) -> ClientFinal:
    text = _text(message)
    without_proof, _, proof = text.rpartition(",p=")
    fields = _fields(without_proof, "cr", "the client's final message")
    return ClientFinal(without_proof, _bytes(fields["c"]), fields["r"], _bytes(proof))


def _fields(text: str, wanted: str, what: str) -> dict[str, str]:
    fields = [part.partition("=") for part in text.split(",")]
    names = "".join(name for name, _, _ in fields[: len(wanted)])
    if names != wanted or not all(value for _, _, value in fields):
        raise malformed(what)
    return {name: value for name, _, value in fields}


def _text(message: bytes) -> str:
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise malformed("the message") from None
    if "\0" in text:
        raise malformed("the message")
    return text


def _bytes(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise malformed("base64") from None


def malformed(what: str) -> SaslAuthenticationFailed:
    return SaslAuthenticationFailed(f"SCRAM: {what} can't be read.")
