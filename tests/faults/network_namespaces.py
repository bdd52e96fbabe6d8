"""Machines as network namespaces on one bridge, whose links can be cut one by one.

Each machine has a namespace of its own with an address of its own; the bridge lies in one more, where the
clients are. Rules of nftables exist inside of these namespaces only, and all of it goes with them. Cuts drop
packets without a word, as a broken switch does: connections stay open, and nobody hears anything.

    with network(["n1", "n2", "n3", "e1"]) as net:
        net.command("n1", ["postroad", …])  # what runs there
        net.cut("n1", ["n2", "n3"])  # neither hears the other
        net.heal("n1")
"""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pytest

CLONE_NEWNET = 0x40000000
SUBNET = "10.77.0"
HUB_ADDRESS = f"{SUBNET}.254"
IN, OUT = "input", "output"

_numbers = itertools.count()


class Namespaces:
    """The machines by their names. `hub` is where the clients are."""

    def __init__(self, machines: Sequence[str]) -> None:
        self._prefix = f"pr{os.getpid() % 100_000}-{next(_numbers)}"
        self.machines = list(machines)
        self._addresses = {name: f"{SUBNET}.{number}" for number, name in enumerate(machines, 1)}

    @property
    def hub(self) -> str:
        return f"{self._prefix}-hub"

    def address(self, machine: str) -> str:
        return self._addresses[machine]

    def command(self, machine: str, command: Sequence[str]) -> list[str]:
        """The command, run on that machine."""
        return ["ip", "netns", "exec", self._name(machine), *command]

    def build(self) -> None:
        _run("ip", "netns", "add", self.hub)
        in_hub = ("ip", "-n", self.hub)
        _run(*in_hub, "link", "set", "lo", "up")
        _run(*in_hub, "link", "add", "bridge", "type", "bridge")
        _run(*in_hub, "addr", "add", f"{HUB_ADDRESS}/24", "dev", "bridge")
        _run(*in_hub, "link", "set", "bridge", "up")
        for number, machine in enumerate(self.machines):
            self._add(machine, f"port{number}")

    def _add(self, machine: str, port: str) -> None:
        name = self._name(machine)
        _run("ip", "netns", "add", name)
        _run("ip", "-n", self.hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "-n", self.hub, "link", "set", port, "master", "bridge", "up")
        _run("ip", "-n", name, "addr", "add", f"{self.address(machine)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _run("ip", "-n", name, "link", "set", device, "up")
        rules = "add table inet cut"
        for hook in (IN, OUT):
            rules += f"; add chain inet cut {hook} {{ type filter hook {hook} priority 0; }}"
        self._nft(machine, rules)

    def cut(self, machine: str, others: Iterable[str] | None = None, ways: Iterable[str] = (IN, OUT)) -> None:
        """Drop what goes between the machine and the others; None: all of them, and the clients."""
        addresses = ", ".join(map(self.address, others)) if others is not None else f"{SUBNET}.0/24"
        for hook in ways:
            side = "saddr" if hook == IN else "daddr"
            own = f"ip {side} != {self.address(machine)} " if others is None else ""
            self._nft(machine, f"add rule inet cut {hook} {own}ip {side} {{ {addresses} }} drop")

    def heal(self, machine: str) -> None:
        """Nothing is dropped at this machine any more."""
        self._nft(machine, "flush table inet cut")

    def remove(self) -> None:
        for name in [*map(self._name, self.machines), self.hub]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def _nft(self, machine: str, rules: str) -> None:
        _run(*self.command(machine, ["nft", rules]))

    def _name(self, machine: str) -> str:
        return f"{self._prefix}-{machine}"


@contextmanager
def network(machines: Sequence[str]) -> Iterator[Namespaces]:
    """The machines, with this thread and all that it starts among the clients; skips where that can't be."""
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("nft") is None:
        pytest.skip("network namespaces need root, iproute2 and nftables")
    made = Namespaces(machines)
    try:
        try:
            made.build()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.decode()}")
        with _inside(made.hub):
            yield made
    finally:
        made.remove()


@contextmanager
def _inside(namespace: str) -> Iterator[None]:
    """This thread, and threads and processes that it starts, are in the namespace."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        _enter(there)
        try:
            yield
        finally:
            _enter(home)
    finally:
        os.close(home)
        os.close(there)


def _enter(descriptor: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
