"""Everything that the gateway answers: the one list of the dialects' routes."""

from __future__ import annotations

from typing import Final

from postroad.gateway import health, metrics, push, rest, sqs
from postroad.gateway.app import Routes

DIALECTS: Final[list[Routes]] = [
    health.routes,
    metrics.routes,
    rest.routes,
    push.routes,
    sqs.routes,
]
