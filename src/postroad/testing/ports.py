"""Ports of the loopback interface that are kept for a process while it does not run."""

from __future__ import annotations

import socket
import sys


def hold(address: str) -> socket.socket:
    """Take an address, host:port; with port 0 any free one, which the socket then tells.

    Until it is closed the kernel gives the port to nobody who asks for any. OSError if somebody has it.
    """
    host, _, port = address.rpartition(":")
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((host.strip("[]"), int(port)))
    except OSError:
        held.close()
        raise
    return held


def may_be_held(address: str) -> bool:
    """Linux lets a process listen on what another one holds without listening; others don't."""
    return sys.platform == "linux" and address != "" and not address.endswith(":0")
