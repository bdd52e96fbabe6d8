"""ApiVersions (18), versions 0–4: which APIs this node handles, derived from the handlers.

Any version is accepted: one that is not known is answered with UNSUPPORTED_VERSION in the layout of
version 0, with our own range in it, so that the client can ask again (KIP-511). The response header
never has tagged fields. The only feature is `transaction.version`: 2 tells clients to give each transaction
an epoch (KIP-890), as soon as all nodes of the cluster know that.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasDispatcher, HasImage, HasTransactions
from postroad.errors import UnsupportedVersion
from postroad.wire.messages import api_versions as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(before_login=True)


FEATURE: Final = "transaction.version"
OWN_EPOCHS: Final = 2  # each transaction has one
SHARED: Final = "postroad.shared.transactions"  # our own: `shared_transactions`


class Uses(HasDispatcher, HasImage, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    if not codec.MIN_VERSION <= call.version <= codec.MAX_VERSION:
        own = codec.ApiVersion(KEY, *VERSIONS)
        return codec.encode_response(codec.ApiVersionsResponse(UnsupportedVersion.code, [own]), 0)
    codec.decode_request(call.body, call.version)
    response = codec.ApiVersionsResponse(
        api_keys=[codec.ApiVersion(*versions) for versions in node.dispatcher.versions()]
    )
    if node.transactions.has_own_epochs:
        response.supported_features = [codec.SupportedFeatureKey(FEATURE, 1, OWN_EPOCHS)]
        response.finalized_features = [codec.FinalizedFeatureKey(FEATURE, OWN_EPOCHS, OWN_EPOCHS)]
        if node.transactions.may_be_shared:
            response.supported_features.append(codec.SupportedFeatureKey(SHARED, 1, 1))
            response.finalized_features.append(codec.FinalizedFeatureKey(SHARED, 1, 1))
        response.finalized_features_epoch = node.image.level  # features only ever come with a higher level
    return codec.encode_response(response, call.version)
