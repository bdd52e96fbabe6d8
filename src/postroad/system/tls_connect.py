"""Connections with TLS, as a client makes them."""

from __future__ import annotations

import ssl
from pathlib import Path

from postroad.system.certificates import ClientFiles, client_context
from postroad.system.stream import Connect, Stream
from postroad.system.tls_handshake import shake_hands


class TlsConnector:
    """Makes connections as a runtime does, with TLS in front of them."""

    def __init__(self, connect: Connect, files: ClientFiles) -> None:
        self._connect = connect
        self._files = files
        self._context: ssl.SSLContext | None = None
        self._read_at: dict[Path, float] = {}

    async def connect(self, host: str, port: int) -> Stream:
        """A stream to the address, or an OSError. ConfigurationError says which file can't be used."""
        context = self._current_context()
        stream = await self._connect(host, port)
        try:
            return await shake_hands(stream, context, server_name=host)
        except BaseException:
            stream.close()
            raise

    def _current_context(self) -> ssl.SSLContext:
        """Files that have changed are read again, so that new ones need no restart."""
        read_at = self._files.changed_at()
        if self._context is None or read_at != self._read_at:
            self._context, self._read_at = client_context(self._files), read_at
        return self._context
