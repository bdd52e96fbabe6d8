"""The codec of an API of our own whose requests and answers are structs, written as MessagePack.

_codec = OwnCodec(NAME, MIN_VERSION, MAX_VERSION, Decoder(AnyQuestion), Decoder(Answer))
decode_request, encode_request = _codec.decode_request, _codec.encode_request
decode_response, encode_response = _codec.decode_response, _codec.encode_response
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec

from postroad.errors import ProtocolError
from postroad.wire.primitives import Buffer, unsupported
from postroad.wire.undecodable import UNDECODABLE

Request = TypeVar("Request")
Response = TypeVar("Response")
Either = TypeVar("Either")

_encoder: Final = msgspec.msgpack.Encoder()


class OwnCodec(Generic[Request, Response]):
    """Raises ProtocolError for what can't be read, and UnsupportedVersion."""

    def __init__(
        self,
        name: str,
        version_min: int,
        version_max: int,
        request: msgspec.msgpack.Decoder[Request],
        response: msgspec.msgpack.Decoder[Response],
    ) -> None:
        self._name = name
        self._versions = version_min, version_max
        self._request = request
        self._response = response

    def decode_request(self, body: Buffer, version: int) -> Request:
        return self._decode(self._request, "request", body, version)

    def encode_request(self, request: Request, version: int) -> bytes:
        return self._encode(request, version)

    def decode_response(self, body: Buffer, version: int) -> Response:
        return self._decode(self._response, "response", body, version)

    def encode_response(self, response: Response, version: int) -> bytes:
        return self._encode(response, version)

    def _decode(
        self, decoder: msgspec.msgpack.Decoder[Either], what: str, body: Buffer, version: int
    ) -> Either:
        self._check(version)
        try:
            return decoder.decode(body)
        except UNDECODABLE as error:
            raise ProtocolError(f"{self._name} {what} v{version} can't be read: {error}.") from None

    def _encode(self, message: object, version: int) -> bytes:
        self._check(version)
        return _encoder.encode(message)

    def _check(self, version: int) -> None:
        lowest, highest = self._versions
        if not lowest <= version <= highest:
            raise unsupported(self._name, version, lowest, highest)
