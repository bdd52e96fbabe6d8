"""Requests and answers of Postroad's own APIs, as somebody hostile writes them: the peer is wrong, not we."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import msgspec
import pytest

from postroad.errors import ProtocolError, UnsupportedVersion
from postroad.wire import access_keys, backup, callers, nodes, peer, shared_transactions

MODULES = [access_keys, backup, callers, nodes, peer, shared_transactions]
DEEP = b"\x91" * 100_000
NO_TEXT = b"\xa2\xff\xfe"


def hostile(module: ModuleType) -> Iterator[bytes]:
    """Each field of each message with a text that is none, and with arrays in arrays."""
    yield from (b"", DEEP, b"\x81" + NO_TEXT + b"\x01")
    for kind in vars(module).values():
        if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
            continue
        config = kind.__struct_config__
        tag = {} if config.tag is None else {config.tag_field: config.tag}
        known = b"".join(msgspec.msgpack.encode(each) for pair in tag.items() for each in pair)
        for field in msgspec.structs.fields(kind):
            name = bytes([0x81 + len(tag)]) + known + msgspec.msgpack.encode(field.encode_name)
            yield from (name + NO_TEXT, name + DEEP)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.__name__))
@pytest.mark.parametrize("version", [0, 1])
def test_bytes_that_no_peer_would_send_are_the_peers_fault(module: ModuleType, version: int) -> None:
    seen = 0
    for body in hostile(module):
        for decode in (module.decode_request, module.decode_response):
            try:
                decode(body, version)  # other kinds of fields may take it
            except (ProtocolError, UnsupportedVersion):
                seen += 1
    assert seen > 10
