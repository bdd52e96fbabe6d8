"""One blocking connection to one node, for drivers and executors, where no event loop runs.

Rules that hold:
1. Answers come in the order of the requests. Sending and receiving are two calls, so that requests
   to several nodes can be under way at the same time.
2. Whatever interrupts a request (a timeout, a broken socket, Ctrl-C) ends the connection: nobody
   can tell any more which answer belongs to whom.
3. Every call ends within its timeout.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from struct import Struct
from typing import Any, Final

import numpy as np

from postroad import __version__
from postroad.client.connection import (
    CONNECT_TIMEOUT_S,
    FRAME_BYTES_MAX,
    common_version,
    decode_answer,
    frame_request,
)
from postroad.client.login import Credentials, exchange_of
from postroad.client.metadata import Address
from postroad.client.runtime import OPERATING_SYSTEM
from postroad.errors import (
    BrokerNotAvailable,
    NetworkException,
    ProtocolError,
    RequestTimedOut,
    UnsupportedVersion,
    by_code,
)
from postroad.wire.messages import api_versions, sasl_authenticate, sasl_handshake

JOINED_BYTES_MAX: Final = 64 * 1024
SESSION_SHARE: Final = 0.8  # of a session's time; then another connection is opened
_INT: Final = Struct(">i")


class Connection:
    """Connected, with the versions agreed on, once it is made. BrokerNotAvailable says why it can't be."""

    def __init__(
        self,
        address: Address,
        client_id: str,
        timeout_s: float = CONNECT_TIMEOUT_S,
        tls: ssl.SSLContext | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """With TLS and logged in, where that is asked for; SaslAuthenticationFailed if it is refused."""
        self.address = str(address)
        self.versions: Mapping[int, tuple[int, int]] = {}
        self.features: Mapping[str, int] = {}  # what all nodes of the cluster have, and its version
        self._client_id = client_id.encode()
        self._correlation = 0
        self._under_way: deque[tuple[int, Any, int]] = deque()  # correlation, api, version
        self._ends_at = inf  # when the session does
        self._socket: socket.socket | None = _connect(address, timeout_s, tls)
        self._agree_on_versions(timeout_s)
        if credentials is not None:
            self._log_in(credentials, timeout_s)

    @property
    def is_open(self) -> bool:
        """It can be used. One whose session ends soon is closed once nothing is under way."""
        if self._socket is not None and not self._under_way and time.monotonic() > self._ends_at:
            self.close()
        return self._socket is not None

    @property
    def is_waiting(self) -> bool:
        """An answer is still to be received."""
        return bool(self._under_way)

    def version(self, api: Any) -> int:
        """The highest version that both sides know; UnsupportedVersion if there is none."""
        return common_version(self.address, self.versions, api)

    def call(self, api: Any, body: Any, timeout_s: float, version: int | None = None) -> Any:
        """The answer to one request. RequestTimedOut or NetworkException; then rule 2 applies."""
        self.send(api, body, timeout_s, version)
        return self.receive(timeout_s)

    def send(self, api: Any, body: Any, timeout_s: float, version: int | None = None) -> None:
        """One request; its answer is to be had by `receive`."""
        version = self.version(api) if version is None else version
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        parts = frame_request(api, version, self._correlation, self._client_id, body)
        with self._unbroken(timeout_s) as connected:
            _send(connected, parts, time.monotonic() + timeout_s)
        self._under_way.append((self._correlation, api, version))

    def receive(self, timeout_s: float) -> Any:
        """The answer to the oldest request that has none yet. Records in it are views of what came."""
        correlation, api, version = self._under_way.popleft()
        with self._unbroken(timeout_s) as connected:
            deadline = time.monotonic() + timeout_s
            (length,) = _INT.unpack(_receive(connected, 4, deadline))
            if not _INT.size <= length <= FRAME_BYTES_MAX:
                raise ProtocolError(f"{self.address} sent a frame of {length} bytes: is it a Kafka port?")
            frame = _receive(connected, length, deadline)
            if _INT.unpack_from(frame)[0] != correlation:
                raise ProtocolError(f"{self.address} answered out of order.")
            return decode_answer(api, version, frame)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            self._under_way.clear()

    def _agree_on_versions(self, timeout_s: float) -> None:
        """A node that doesn't know the version of this request answers in version 0."""
        request = api_versions.ApiVersionsRequest(
            client_software_name="postroad-spark", client_software_version=__version__
        )
        answer = self.call(api_versions, request, timeout_s, api_versions.MAX_VERSION)
        if answer.error_code == UnsupportedVersion.code:
            answer = self.call(api_versions, request, timeout_s, 0)
        if answer.error_code:
            self.close()
            raise by_code(answer.error_code)
        self.versions = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
        self.features = {each.name: each.max_version_level for each in answer.finalized_features}

    def _log_in(self, credentials: Credentials, timeout_s: float) -> None:
        exchange = exchange_of(credentials, OPERATING_SYSTEM)
        begin = sasl_handshake.SaslHandshakeRequest(exchange.mechanism)
        answer = self.call(sasl_handshake, begin, timeout_s, version=1)
        message: bytes | None = exchange.begin()
        while not answer.error_code and message is not None:
            request = sasl_authenticate.SaslAuthenticateRequest(message)
            answer = self.call(sasl_authenticate, request, timeout_s)
            if not answer.error_code:
                message = exchange.respond(bytes(answer.auth_bytes))
                if answer.session_lifetime_ms:
                    self._ends_at = time.monotonic() + SESSION_SHARE * answer.session_lifetime_ms / 1000
        if answer.error_code:
            self.close()
            told = getattr(answer, "error_message", None) or f"it offers no {exchange.mechanism}"
            raise by_code(answer.error_code, f"{self.address}: {told}")

    @contextmanager
    def _unbroken(self, timeout_s: float) -> Iterator[socket.socket]:
        """The socket, which ends with the first thing that goes wrong (rule 2)."""
        if self._socket is None:
            raise NetworkException(f"The connection to {self.address} has ended.")
        try:
            yield self._socket
        except TimeoutError:
            self.close()
            raise RequestTimedOut(f"{self.address} did not answer within {timeout_s:g} s.") from None
        except OSError as error:
            self.close()
            reason = error.strerror or "it was closed"
            raise NetworkException(f"The connection to {self.address} broke: {reason}.") from None
        except BaseException:
            self.close()
            raise


def _connect(address: Address, timeout_s: float, tls: ssl.SSLContext | None) -> socket.socket:
    try:
        connected = socket.create_connection(address, timeout_s)
    except ConnectionRefusedError:
        raise BrokerNotAvailable(f"nothing listens on {address}") from None
    except TimeoutError:
        raise BrokerNotAvailable(f"{address} does not take connections ({timeout_s:g} s)") from None
    except OSError as error:
        raise BrokerNotAvailable(f"can't connect to {address}: {error.strerror or error}") from None
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected if tls is None else _shake_hands(connected, address, tls)


def _shake_hands(connected: socket.socket, address: Address, tls: ssl.SSLContext) -> socket.socket:
    try:
        return tls.wrap_socket(connected, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        reason = f"its certificate is not believed: {error.verify_message}"
    except TimeoutError:
        reason = "no TLS handshake came to its end"
    except OSError as error:
        reason = f"no TLS: {getattr(error, 'reason', None) or error.strerror or error}"
    connected.close()
    raise BrokerNotAvailable(f"{address}: {reason}")


def _send(connected: socket.socket, parts: Sequence[bytes], deadline: float) -> None:
    """All of it. A long body is not copied to make one piece with what comes before it."""
    *head, body = parts
    pieces = [b"".join(parts)] if len(body) < JOINED_BYTES_MAX else [b"".join(head), body]
    for piece in pieces:
        connected.settimeout(max(0.001, deadline - time.monotonic()))
        connected.sendall(piece)


def _receive(connected: socket.socket, size: int, deadline: float) -> memoryview:
    """Exactly `size` bytes. Pages that nothing is written to cost no memory, so it follows what came."""
    view, filled = np.empty(size, dtype=np.uint8).data, 0  # a bytearray would be written twice
    while filled < size:
        connected.settimeout(max(0.001, deadline - time.monotonic()))
        received = connected.recv_into(view[filled:])
        if not received:
            raise ConnectionResetError
        filled += received
    return view
