"""TLS in front of a stream: the same bytes arrive, whatever the stream takes and gives at a time."""

from __future__ import annotations

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from random import Random
from time import time

import pytest

from postroad.system.certificates import ClientFiles, ServerFiles, client_context, server_context
from postroad.system.stream import Stream
from postroad.system.tls_handshake import HandshakeFailed, shake_hands
from postroad.system.tls_stream import CALLED_FROM, ENCRYPTED_BYTES_MAX, RECEIVED_BYTES, TlsStream
from tests.certificates import Authority, Pair
from tests.system.streams import Moody, Sender, pair_of_streams, receive

BYTES = Random(1).randbytes(3_000_000)


class MemoryFile:
    """A file as `Stream.send_file` reads it."""

    def fileno(self) -> int:
        raise AssertionError("its bytes must be encrypted")

    def read(self, position: int, length: int) -> bytes:
        return BYTES[position : position + length]


@pytest.fixture
def server(pair: Pair) -> ssl.SSLContext:
    return server_context(ServerFiles(*pair), time())


@pytest.fixture
def client(authority: Authority) -> ssl.SSLContext:
    return client_context(ClientFiles(ca=authority.ca))


async def shaken(
    near: Stream, far: Stream, client: ssl.SSLContext, server: ssl.SSLContext
) -> tuple[TlsStream, TlsStream]:
    async with asyncio.timeout(10):
        return await asyncio.gather(
            shake_hands(near, client, server_name="localhost"), shake_hands(far, server)
        )


@pytest.mark.parametrize("seed", range(12))
async def test_bytes_arrive_whole_over_a_moody_stream(
    seed: int, client: ssl.SSLContext, server: ssl.SSLContext
) -> None:
    random = Random(seed)
    near, far = pair_of_streams()
    near_tls, far_tls = await shaken(Moody(near, random), Moody(far, random), client, server)
    ways = {
        "send": lambda at: near_tls.send(BYTES[at : at + random.randrange(1, 400_000)]),
        "pieces": lambda at: near_tls.send_pieces([BYTES[at : at + 5], BYTES[at + 5 : at + 9_000]]),
        "file": lambda at: near_tls.send_file(MemoryFile(), at, len(BYTES) - at),
    }
    way = ways[list(ways)[seed % 3]]
    size = 200_000 if seed % 3 == 1 else len(BYTES)
    sender = Sender(near_tls, asyncio.get_running_loop())
    space = random.choice([100, 16 * 1024, 100_000])
    size = min(size, space * 1000)
    async with asyncio.timeout(10):
        _, received = await asyncio.gather(sender.send(way, size), receive(far_tls, size, space))
    assert received == BYTES[:size]
    near_tls.close()
    far_tls.close()


def test_loops_in_two_threads_do_not_disturb_each_other(
    client: ssl.SSLContext, server: ssl.SSLContext
) -> None:
    """Each receives into a space of its own: a client may run in any thread of a program."""

    async def transfer() -> bool:
        near, far = pair_of_streams()
        near_tls, far_tls = await shaken(near, far, client, server)
        sender = Sender(near_tls, asyncio.get_running_loop())
        sending = sender.send(lambda at: near_tls.send(BYTES[at : at + 50_000]), len(BYTES))
        _, received = await asyncio.gather(sending, receive(far_tls, len(BYTES)))
        near_tls.close()
        far_tls.close()
        return received == BYTES

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(lambda _: asyncio.run(transfer()), range(8)))


async def receive_frame(stream: TlsStream, size: int) -> tuple[int, int]:
    """As a connection does that knows from its first bytes how long a frame is: how many bytes came of it,
    and with how many calls."""
    loop, space = asyncio.get_running_loop(), memoryview(bytearray(size))
    done: asyncio.Future[None] = loop.create_future()
    came = calls = 0

    def readable() -> None:
        nonlocal came, calls
        calls += 1
        try:
            count = stream.receive_into(space[came:])
        except BlockingIOError:
            return
        if not came:
            stream.expect(size - count)
        came += count
        if came == size or not count:
            done.set_result(None)
            stream.stop_reading(loop)

    stream.start_reading(loop, readable)
    async with asyncio.timeout(10):
        await done
    return came, calls


async def send_pieces(stream: TlsStream, size: int, piece: int, pause_s: float = 0.0) -> None:
    sender = Sender(stream, asyncio.get_running_loop())

    async def send(start: int, end: int) -> None:
        await sender.send(lambda done: stream.send(BYTES[start + done : end]), end - start)

    for at in range(0, size, piece):
        await send(at, min(size, at + piece))
        await asyncio.sleep(pause_s)


@pytest.mark.parametrize("seed", range(8))
async def test_frames_arrive_to_their_end_however_they_are_cut(
    seed: int, client: ssl.SSLContext, server: ssl.SSLContext
) -> None:
    """The next one is sent when the one before is there: whoever waits for more of it waits for ever.

    What is there at once of some frames is received in two pieces, of which the first ends within a record.
    """
    random = Random(seed)
    near, far = await shaken(*pair_of_streams(), client, server)
    for _ in range(30):
        at_once = random.randrange(RECEIVED_BYTES + CALLED_FROM - 13_000, RECEIVED_BYTES + CALLED_FROM)
        size = random.choice([200, 150_000, random.randrange(1, 1_000_000), at_once, at_once])
        sending = asyncio.create_task(
            send_pieces(near, size, size if size == at_once else random.choice([1_000, 16_384, 70_000]))
        )
        if size == at_once:
            await sending
        came, _ = await receive_frame(far, size)
        await sending
        assert came == size
    near.close()
    far.close()


async def test_a_large_frame_is_received_in_large_pieces(
    client: ssl.SSLContext, server: ssl.SSLContext
) -> None:
    near, far = await shaken(*pair_of_streams(), client, server)
    (came, calls), _ = await asyncio.gather(
        receive_frame(far, 1_000_000), send_pieces(near, 1_000_000, 10_000, pause_s=0.001)
    )
    assert came == 1_000_000
    assert calls < 40, "not one for each of a hundred pieces"
    near.close()
    far.close()


async def test_a_full_flush_ends_after_its_bound(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    near, far = pair_of_streams()
    near_tls, far_tls = await shaken(near, far, client, server)
    assert near_tls.send(BYTES) <= ENCRYPTED_BYTES_MAX
    near_tls.close()
    far_tls.close()


async def test_what_is_left_in_memory_is_told_though_the_socket_is_silent(
    client: ssl.SSLContext, server: ssl.SSLContext
) -> None:
    near, far = pair_of_streams()
    near_tls, far_tls = await shaken(near, far, client, server)
    near_tls.send(BYTES[:60_000])
    await asyncio.sleep(0.05)  # all of it is in the socket: one receive takes it
    assert await receive(far_tls, 60_000, at_once=1_000) == BYTES[:60_000]
    near_tls.close()
    far_tls.close()


async def test_what_is_left_in_memory_is_told_after_a_pause(
    client: ssl.SSLContext, server: ssl.SSLContext
) -> None:
    near, far = pair_of_streams()
    near_tls, far_tls = await shaken(near, far, client, server)
    near_tls.send(BYTES[:60_000])
    assert await receive(far_tls, 1_000) == BYTES[:1_000]  # stops reading after it
    assert await receive(far_tls, 59_000) == BYTES[1_000:60_000]
    near_tls.close()
    far_tls.close()


async def test_good_bye_is_the_end(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    near, far = pair_of_streams()
    near_tls, far_tls = await shaken(near, far, client, server)
    near_tls.send(b"last words")
    near_tls.close()
    assert await receive(far_tls, 100) == b"last words"
    far_tls.close()


async def test_a_connection_that_is_cut_off_is_the_end_too(
    client: ssl.SSLContext, server: ssl.SSLContext
) -> None:
    near, far = pair_of_streams()
    near_tls, far_tls = await shaken(near, far, client, server)
    near_tls.send(b"last words")
    near.close()
    assert await receive(far_tls, 100) == b"last words"
    far_tls.close()


async def test_a_flipped_bit_is_an_error(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    near, far = pair_of_streams()
    _, far_tls = await shaken(near, far, client, server)
    near.send(b"\x17\x03\x03\x00\x20" + bytes(32))
    with pytest.raises(OSError, match=r"(?i)bad record mac|decryption failed"):
        await receive(far_tls, 1)
    far_tls.close()
    near.close()


async def refused(
    near: Stream, far: Stream, client: ssl.SSLContext, server: ssl.SSLContext
) -> tuple[str, str]:
    """What both ends say of a handshake that fails."""

    async def one(shaking: object, stream: Stream) -> str:
        try:
            await shaking  # type: ignore[misc]
        except HandshakeFailed as failure:
            return str(failure.strerror)
        except OSError as error:
            return f"OSError {error}"
        finally:
            stream.close()
        return ""

    async with asyncio.timeout(10):
        return await asyncio.gather(
            one(shake_hands(near, client, server_name="localhost"), near), one(shake_hands(far, server), far)
        )


async def test_a_foreign_certificate_is_refused(
    server: ssl.SSLContext, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = Authority(tmp_path_factory.mktemp("elsewhere"), "Another CA")
    client = client_context(ClientFiles(ca=elsewhere.ca))
    said, told = await refused(*pair_of_streams(), client, server)
    assert said.startswith("TLS: the certificate is not valid here: ")
    assert told == "TLS: the peer does not know the CA of this certificate"


async def test_a_certificate_for_another_name_is_refused(
    authority: Authority, client: ssl.SSLContext
) -> None:
    other = authority.issue("other", "/CN=other", "subjectAltName=DNS:other.example")
    said, _ = await refused(*pair_of_streams(), client, server_context(ServerFiles(*other), time()))
    assert "not valid for 'localhost'" in said


async def test_a_certificate_for_another_name_is_taken_where_names_are_not_verified(
    authority: Authority,
) -> None:
    other = authority.issue("unverified", "/CN=other", "subjectAltName=DNS:other.example")
    client = client_context(ClientFiles(ca=authority.ca, verify_hostname=False))
    near, far = await shaken(*pair_of_streams(), client, server_context(ServerFiles(*other), time()))
    near.close()
    far.close()


async def test_an_old_version_is_refused(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    client.minimum_version = ssl.TLSVersion.TLSv1
    client.maximum_version = ssl.TLSVersion.TLSv1_1
    client.set_ciphers("ALL:@SECLEVEL=0")
    _, told = await refused(*pair_of_streams(), client, server)
    assert told == "TLS: the peer wants a version below 1.2"


async def test_version_1_2_is_taken(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    near, far = await shaken(*pair_of_streams(), client, server)
    near.send(b"words")
    assert await receive(far, 5) == b"words"
    near.close()
    far.close()


async def test_a_peer_without_tls_is_told_from_others(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    near, far = pair_of_streams()
    near.send(b"\x00\x00\x00\x20" + bytes(32))
    with pytest.raises(HandshakeFailed, match="without TLS to a listener with TLS"):
        await shake_hands(far, server)
    far.close()
    near.close()
    near, far = pair_of_streams()
    far.send(b"HTTP/1.1 400 Bad Request\r\n")
    with pytest.raises(HandshakeFailed, match="answers without TLS"):
        await shake_hands(near, client, server_name="localhost")
    far.close()
    near.close()


async def test_an_endless_handshake_is_refused(server: ssl.SSLContext) -> None:
    near, far = pair_of_streams()
    hello = b"\x16\x03\x01\x40\x00" + b"\x01\xff\xff\xff"  # a ClientHello of 16 MiB
    sending = asyncio.create_task(
        Sender(near, asyncio.get_running_loop()).send(
            lambda at: near.send((hello + bytes(400_000))[at:]), 300_000
        )
    )
    with pytest.raises(HandshakeFailed):
        async with asyncio.timeout(10):
            await shake_hands(far, server)
    sending.cancel()
    far.close()
    near.close()


async def test_a_client_without_a_certificate_is_refused_where_one_is_demanded(
    authority: Authority, pair: Pair, client: ssl.SSLContext
) -> None:
    server = server_context(ServerFiles(*pair, client_ca=authority.ca, client_required=True), time())
    near, far = pair_of_streams()
    with pytest.raises(HandshakeFailed, match="it showed no certificate, and one is demanded"):
        await asyncio.gather(shake_hands(near, client, server_name="localhost"), shake_hands(far, server))
    near.close()
    far.close()
