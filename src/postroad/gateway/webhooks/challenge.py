"""The ownership challenge: an endpoint gets nothing before it has echoed a random token.

Else anybody could point a subscription at somebody else's server. The request is a POST of

    {"type": "postroad.webhook.challenge", "subscription": "orders", "challenge": "<token>"}

signed as every other, with the token in the header `Postroad-Challenge` too. The answer is a 2xx whose body
is the token, or {"challenge": "<token>"}.
"""

from __future__ import annotations

import hmac
import secrets
import time
from typing import Any, Final

import msgspec

from postroad.gateway.webhooks import signature
from postroad.gateway.webhooks.hook import Webhook
from postroad.gateway.webhooks.sender import HookAnswer, Sender

EVENT_TYPE: Final = "postroad.webhook.challenge"
TEST_TYPE: Final = "postroad.webhook.test"
ECHO_BYTES_MAX: Final = 1024


async def verify(sender: Sender, subscription: str, hook: Webhook) -> str:
    """Empty if the endpoint has passed, else why it has not."""
    token = secrets.token_urlsafe(32)
    body = msgspec.json.encode({"type": EVENT_TYPE, "subscription": subscription, "challenge": token})
    headers = {
        **hook.headers,
        "Content-Type": "application/json",
        "Postroad-Challenge": token,
        **signature.sign(hook.secret, f"challenge-{token[:16]}", int(time.time()), body),
    }
    answer = await sender.post(hook.url, body, headers, hook.timeout_ms / 1000, ECHO_BYTES_MAX)
    if not answer.is_success:
        return f"The challenge failed: {answer.reason}."
    if not _echoes(answer.body, token):
        return "The challenge failed: the answer is not its token."
    return ""


async def send_test(sender: Sender, subscription: str, hook: Webhook) -> HookAnswer:
    """A request that carries no message, signed as every other."""
    body = msgspec.json.encode({"type": TEST_TYPE, "subscription": subscription})
    headers = {
        **hook.headers,
        "Content-Type": "application/json",
        "Postroad-Test": "true",
        **signature.sign(hook.secret, f"test-{secrets.token_urlsafe(12)}", int(time.time()), body),
    }
    return await sender.post(hook.url, body, headers, hook.timeout_ms / 1000)


def _echoes(body: bytes, token: str) -> bool:
    echo: Any = body.strip()
    if echo.startswith(b"{"):
        try:
            said = msgspec.json.decode(echo, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        given = said.get("challenge")
        echo = given.encode() if isinstance(given, str) else b""
    return hmac.compare_digest(echo, token.encode())
