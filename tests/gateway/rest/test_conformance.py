"""schemathesis reads the document and tries the gateway: answers are as documented, bad input is refused.

How far it gets depends on the machine, so it is run by its own verb, `make conform`, and not with the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from postroad.gateway import rest
from postroad.gateway.schemas.routes import routes as schema_routes
from tests.gateway.conftest import RunningGateway, StartGateway

SECONDS_MAX = 30
PARTITIONS_MAX = 3
WAIT_MS_MAX = 100
POSITIVE = "Invalid component: positive test case"
LINE_BYTES_MAX = 8000  # a longer request line is refused before anybody knows what it asks for
CONFIG = {
    "seed": 1,
    "max-time": SECONDS_MAX,
    "generation": {"deterministic": True, "max-examples": 10, "no-shrink": True, "database": "none"},
    # 422 is for what fits the document and is refused all the same: no schema says which topics there are.
    "checks": {
        "positive_data_acceptance": {
            "expected-statuses": ["2xx", "401", "403", "404", "409", "413", "422"],
        },
    },
}


@pytest.fixture
def strict_gateway(start_gateway: StartGateway) -> RunningGateway:
    """It makes no topic for each name that is tried."""
    return start_gateway([rest.routes, schema_routes], auto_create=False)


def failures(schema: schemathesis.BaseSchema) -> Iterator[str]:
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError):
            yield f"{event.label} {event.phase}: {event.value!r}"
        if isinstance(event, events.ScenarioFinished):
            for checks in event.recorder.checks.values():
                for check in checks:
                    found = check.failure_info
                    if found is not None and counts(found):
                        yield f"{check.name}: {found.failure}\n{found.code_sample}"


def counts(found: Any) -> bool:
    """A body that may be left out and is left out is no violation, though it is taken for one at times."""
    return len(found.code_sample) < LINE_BYTES_MAX and POSITIVE not in str(found.failure)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """To JSON Schema 3.0 is an integer; here whole numbers are written as such. Thousands of partitions, or
    a minute's wait for messages, would only take time."""
    case.body = whole(case.body)
    if isinstance(case.body, dict):
        for name, most in (("partitions", PARTITIONS_MAX), ("wait_ms", WAIT_MS_MAX)):
            if isinstance(case.body.get(name), int):
                case.body[name] = min(case.body[name], most)


def whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("CONFORM"), reason="run by make conform")
def test_nothing_is_found(strict_gateway: RunningGateway) -> None:
    config = SchemathesisConfig.from_dict(CONFIG)
    schema = schemathesis.openapi.from_url(f"{strict_gateway.url}/openapi.json", config=config)
    found = list(failures(schema))
    assert not found, "\n\n".join(found)
