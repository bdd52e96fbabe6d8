"""TLS's handshake over a stream, from either end."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final

from postroad.system.stream import Stream
from postroad.system.tls_stream import TlsStream

RECEIVED_BYTES: Final = 16 * 1024  # at once; certificates take a few KiB
BYTES_MAX: Final = 128 * 1024  # from the peer until the handshake is done
HANDSHAKE: Final = 0x16  # the first byte that a peer who speaks TLS sends
ALERT: Final = 0x15
# To a peer who speaks without TLS: an alert (handshake failure) tells many clients, and ours, what is here.
REFUSAL: Final = b"\x15\x03\x01\x00\x02\x02\x28"

Run = Callable[[Callable[[], object]], Awaitable[Any]]


class HandshakeFailed(OSError):
    """Why there is no connection, for whoever reads the log."""


async def shake_hands(
    stream: Stream, context: ssl.SSLContext, *, server_name: str | None = None, run: Run | None = None
) -> TlsStream:
    """The stream with TLS in front of it; with a `server_name` from the client's end.

    `run` runs a step of the handshake elsewhere, in a thread: a signature takes half a millisecond and more.
    HandshakeFailed says what is wrong. There is no bound on time in here, and the stream is not closed.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    is_server = server_name is None
    tls = context.wrap_bio(incoming, outgoing, server_side=is_server, server_hostname=server_name)
    received = 0
    while True:
        try:
            finished = await _step(tls, run)
        except ssl.SSLError as error:
            await _send_alert(stream, outgoing)
            raise HandshakeFailed(error.errno, explain(error)) from None
        await _send(stream, outgoing)
        if finished:
            return TlsStream(stream, tls, incoming, outgoing)
        data = await _receive(stream)
        if not received:
            _check_first_byte(data, stream, is_server)
        received += len(data)
        if received > BYTES_MAX:
            raise HandshakeFailed(0, f"TLS: its handshake has more than {BYTES_MAX} bytes")
        incoming.write(data)


def explain(error: ssl.SSLError) -> str:
    """OpenSSL's reason in words that say what to look at."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: the certificate is not valid here: {error.verify_message.rstrip('.')}"
    reason = (error.reason or str(error)).lower().replace("_", " ")
    return f"TLS: {_REASONS.get(reason, reason)}"


_REASONS: Final = {
    "unsupported protocol": "the peer wants a version below 1.2",
    "tlsv1 alert unknown ca": "the peer does not know the CA of this certificate",
    "sslv3 alert certificate unknown": "the peer refused this certificate",
    "sslv3 alert bad certificate": "the peer refused this certificate",
    "sslv3 alert certificate expired": "the peer says that this certificate has expired",
    "tlsv1 alert protocol version": "the peer wants another version of TLS",
    "tlsv13 alert certificate required": "the peer demands a certificate",
    "peer did not return a certificate": "it showed no certificate, and one is demanded",
    "no shared cipher": "no cipher that both sides know",
}


async def _step(tls: ssl.SSLObject, run: Run | None) -> bool:
    """One step; True when no more are needed."""

    def step() -> bool:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    return step() if run is None else bool(await run(step))


def _check_first_byte(data: bytes, stream: Stream, is_server: bool) -> None:
    """Say what is wrong where one side speaks without TLS: OpenSSL's own words puzzle everybody."""
    if not data:
        hint = "" if is_server else "; it may be a listener without TLS"
        raise HandshakeFailed(0, f"TLS: it hung up before the handshake{hint}")
    if data[0] in (HANDSHAKE, ALERT):
        return
    if is_server:
        with contextlib.suppress(OSError):
            stream.send(REFUSAL)
        raise HandshakeFailed(
            0, "it speaks without TLS to a listener with TLS (in Kafka clients: security.protocol=SSL)"
        )
    raise HandshakeFailed(0, "it answers without TLS: name a listener with TLS, or leave TLS out")


async def _receive(stream: Stream) -> bytes:
    space = bytearray(RECEIVED_BYTES)
    while True:
        try:
            count = stream.receive_into(memoryview(space))
        except (BlockingIOError, InterruptedError):
            await _readable(stream)
        else:
            return bytes(space[:count])


async def _readable(stream: Stream) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    stream.start_reading(loop, ready.set)
    try:
        await ready.wait()
    finally:
        stream.stop_reading(loop)


async def _send(stream: Stream, outgoing: ssl.MemoryBIO) -> None:
    loop = asyncio.get_running_loop()
    unsent = outgoing.read()
    while unsent:
        try:
            unsent = unsent[stream.send(unsent) :]
        except (BlockingIOError, InterruptedError):
            ready = asyncio.Event()
            loop.add_writer(stream.fileno(), ready.set)
            try:
                await ready.wait()
            finally:
                loop.remove_writer(stream.fileno())


async def _send_alert(stream: Stream, outgoing: ssl.MemoryBIO) -> None:
    """Tell the peer why, if that can be done at once."""
    try:
        stream.send(outgoing.read())
    except OSError:
        return
