"""Everything that the gateway answers, the one list of the dialects' routes; and what runs beside them."""

from __future__ import annotations

from typing import Final

from postroad.gateway import console, health, history, metrics, push, redrives, rest, sqs, webhooks
from postroad.gateway.app import Context, Routes
from postroad.gateway.schemas.routes import routes as schema_routes

DIALECTS: Final[list[Routes]] = [
    health.routes,
    metrics.routes,
    rest.routes,
    push.routes,
    console.routes,
    schema_routes,
    sqs.routes,
]

CONTEXTS: Final[list[Context]] = [
    webhooks.context,
    redrives.context,
    history.context,
]
