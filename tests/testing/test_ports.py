"""The ports of a node that is down for a moment: nobody else is given them, and it gets them back."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from postroad.testing import Node, node


def place(address: str) -> tuple[str, int]:
    host, port = address.split(":")
    return host, int(port)


def is_free(address: str) -> bool:
    with socket.socket() as trying:
        try:
            trying.bind(place(address))
        except OSError:
            return False
    return True


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_port_is_kept_from_others_between_two_starts_and_given_back_at_the_end(how: str) -> None:
    with node() as running:
        bootstrap = running.bootstrap
        getattr(running, how)()
        assert not is_free(bootstrap)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(place(bootstrap))
        running.start()
        assert running.bootstrap == bootstrap
    assert is_free(bootstrap)


def test_port_of_one_who_is_about_to_let_go_is_waited_for(tmp_path: Path) -> None:
    """As the gateway of a node that was killed does, once it sees that."""
    stopped = Node(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        stopped._http_listen = f"127.0.0.1:{taken.getsockname()[1]}"
        stopped._hold_ports()
        assert not stopped._held
        threading.Timer(0.2, taken.close).start()
        stopped._hold_ports(patience_s=60)
    assert not is_free(stopped._http_listen)
    stopped.release_ports()
    assert is_free(stopped._http_listen)
