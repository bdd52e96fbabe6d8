"""SASL exchanges as state machines: each is told the peer's message and says the next one.

A server's exchange ends with a user who has shown the password (`user`), or with SaslAuthenticationFailed.
Who
does not exist fails as a wrong password does, by the same steps. PLAIN carries the password itself, whose
check takes a while: the exchange hands it back (`PasswordCheck`), and the shell hashes in a thread. So does
OAUTHBEARER (RFC 7628) with the token that it carries (`TokenCheck`). Where the RFC has a server say why in
JSON before it fails, this one fails at once: Kafka's SaslAuthenticate has a field for that.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from postroad.errors import SaslAuthenticationFailed
from postroad.security import scram
from postroad.security.scram import Verifier

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (SCRAM_SHA_256, SCRAM_SHA_512, PLAIN, OAUTHBEARER)

PASSWORD_CHARACTERS_MAX: Final = 1024
TOKEN_BYTES_MAX: Final = 16 * 1024  # those of a user in hundreds of groups have some 10,000

# A failure is told so long after the message came, or twice as long and so on: when shows nothing of why, nor
# of how long the check took, which differs between users.
FAILURE_S: Final = 0.1
EARLY_S: Final = 0.005  # timers may be a millisecond or two early

FAILED: Final = "The user or the password is wrong."

# The verifier of a user, one that nobody can meet where there is no such user.
FindVerifier = Callable[[str], Verifier]


def failure_pause_s(took_s: float) -> float:
    """How long to wait before a failure is told that it took so long to find out."""
    return FAILURE_S + EARLY_S - took_s % FAILURE_S


class PasswordCheck(NamedTuple):
    """What is left to be done: hash the password and compare."""

    user: str
    password: str
    verifier: Verifier

    def passes(self) -> bool:
        return self.verifier.matches(self.password)


class TokenCheck(NamedTuple):
    """What is left to be done: find out whose token it is."""

    token: str


class ServerExchange(Protocol):
    user: str | None  # who has been authenticated; None: nobody yet
    tried: str  # who the client says it is
    verifier: Verifier | None  # with which the user was authenticated

    def respond(self, message: bytes) -> bytes | PasswordCheck | TokenCheck:
        """Raises SaslAuthenticationFailed; the exchange is over then."""


class ScramServer:
    def __init__(self, find: FindVerifier, nonce: str) -> None:
        self.user: str | None = None
        self.tried = ""
        self._find = find
        self._nonce = nonce
        self.verifier: Verifier | None = None
        self._first: scram.ClientFirst | None = None
        self._verifier: Verifier | None = None
        self._server_first = ""

    def respond(self, message: bytes) -> bytes:
        if self._first is None:
            return self._begin(message)
        return self._finish(message, self._first)

    def _begin(self, message: bytes) -> bytes:
        first = self._first = scram.read_client_first(message)
        self.tried = first.user
        self._verifier = self._find(first.user)
        self._server_first = scram.server_first(first.nonce + self._nonce, self._verifier)
        return self._server_first.encode()

    def _finish(self, message: bytes, first: scram.ClientFirst) -> bytes:
        final, verifier = scram.read_client_final(message), self._verifier
        self._verifier = None
        if verifier is None:
            raise SaslAuthenticationFailed("SCRAM: the exchange is over.")
        agreed = first.nonce + self._nonce
        # librdkafka before 2.6.1 says its own part twice (its #4895); the proof is over what was said.
        if final.nonce not in (agreed, first.nonce + agreed):
            raise SaslAuthenticationFailed("SCRAM: the nonce is another one.")
        if final.channel != first.header.encode():
            raise SaslAuthenticationFailed("SCRAM: the channel is another one.")
        auth_message = ",".join((first.bare, self._server_first, final.without_proof)).encode()
        if not scram.proof_matches(verifier, auth_message, final.proof):
            raise SaslAuthenticationFailed(FAILED)
        self.user, self.verifier = first.user, verifier
        return b"v=" + b64encode(scram.server_signature(verifier, auth_message))


class PlainServer:
    """`user` is known to who has made the check."""

    def __init__(self, find: FindVerifier) -> None:
        self.user: str | None = None
        self.verifier: Verifier | None = None
        self.tried = ""
        self._find = find

    def respond(self, message: bytes) -> PasswordCheck:
        try:
            authorization, user, password = message.decode().split("\0")
        except ValueError:
            raise SaslAuthenticationFailed("PLAIN: the message can't be read.") from None
        if not user or not password or len(password) > PASSWORD_CHARACTERS_MAX:
            raise SaslAuthenticationFailed("PLAIN: a user and a password are needed.")
        self.tried = user
        if authorization not in ("", user):
            raise SaslAuthenticationFailed("Nobody may act in another user's name.")
        return PasswordCheck(user, password, self._find(user))


class BearerServer:
    """`user` is known to who has made the check. Extensions are passed over."""

    def __init__(self) -> None:
        self.user: str | None = None
        self.verifier: Verifier | None = None
        self.tried = ""

    def respond(self, message: bytes) -> TokenCheck:
        header, *pairs = message.split(b"\x01")
        binding, comma, authorization = header.partition(b",")
        shown = [pair[len(b"auth=") :] for pair in pairs if pair.startswith(b"auth=")]
        if binding != b"n" or not comma or pairs[-2:] != [b"", b""] or len(shown) != 1:
            raise SaslAuthenticationFailed("OAUTHBEARER: the message can't be read.")
        scheme, _, token = shown[0].partition(b" ")
        if scheme.lower() != b"bearer" or not 0 < len(token) <= TOKEN_BYTES_MAX or not token.isascii():
            raise SaslAuthenticationFailed(
                f"OAUTHBEARER: a token of at most {TOKEN_BYTES_MAX} bytes is needed."
            )
        if authorization != b",":
            raise SaslAuthenticationFailed("OAUTHBEARER: the token says who it is; leave the other name out.")
        return TokenCheck(token.strip().decode())


class ClientExchange(Protocol):
    """`begin` says the first message; then `respond` the next one, None when the server has proven itself."""

    mechanism: str

    def begin(self) -> bytes: ...

    def respond(self, message: bytes) -> bytes | None:
        """Raises SaslAuthenticationFailed if the server can't be trusted."""


class ScramClient:
    def __init__(self, mechanism: str, user: str, password: str, nonce: str) -> None:
        self.mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self._bare = f"n={scram.encode_name(user)},r={nonce}"
        self._signature: bytes | None = None

    def begin(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def respond(self, message: bytes) -> bytes | None:
        if self._signature is None:
            return self._prove(message)
        if not hmac.compare_digest(message, b"v=" + b64encode(self._signature)):
            raise SaslAuthenticationFailed("The server does not know the password: it may be another one.")
        return None

    def _prove(self, message: bytes) -> bytes:
        server = scram.read_server_first(message)
        if not server.nonce.startswith(self._nonce) or len(server.nonce) <= len(self._nonce):
            raise SaslAuthenticationFailed("SCRAM: the server's nonce does not begin with the client's.")
        mechanism = self.mechanism
        salted = scram.salted_password(mechanism, self._password, server.salt, server.iterations)
        without_proof = f"c=biws,r={server.nonce}"
        auth_message = ",".join((self._bare, message.decode(), without_proof)).encode()
        verifier = scram.verifier_of_salted(mechanism, salted, server.salt, server.iterations)
        self._signature = scram.server_signature(verifier, auth_message)
        proof = b64encode(scram.client_proof(mechanism, salted, auth_message)).decode()
        return f"{without_proof},p={proof}".encode()


class PlainClient:
    mechanism = PLAIN

    def __init__(self, user: str, password: str) -> None:
        self._message = f"\0{user}\0{password}".encode()

    def begin(self) -> bytes:
        return self._message

    def respond(self, message: bytes) -> bytes | None:
        return None
