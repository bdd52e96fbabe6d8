"""SaslAuthenticate (36), versions 0–2: one message of a login, there and back.

A failure is answered after a tenth of a second, and nothing but the end of the connection follows it. The
last
answer says how long the session lasts (KIP-368); the same user may log in again on the connection meanwhile.
"""

from __future__ import annotations

from typing import Final

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.login import Login
from postroad.errors import ApiError, IllegalSaslState
from postroad.wire.messages import sasl_authenticate as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(before_login=True)


def handle(_: object, call: Call) -> Result:
    message = bytes(codec.decode_request(call.body, call.version).auth_bytes)
    if call.connection.login is None:
        refusal = IllegalSaslState()
        response = codec.SaslAuthenticateResponse(refusal.code, str(refusal))
        return codec.encode_response(response, call.version)
    call.connection.login.take_turn()
    return _answer(call.connection.login, message, call.version)


async def _answer(login: Login, message: bytes, version: int) -> bytes:
    try:
        answer = await login.respond(message)
        response = codec.SaslAuthenticateResponse(0, None, answer, login.session_ms)
    except ApiError as error:
        response = codec.SaslAuthenticateResponse(error.code, str(error))
    return codec.encode_response(response, version)
