"""The network between simulated hosts: ordered bytes, with latency, cuts, stalls, resets and lost peers.

As TCP does, it never loses or reorders bytes of a connection that lives: a cut keeps them back until it is
healed. A host without power answers nobody, and does not know its old connections when it is back: who sends
to it then is reset, who only listens never learns of it.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from itertools import count
from typing import Final

from simulator.handshake import Handshake
from simulator.process import Process
from simulator.stream import SimulatedListening, SimulatedStream, failure
from simulator.trace import checksum
from simulator.world import World

ANY_ADDRESS: Final = ("", "0.0.0.0", "::")
FIRST_NUMBER: Final = 1000  # of endpoints, in the place of file descriptors
FIRST_PORT: Final = 40_000
RESEND_S: Final = 0.3  # within so long after a cut was healed TCP tries again


@dataclass
class Conditions:
    """How the network is for everybody. Faults may change it while the world runs."""

    latency_s: tuple[float, float] = (50e-6, 1e-3)
    spikes: float = 0.01  # the share of packets that take longer
    spike_s: tuple[float, float] = (1e-3, 0.2)
    short: float = 0.02  # the share of receives and sends that do only a part
    window_bytes: int = 256 * 1024
    small_windows: float = 0.1  # the share of connections with a window of a few KiB
    resets: float = 0.0  # the share of packets that never arrive, since their connection is reset


class Network:
    def __init__(self, world: World) -> None:
        self.world = world
        self.conditions = Conditions()
        self.is_encrypted = False  # bytes differ in every run; their lengths don't
        self._random = world.random("network")
        self._numbers = count(FIRST_NUMBER)
        self._ports = count(FIRST_PORT)
        self._listening: dict[tuple[str, int], SimulatedListening] = {}
        self._connections: dict[int, SimulatedStream] = {}  # one end of each, by its number
        self._down: set[str] = set()  # hosts without power
        self._cut: set[tuple[str, str]] = set()  # (from, to)
        self._stalled_until: dict[tuple[str, str], float] = {}

    # --- what processes call, through their runtime

    def listen(self, process: Process, host: str, port: int, backlog: int) -> SimulatedListening:
        process.check()
        if host not in (process.host, *ANY_ADDRESS):
            raise failure(errno.EADDRNOTAVAIL)
        port = port or next(self._ports)
        if (process.host, port) in self._listening:
            raise failure(errno.EADDRINUSE)
        found = self._listening[process.host, port] = SimulatedListening(self, process, port, backlog)
        return found

    async def connect(self, process: Process, host: str, port: int) -> SimulatedStream:
        """A stream to the address, or an OSError; it may take as long as TCP's own attempts."""
        return await Handshake(self, process, host, port).stream()

    # --- faults

    def cut(self, one: str, other: str, one_way: bool = False) -> None:
        """Nothing from the first host reaches the other, nor the other way round unless `one_way`."""
        self.world.note("network", "cut", f"{one} {'->' if one_way else '<->'} {other}")
        self._cut.add((one, other))
        if not one_way:
            self._cut.add((other, one))

    def heal(self, one: str | None = None, other: str | None = None) -> None:
        """End the cuts between two hosts, those of one host, or all of them."""
        self.world.note("network", "healed", f"{one or 'all'} {other or 'all'}")
        for pair in sorted(self._cut):
            if (one is None or one in pair) and (other is None or other in pair):
                self._cut.discard(pair)
        self._send_again()

    def stall(self, one: str, other: str, seconds: float) -> None:
        """What the first host sends to the other within this time arrives after it."""
        self.world.note("network", "stalled", f"{one} -> {other} {seconds:.6f}")
        self._stalled_until[one, other] = self.world.now + seconds

    def reset_between(self, one: str, other: str) -> None:
        """Both ends of all connections between the hosts are broken."""
        for near in self._open_connections():
            if {near.host, near.peer.host} == {one, other}:
                self._break(near)
                self._break(near.peer)

    def power(self, host: str, on: bool) -> None:
        """A host without power hears and answers nobody. Its processes must have ended before."""
        if on:
            self._down.discard(host)
            self._send_again()
            return
        self._down.add(host)
        for near in self._open_connections():
            for end in (near, near.peer):
                if end.host == host:
                    self._lose(end)

    def reaches(self, one: str, other: str) -> bool:
        """Whether what the first host sends now comes to the other."""
        return (one, other) not in self._cut and one not in self._down and other not in self._down

    # --- what streams and handshakes call

    def next_number(self) -> int:
        return next(self._numbers)

    def next_port(self) -> int:
        return next(self._ports)

    def listening(self, host: str, port: int) -> SimulatedListening | None:
        return self._listening.get((host, port))

    def stop_listening(self, listening: SimulatedListening) -> None:
        self._listening.pop((listening.process.host, listening.port), None)

    def window(self) -> int:
        """The window of a new connection."""
        conditions = self.conditions
        if self._random.random() < conditions.small_windows:
            return self._random.randrange(1024, 16 * 1024)
        return conditions.window_bytes

    def track(self, near: SimulatedStream) -> None:
        self._connections[near.number] = near

    def delay(self) -> float:
        conditions, chance = self.conditions, self._random.random()
        low, high = conditions.spike_s if chance < conditions.spikes else conditions.latency_s
        return low + (high - low) * self._random.random()

    def shorten(self, size: int, event: str) -> int:
        """The size, or sometimes less of it."""
        if size > 1 and self._random.random() < self.conditions.short:
            self.world.sometimes(event)
            return self._random.randrange(1, size)
        return size

    def carry(self, end: SimulatedStream, data: bytes) -> None:
        """Bytes on their way to the peer; none of them: the end."""
        process = end.process
        leaves_at = self.world.now if process is None else process.loop.time()
        if self._stalled_until:
            leaves_at = max(leaves_at, self._stalled_until.get((end.host, end.peer.host), 0.0))
        end.sent.append(data)
        end.arrives_at = max(end.arrives_at, leaves_at + self.delay())
        self.world.at(end.arrives_at, self._arrive, end)

    def reset(self, end: SimulatedStream) -> None:
        """The end is broken at once, its peer when it hears of it (which a cut may prevent)."""
        end.broken = errno.ECONNRESET
        end.sent.clear()
        self.world.after(self.delay(), self._reset_arrives, end)

    # --- helpers

    def _arrive(self, end: SimulatedStream) -> None:
        """The next piece of what the end has sent."""
        peer = end.peer
        if not end.sent:
            return  # a reset overtook it
        if (end.host, peer.host) in self._cut or peer.host in self._down:
            end.held += 1
            return
        data = end.sent.popleft()
        if peer.gone:
            if data and not end.broken:
                self.world.sometimes("bytes came to a connection that is not known any more")
                self.world.after(self.delay(), self._reset_arrives, peer)
            return
        if peer.broken:
            return
        if self.conditions.resets and self._random.random() < self.conditions.resets:
            self._break(end)
            self._break(peer)
            return
        seen = str(len(data)) if self.is_encrypted else checksum(data)
        self.world.note(peer.host, "receives", f"{end.number} {seen}")
        if data:
            peer.arrived += data
        else:
            peer.ended = True
        peer.changed()

    def _lose(self, end: SimulatedStream) -> None:
        """The end has lost its power: what is under way may arrive, or a part of it; no more is heard."""
        end.closed = end.gone = True
        end.broken = errno.ECONNRESET
        keep = 0 if end.held else self._random.randrange(len(end.sent) + 1)
        while len(end.sent) > keep:
            end.sent.pop()

    def _reset_arrives(self, sender: SimulatedStream) -> None:
        if self.reaches(sender.host, sender.peer.host):
            self._break(sender.peer)

    def _break(self, end: SimulatedStream) -> None:
        if end.broken or end.closed:
            return
        self.world.note(end.host, "reset", end.number)
        self.world.sometimes("a connection was reset")
        end.broken = errno.ECONNRESET
        end.arrived.clear()
        end.sent.clear()
        end.changed()

    def _open_connections(self) -> list[SimulatedStream]:
        for number in [number for number, near in self._connections.items() if near.gone and near.peer.gone]:
            del self._connections[number]
        return list(self._connections.values())

    def _send_again(self) -> None:
        """TCP repeats what was kept back, in its order, some time after the cut has ended."""
        for near in self._open_connections():
            for end in (near, near.peer):
                held, end.held = end.held, 0
                if held:
                    again_at = self.world.now + self._random.random() * RESEND_S + self.delay()
                    end.arrives_at = max(end.arrives_at, again_at)
                    for _ in range(held):
                        self.world.at(end.arrives_at, self._arrive, end)
