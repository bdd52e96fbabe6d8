"""A provider of tokens for tests: its keys, the JWKS that it publishes, and what it signs."""

from __future__ import annotations

import json
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

ISSUER: Final = "https://login.example.com"
AUDIENCE: Final = "postroad"
SECRET: Final = "the secret of every client"
GRANT: Final = "client_credentials"

Key = RSAKey | ECKey


@cache
def rsa_key(name: str, bits: int = 2048) -> RSAKey:
    return RSAKey.generate_key(bits, {"kid": name, "use": "sig"})


@cache
def ec_key(name: str, curve: str = "P-256") -> ECKey:
    return ECKey.generate_key(curve, {"kid": name})


def jwks(*keys: Key) -> bytes:
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()


def claims(user: str | None = "shop", **changed: Any) -> dict[str, Any]:
    """What a good token says; None leaves a claim out."""
    told = {"iss": ISSUER, "aud": AUDIENCE, "sub": user, "exp": int(time.time()) + 600, **changed}
    return {name: value for name, value in told.items() if value is not None}


def token(key: Key, algorithm: str = "", says: dict[str, Any] | None = None, **header: Any) -> str:
    """Signed by the key, with the header that belongs to it unless something else is asked for."""
    algorithm = algorithm or ("RS256" if isinstance(key, RSAKey) else "ES256")
    told = {"alg": algorithm, "kid": key.kid, **header}
    return jwt.encode(
        {name: value for name, value in told.items() if value is not None},
        claims() if says is None else says,
        key,
        algorithms=[algorithm],
    )


def unsigned(header: dict[str, Any], says: dict[str, Any], signature: bytes = b"") -> str:
    """A token that no library would make."""
    parts = (json.dumps(header).encode(), json.dumps(says).encode(), signature)
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


def settings(where: str | Path) -> dict[str, str]:
    """What a node is told that believes the provider."""
    return {
        "security_oauth_jwks": str(where),
        "security_oauth_issuer": ISSUER,
        "security_oauth_audience": AUDIENCE,
    }


class Published:
    """What the provider's web server answers, and what it was asked for."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.status = 200
        self.paths: list[str] = []
        self.url = ""
        self.token_url = ""  # where a client gets a token by its id and secret (RFC 6749, 4.4)
        self.given: list[str] = []  # the clients that got one

    @property
    def asked(self) -> int:
        return len(self.paths)


@contextmanager
def published(*keys: Key) -> Iterator[Published]:
    """The JWKS at an http URL on this machine, and tokens of the first key for who knows the secret."""
    shown = Published(jwks(*keys))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the library's name
            shown.paths.append(self.path)
            self.send_response(shown.status)
            if shown.status == 302:
                self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", str(len(shown.text)))
            self.end_headers()
            self.wfile.write(shown.text)

        def do_POST(self) -> None:  # the library's name
            said = self.rfile.read(int(self.headers["Content-Length"])).decode()
            answer = _give_token(keys[0], self.headers.get("Authorization", ""), said)
            if answer:
                shown.given.append(answer["client"])
            content = json.dumps(answer or {"error": "invalid_client"}).encode()
            self.send_response(200 if answer else 401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    shown.url = f"http://127.0.0.1:{server.server_port}/jwks.json"
    shown.token_url = f"http://127.0.0.1:{server.server_port}/token"
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield shown
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _give_token(key: Key, authorization: str, said: str) -> dict[str, Any] | None:
    """What the endpoint answers; None: the client is not known, or asks for something else."""
    scheme, _, shown = authorization.partition(" ")
    if scheme != "Basic" or parse_qs(said).get("grant_type") != [GRANT]:
        return None
    client, _, secret = b64decode(shown).decode().partition(":")
    if secret != SECRET:
        return None
    given = token(key, says=claims(client, iat=int(time.time())))
    return {"access_token": given, "token_type": "Bearer", "expires_in": 600, "client": client}
