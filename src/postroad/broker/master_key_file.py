"""The file of the cluster's master key: where it is, and how it comes into being.

One that a setting names must be there. Without a name it lies in the data directory, and is made where it is
missing; nodes that one process starts share the one of that process's directory.

Beside it lies the gateways' key, which is derived from it: a gateway needs no more, and can't find out the
master key by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from postroad.config import Settings
from postroad.errors import ConfigurationError
from postroad.log.disk import Disk, read_file
from postroad.security.master_key import GATEWAY_USER, KEY_BYTES, machine_password, read_key

KEY_FILE: Final = "master.key"
GATEWAY_KEY_FILE: Final = "gateway.key"
KEY_FILE_BYTES_MAX: Final = 1024


def master_key_path(settings: Settings) -> str:
    return settings.security.master_key_file or str(settings.data.dir.absolute() / KEY_FILE)


def gateway_key_path(settings: Settings) -> str:
    return str(settings.data.dir.absolute() / GATEWAY_KEY_FILE)


def read_or_make(disk: Disk, settings: Settings, randbytes: Callable[[int], bytes]) -> bytes:
    """The key; the gateways' key is written, too. Blocks on the disk. Raises ConfigurationError."""
    key = _read_or_make(disk, settings, randbytes)
    path, text = gateway_key_path(settings), machine_password(key, GATEWAY_USER).encode() + b"\n"
    try:
        is_there = read_file(disk, path, KEY_FILE_BYTES_MAX) == text
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        disk.replace(path, text)
    return key


def _read_or_make(disk: Disk, settings: Settings, randbytes: Callable[[int], bytes]) -> bytes:
    path = master_key_path(settings)
    try:
        return read_key(read_file(disk, path, KEY_FILE_BYTES_MAX).decode())
    except FileNotFoundError:
        if settings.security.master_key_file:
            raise ConfigurationError(f"security.master_key_file: there is no {path}.") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the master key in {path} can't be used: {error}.") from None
    key = randbytes(KEY_BYTES)
    disk.replace(path, key.hex().encode() + b"\n")
    return key
