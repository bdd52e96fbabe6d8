"""What a run of the benchmark leaves: measurements by mode, workload and server."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.servers import Mode
from benchmarks.session import Measurement


@dataclass
class ServerFacts:
    """What is worth knowing of a server besides its speed."""

    version: str
    ready_seconds: float
    idle_mb: float
    end_mb: float = 0.0


@dataclass
class ModeResults:
    """All that was measured in one mode: `results[workload key][server name][round]`."""

    mode: Mode
    servers: dict[str, ServerFacts] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # server name: why
    results: dict[str, dict[str, dict[int, Measurement]]] = field(default_factory=dict)

    def add(self, other: ModeResults) -> None:
        """Take what was measured of other workloads in the same mode."""
        self.servers = {**other.servers, **self.servers}
        self.left_out.update(other.left_out)
        self.results.update(other.results)


def number(value: float) -> str:
    """For people: three figures are all that such a measurement can carry."""
    if value >= 1000:
        digits = len(str(int(value))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
