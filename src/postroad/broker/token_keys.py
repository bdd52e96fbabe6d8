"""The keys of the provider whose tokens are believed: from a file or an https URL, read again and again.

What can't be read, or is no JWKS, changes nothing: the keys from before stay in use. A token that was signed
with a key that is not there makes the node look for new ones, once in `AGAIN_S` at most, whoever shows how
many. No redirect is followed, and nothing of a token is sent anywhere.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from postroad.errors import ConfigurationError, SaslAuthenticationFailed
from postroad.log.disk import read_file

if TYPE_CHECKING:
    from postroad.broker.fair_checks import FairChecks
    from postroad.broker.runtime import Runtime
    from postroad.broker.tasks import Tasks
    from postroad.config.security import Security as SecuritySettings
    from postroad.security.tokens import IssuerKeys, Token

JWKS_BYTES_MAX: Final = 1024 * 1024
URL_AGAIN_S: Final = 600.0
AGAIN_S: Final = 10.0  # for a file; after a key that was not there, or a failure
ANSWER_S: Final = 5.0  # for the provider to answer

log = logging.getLogger(__name__)


class TokenKeys:
    def __init__(
        self, settings: SecuritySettings, runtime: Runtime, tasks: Tasks, checks: FairChecks
    ) -> None:
        """ConfigurationError says what is missing. A file is read here; it blocks on the disk."""
        try:
            from postroad.security import tokens
        except ImportError:
            raise ConfigurationError(
                "security.oauth_jwks needs one more package: pip install 'postroad[oauth]'."
            ) from None
        self._tokens = tokens
        self._issuer = tokens.Issuer(
            settings.oauth_issuer, settings.oauth_audience, settings.oauth_user_claim
        )
        self._url = settings.oauth_jwks
        self._runtime = runtime
        self._tasks = tasks
        self._checks = checks
        self._keys: IssuerKeys | None = None
        self._renewing: asyncio.Task[bool] | None = None
        self._renewed_at: float | None = None
        self._failure = ""
        if self._path is not None:
            try:
                self._keys = tokens.IssuerKeys.parse(self._read_file())
            except (OSError, ValueError) as error:
                raise ConfigurationError(f"security.oauth_jwks = {self._url!r}: {error}.") from None

    async def read(self, token: str, address: str) -> Token:
        """Whose token it is. Raises SaslAuthenticationFailed."""
        if self._keys is None:
            await self._renew()
        try:
            return await self._check(token, address)
        except self._tokens.UnknownKey:
            if not await self._renew():
                raise
        return await self._check(token, address)

    async def keep_current(self) -> None:
        """For as long as the node lives."""
        is_file = self._path is not None
        if is_file:  # which has been read
            await asyncio.sleep(AGAIN_S)
        while True:
            await self._renew()
            await asyncio.sleep(AGAIN_S if self._failure or is_file else URL_AGAIN_S)

    # --- helpers

    async def _check(self, token: str, address: str) -> Token:
        keys, now_s = self._keys, self._runtime.clock.now_ms() / 1000
        if keys is None:
            raise SaslAuthenticationFailed("The token can't be verified now: its issuer's keys can't be had.")
        found: Token = await self._checks.call(address, lambda: keys.read(token, self._issuer, now_s))
        return found

    async def _renew(self) -> bool:
        """Look for new keys, unless that was done a moment ago; whether there are some now."""
        if self._renewing is None:
            if self._renewed_at is not None and self._now() - self._renewed_at < AGAIN_S:
                return False
            self._renewing = self._tasks.start(self._fetch(), "renew-token-keys")
        return await asyncio.shield(self._renewing)

    async def _fetch(self) -> bool:
        try:
            text = await (self._download() if self._path is None else self._checks.call("", self._read_file))
            self._keys = self._tokens.IssuerKeys.parse(text)
            self._failure = ""
        except (OSError, ValueError, TimeoutError) as error:
            if str(error) != self._failure:
                log.warning("the keys of tokens can't be read from %s: %s", self._url, error)
            self._failure = str(error) or type(error).__name__
            return False
        finally:
            self._renewing, self._renewed_at = None, self._now()
        return True

    @property
    def _path(self) -> str | None:
        """None: it is a URL."""
        address = urlsplit(self._url)
        if address.scheme in ("http", "https"):
            return None
        return unquote(address.path) if address.scheme == "file" else self._url

    def _read_file(self) -> bytes:
        assert self._path is not None, "asked before"
        return read_file(self._runtime.disk, self._path, JWKS_BYTES_MAX)

    async def _download(self) -> bytes:
        """Raises ValueError, OSError, TimeoutError."""
        import aiohttp  # only where there is a provider

        timeout = aiohttp.ClientTimeout(total=ANSWER_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session,
                session.get(self._url, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    raise ValueError(f"the answer is HTTP {response.status}")
                text = bytearray()
                async for piece in response.content.iter_any():
                    text += piece
                    if len(text) > JWKS_BYTES_MAX:
                        raise ValueError(f"the answer has more than {JWKS_BYTES_MAX} bytes")
                return bytes(text)
        except aiohttp.ClientError as error:
            raise ValueError(str(error)) from None

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
