"""One request to an endpoint, and nothing that the endpoint could do with us.

The name is resolved once, every address that it has is checked (`addresses`), and one of those is connected
to, with the name in TLS and in `Host`. Each address is checked once more where its socket is made, so nothing
that the library does with names and addresses gets past us. No redirects, no proxies, no cookies; what is
answered is read up to a bound, packed as it came, and thrown away unless somebody asks for it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Final, NamedTuple, Self

from aiohttp import (
    AddrInfoType,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    hdrs,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from postroad.gateway.webhooks import addresses
from postroad.gateway.webhooks.addresses import ForbiddenAddress
from postroad.gateway.webhooks.hook import WrongHook, check_url

CONNECT_S: Final = 5.0
ALL_S: Final = 30.0
ANSWER_BYTES_MAX: Final = 64 * 1024
IDLE_CONNECTION_S: Final = 15.0
RETRY_AFTER_MAX_S: Final = 3600.0
USER_AGENT: Final = "Postroad-Webhooks/1"


class HookAnswer(NamedTuple):
    """`status` 0: there was none, and `reason` says why. `body` has no more than was asked for."""

    status: int
    reason: str
    retry_after_s: float | None = None
    body: bytes = b""
    is_whole: bool = True  # the body has all that was answered
    content_type: str = ""
    content_encoding: str = ""

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class Sender:
    """`async with Sender(private=False) as sender`: any number of requests, to any endpoints."""

    def __init__(self, *, private: bool, tls: ssl.SSLContext | None = None) -> None:
        self._private = private
        self._tls = tls
        self._session: ClientSession

    async def __aenter__(self) -> Self:
        connector = TCPConnector(
            resolver=_CheckedResolver(self._private),
            use_dns_cache=False,
            limit=0,  # deliverers have bounds of their own; one must not wait for another
            socket_factory=self._socket,
            keepalive_timeout=IDLE_CONNECTION_S,
            ssl=self._tls if self._tls is not None else True,
        )
        self._session = ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            headers={hdrs.USER_AGENT: USER_AGENT},
            skip_auto_headers=(hdrs.ACCEPT_ENCODING,),
        )
        return self

    def _socket(self, info: AddrInfoType) -> socket.socket:
        """For a connection to this address. Raises ForbiddenAddress."""
        family, kind, protocol, _, address = info
        addresses.check(str(address[0]), private=self._private)
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], timeout_s: float, keep_bytes: int = 0
    ) -> HookAnswer:
        """Raises nothing that the endpoint, or the way to it, could cause."""
        timeout = ClientTimeout(total=min(timeout_s, ALL_S), connect=min(timeout_s, CONNECT_S))
        try:
            check_url(url, private=self._private)
            async with self._session.post(
                URL(url, encoded=True), data=body, headers=headers, timeout=timeout, allow_redirects=False
            ) as response:
                return await _answer(response, keep_bytes)
        except WrongHook as error:
            return HookAnswer(0, str(error))
        except TimeoutError:
            return HookAnswer(0, f"no answer within {min(timeout_s, ALL_S):g} s")
        except (ClientError, OSError, ValueError) as error:
            return HookAnswer(0, _cause(error))


class _CheckedResolver(AbstractResolver):
    def __init__(self, private: bool) -> None:
        self._private = private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """One bad address among good ones is enough to refuse: it may be the one that is connected to."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        results: list[ResolveResult] = []
        for kind, _, proto, _, address in found:
            ip = str(address[0])
            addresses.check(ip, private=self._private)
            results.append(
                ResolveResult(
                    hostname=host, host=ip, port=port, family=kind, proto=proto, flags=socket.AI_NUMERICHOST
                )
            )
        return results

    async def close(self) -> None:
        pass


async def _answer(response: ClientResponse, keep_bytes: int) -> HookAnswer:
    kept = bytearray()
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        kept += chunk[: max(0, keep_bytes - len(kept))]
        if size > ANSWER_BYTES_MAX:
            response.close()  # the rest is not waited for, so the connection can't be used again
            break
    return HookAnswer(
        response.status,
        f"status {response.status}",
        _retry_after(response),
        bytes(kept),
        size == len(kept),
        response.headers.get(hdrs.CONTENT_TYPE, ""),
        response.headers.get(hdrs.CONTENT_ENCODING, ""),
    )


def _retry_after(response: ClientResponse) -> float | None:
    text = response.headers.get(hdrs.RETRY_AFTER, "").strip()
    if text.isascii() and text.isdecimal():
        return min(float(text[:10]), RETRY_AFTER_MAX_S)
    try:
        wait_s = parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(wait_s, 0.0), RETRY_AFTER_MAX_S)


def _cause(error: Exception) -> str:
    """The rule that was broken, if one was; else what went wrong on the way."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ForbiddenAddress):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    return f"{type(error).__name__}: {error}"[:200]
