"""Traces by OpenTelemetry: a span for each publish and each job, joined by the trace context in the headers.

`pip install 'postroad[otel]'` brings the API; where spans go to is set by OpenTelemetry's own SDK.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from postroad.workers.middleware import Middleware

try:
    from opentelemetry import propagate, trace
except ImportError:
    raise ImportError("postroad.Tracing needs OpenTelemetry: pip install 'postroad[otel]'") from None

if TYPE_CHECKING:
    from postroad.workers.message import Message
    from postroad.workers.publishing import Outgoing

SYSTEM = {"messaging.system": "postroad"}


class Tracing(Middleware):
    """`postroad.App(middleware=[postroad.Tracing()])`. Spans are named as OpenTelemetry's conventions have
    it."""

    def __init__(self, tracer: Any = None) -> None:
        self._tracer = tracer or trace.get_tracer("postroad")

    async def work(self, message: Message, call_next: Callable[[], Awaitable[None]]) -> None:
        """The job's span is a child of the one in which its message was published."""
        attributes = {
            **SYSTEM,
            "messaging.operation.type": "process",
            "messaging.destination.name": message.topic,
            "messaging.destination.partition.id": str(message.partition),
            "messaging.destination.subscription.name": message.subscription,
            "messaging.message.id": message.id,
            "postroad.attempt": message.attempt,
        }
        with self._tracer.start_as_current_span(
            f"process {message.topic}",
            context=propagate.extract(message.headers),
            kind=trace.SpanKind.CONSUMER,
            attributes=attributes,
        ):
            await call_next()

    async def publish(self, outgoing: Outgoing, call_next: Callable[[Outgoing], Awaitable[None]]) -> None:
        """The message carries the trace context (`traceparent`)."""
        attributes = {
            **SYSTEM,
            "messaging.operation.type": "send",
            "messaging.destination.name": outgoing.topic,
        }
        with self._tracer.start_as_current_span(
            f"send {outgoing.topic}", kind=trace.SpanKind.PRODUCER, attributes=attributes
        ):
            context: dict[str, str] = {}
            propagate.inject(context)
            for name, value in context.items():
                outgoing = outgoing.with_header(name, value)
            await call_next(outgoing)
