"""SaslHandshake (17), versions 0–1: the client chooses how it logs in; messages follow in SaslAuthenticate.

Version 0, after which the messages would come as they are, without headers, closes the connection. Clients
look whether it is listed before they speak version 1, so it is.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasSecurity
from postroad.errors import ApiError, IllegalSaslState, ProtocolError
from postroad.wire.messages import sasl_handshake as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(before_login=True)


class Uses(HasSecurity, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    if call.version == 0:
        raise ProtocolError("SaslHandshake version 0 is not spoken: send 1, then SaslAuthenticate")
    request, login = codec.decode_request(call.body, call.version), call.connection.login
    response = codec.SaslHandshakeResponse()
    try:
        if login is None:
            raise IllegalSaslState("Nobody is asked for a password here.")
        response.mechanisms = node.security.mechanisms(call.connection)
        login.begin(request.mechanism)
    except ApiError as error:
        response.error_code = error.code
    return codec.encode_response(response, call.version)
