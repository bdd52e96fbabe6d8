"""A provider of tokens for tests: its keys, the JWKS that it publishes, and what it signs."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

ISSUER: Final = "https://login.example.com"
AUDIENCE: Final = "postroad"

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

    @property
    def asked(self) -> int:
        return len(self.paths)


@contextmanager
def published(*keys: Key) -> Iterator[Published]:
    """The JWKS at an http URL on this machine."""
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

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    shown.url = f"http://127.0.0.1:{server.server_port}/jwks.json"
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield shown
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
