"""How many requests of each API there were, and how long their answers took."""

from __future__ import annotations

from collections.abc import Iterable

from postroad.metrics.instruments import SECONDS, Distribution
from postroad.metrics.page import COUNTER, HISTOGRAM, Page, labels


class ApiStats:
    """Counts and times one API. `took`: nanoseconds from a request's turn to its answer, waits included."""

    __slots__ = ("name", "requests", "short_way", "took")

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = 0
        self.short_way = 0  # requests that repeated the one before and were not decoded
        self.took = Distribution()


def write_requests(page: Page, apis: Iterable[ApiStats]) -> None:
    requests = page.family("postroad_requests_total", COUNTER, "Requests by API.")
    short_way = page.family(
        "postroad_short_way_requests_total",
        COUNTER,
        "Requests that repeated the one before on their connection and were not decoded (kafka.short_ways).",
    )
    took = page.family(
        "postroad_request_seconds", HISTOGRAM, "Time from request to answer; long polls wait on purpose."
    )
    for stats in apis:
        if stats.requests:
            given = labels(api=stats.name)
            requests.add(stats.requests, given)
            if stats.short_way:
                short_way.add(stats.short_way, given)
            stats.took.write(took, SECONDS, given)
