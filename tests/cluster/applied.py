"""A store small enough for tests of decisions: it commits them to an image at once, without I/O."""

from __future__ import annotations

from postroad.cluster.decision import Decision
from postroad.cluster.image import Changes, Image
from postroad.cluster.store import OPERATIONS_MAX, VALUE_BYTES_MAX, Event, Put


def topic_id(number: int) -> bytes:
    return (1 << 64 | number).to_bytes(16, "big")


def commit(image: Image, decision: Decision) -> Changes:
    """Applies the decision as a commit that came back as events; all its compares must hold."""
    for key, revision in decision.compares:
        assert image.key_revision(key) == revision, key
    assert len(decision.compares) <= OPERATIONS_MAX
    assert len(decision.operations) <= OPERATIONS_MAX
    revision = image.revision + 1
    events = []
    for operation in decision.operations:
        value = operation.value if isinstance(operation, Put) else None
        assert value is None or len(value) <= VALUE_BYTES_MAX
        events.append(Event(operation.key, value, revision))
    changes = image.apply(events, revision)
    image.check()
    return changes
