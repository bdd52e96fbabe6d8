"""ApiVersions (18), versions 0–4: which APIs this node handles, derived from the handlers.

Any version is accepted: one that is not known is answered with UNSUPPORTED_VERSION in the layout of
version 0, with our own range in it, so that the client can ask again (KIP-511). The response header
never has tagged fields. No features are finalized: `transaction.version` must wait for transactions.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasDispatcher
from postroad.errors import UnsupportedVersion
from postroad.wire.messages import api_versions as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM


class Uses(HasDispatcher, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    if not codec.MIN_VERSION <= call.version <= codec.MAX_VERSION:
        own = codec.ApiVersion(KEY, *VERSIONS)
        return codec.encode_response(codec.ApiVersionsResponse(UnsupportedVersion.code, [own]), 0)
    codec.decode_request(call.body, call.version)
    response = codec.ApiVersionsResponse(
        api_keys=[codec.ApiVersion(*versions) for versions in node.dispatcher.versions()]
    )
    return codec.encode_response(response, call.version)
