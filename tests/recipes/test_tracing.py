"""Traces: a job's span is a child of the span in which it was published. With OpenTelemetry's own SDK."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroad.testing import Node

from .test_recipes import interpreter, printed_by

PROGRAM = """
import asyncio, sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
import postroad

spans = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
app = postroad.App(sys.argv[1], middleware=[postroad.Tracing()])

@app.worker("traced", topic="traced", attempts=2)
async def work(job: str, message: postroad.Message) -> None:
    if message.attempt == 1:
        raise ValueError("away")
    app.stop()

async def main():
    async with app:
        with trace.get_tracer("request").start_as_current_span("request"):
            await app.publish("traced", "a job")
        await app.work()
    found = spans.get_finished_spans()
    by_id = {span.context.span_id: span for span in found}
    for span in sorted(found, key=lambda span: span.start_time):
        parent = by_id[span.parent.span_id].name if span.parent else "-"
        print(span.name, "<", parent, span.kind.name, span.status.status_code.name)
    assert len({span.context.trace_id for span in found}) == 1

asyncio.run(main())
"""

PRINTED = """\
request < - INTERNAL UNSET
send traced < request PRODUCER UNSET
process traced < send traced CONSUMER ERROR
process traced < send traced CONSUMER UNSET
"""


@pytest.mark.recipe_slow
def test_span_of_a_job_is_a_child_of_that_of_its_publisher(
    postroad_session: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "traced.py").write_text(PROGRAM)
    monkeypatch.setattr("tests.recipes.test_recipes.RECIPES", tmp_path)
    python = interpreter(("opentelemetry-sdk==1.45.2",))
    assert printed_by(str(python), "traced", postroad_session, tmp_path) == PRINTED
