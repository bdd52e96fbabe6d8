"""A web hook: where a subscription's messages go, and how. It is in the group config `postroad.webhook`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec
from yarl import URL

from postroad.gateway.webhooks import addresses, signature
from postroad.gateway.webhooks.addresses import ForbiddenAddress

CONFIG: Final = "postroad.webhook"
URL_MAX: Final = 2048
SECRET_MAX: Final = 256
CONCURRENCY_MAX: Final = 64
RATE_MAX: Final = 100_000.0
TIMEOUT_MS_MAX: Final = 30_000
HEADERS_MAX: Final = 20
HEADER_CHARACTERS_MAX: Final = 1024

_VISIBLE: Final = re.compile(r"[!-~]+")
_HOST_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE: Final = re.compile(r"[ -~]*")
# Ours, or what decides how the request is read.
_RESERVED: Final = ("ce-", "webhook-", "postroad-", "content-", "transfer-", "proxy-")
_RESERVED_NAMES: Final = frozenset(
    ("host", "connection", "keep-alive", "upgrade", "te", "trailer", "expect", "user-agent")
)


class Webhook(msgspec.Struct, frozen=True, omit_defaults=True):
    """`verified`: the endpoint has answered the challenge. `note`: why it is off, or not verified."""

    url: str
    secret: str
    concurrency: int = 8
    rate: float = 0.0
    timeout_ms: int = 10_000
    headers: Mapping[str, str] = {}
    reply_topic: str = ""  # where the endpoint's answers go; empty: nowhere
    enabled: bool = True
    verified: bool = False
    note: str = ""
    by: str = ""  # in whose name messages are sent (`Access.owner`); "": nobody was asked

    @property
    def is_live(self) -> bool:
        return self.enabled and self.verified


class WrongHook(ValueError):
    """It can't be used; the text says why."""


def read(text: str) -> Webhook | None:
    """From the config; None if there is none. Raises WrongHook: any admin client may have written it."""
    if not text:
        return None
    try:
        hook = msgspec.json.decode(text, type=Webhook)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WrongHook(f"{CONFIG} can't be read: {error}") from None
    return hook


def write(hook: Webhook) -> str:
    return msgspec.json.encode(hook).decode()


def check(hook: Webhook, *, private: bool) -> None:
    """Raises WrongHook. What the URL's name resolves to is looked at when it is connected to."""
    check_url(hook.url, private=private)
    if not 0 < len(hook.secret) <= SECRET_MAX:
        raise WrongHook(f"A secret has 1 to {SECRET_MAX} characters.")
    try:
        signature.key_of(hook.secret)
    except ValueError as error:
        raise WrongHook(str(error)) from None
    if not 1 <= hook.concurrency <= CONCURRENCY_MAX:
        raise WrongHook(f"concurrency must be 1 to {CONCURRENCY_MAX}.")
    if not 0 <= hook.rate <= RATE_MAX:
        raise WrongHook(f"rate must be 0 (no limit) to {RATE_MAX:,.0f} messages a second.")
    if not 1 <= hook.timeout_ms <= TIMEOUT_MS_MAX:
        raise WrongHook(f"timeout_ms must be 1 to {TIMEOUT_MS_MAX:,}.")
    _check_headers(hook.headers)
    if hook.reply_topic and not _TOPIC.fullmatch(hook.reply_topic):
        raise WrongHook("reply_topic must be a topic's name: 1 to 249 of a-z A-Z 0-9 . _ -")


def check_url(url: str, *, private: bool) -> None:
    """Raises WrongHook."""
    schemes = ("https", "http") if private else ("https",)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise WrongHook("The url can't be read.") from None
    if len(url) > URL_MAX or not _VISIBLE.fullmatch(url):
        raise WrongHook(f"A url has up to {URL_MAX:,} visible ASCII characters.")
    if parts.scheme not in schemes:
        raise WrongHook(f"The url must begin with {' or '.join(scheme + '://' for scheme in schemes)}.")
    if not parts.hostname or port == 0:
        raise WrongHook("The url names no host, or port 0.")
    _check_host(parts.hostname, url, private)
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise WrongHook("The url must have neither a user nor a fragment.")


def _check_host(host: str, url: str, private: bool) -> None:
    """An address in place of a name is never resolved, so it is looked at here."""
    if host != _host_to_connect(url):
        raise WrongHook("The url's host can't be read.")
    if addresses.parse(host) is None:
        if addresses.is_numeric(host) or not _HOST_NAME.fullmatch(host) or "[" in url.split("/")[2]:
            raise WrongHook("The url's host is neither a name nor an address that is written as usual.")
        return
    try:
        addresses.check(host, private=private)
    except ForbiddenAddress as error:
        raise WrongHook(str(error)) from None


def _host_to_connect(url: str) -> str | None:
    """As the library that connects reads it: two readers must find the same host."""
    try:
        return (URL(url, encoded=True).host or "").lower()
    except ValueError:
        return None


def _check_headers(headers: Mapping[str, str]) -> None:
    if len(headers) > HEADERS_MAX:
        raise WrongHook(f"There may be {HEADERS_MAX} headers.")
    for name, value in headers.items():
        lower = name.lower()
        if not _TOKEN.fullmatch(name) or lower.startswith(_RESERVED) or lower in _RESERVED_NAMES:
            raise WrongHook(f"{name[:40]!r} can't be given as a header.")
        if len(value) > HEADER_CHARACTERS_MAX or not _HEADER_VALUE.fullmatch(value):
            raise WrongHook(f"A header's value has up to {HEADER_CHARACTERS_MAX:,} visible ASCII characters.")
