"""Which options there are, and a clear word about those that there aren't.

Spark hands options over in lower case and checks none of them, so a misspelt one would silently do
nothing. Here every name is known, or refused with the nearest one that is. The names are those of
Spark's Kafka connector, plus a few of our own; `kafka.` precedes the settings of a Kafka client.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from postroad.errors import ConfigurationError
from postroad.spark import access

BOOTSTRAP: Final = "kafka.bootstrap.servers"
CLIENT: Final = "kafka."

# What a client of ours takes from a Kafka client's settings.
CONNECTION: Final = frozenset(
    {
        BOOTSTRAP,
        "kafka.client.id",
        "kafka.client.rack",
        "kafka.request.timeout.ms",
        "kafka.default.api.timeout.ms",
        *access.NAMES,
    }
)

# Settings that tune a JVM client and change no result: taken and left aside, so that a query that
# comes from the Kafka connector runs as it is.
_TUNING: Final = frozenset(
    {
        "kafka.allow.auto.create.topics",
        "kafka.check.crcs",
        "kafka.client.dns.lookup",
        "kafka.connections.max.idle.ms",
        "kafka.enable.metrics.push",
        "kafka.exclude.internal.topics",
        "kafka.fetch.max.bytes",
        "kafka.fetch.max.wait.ms",
        "kafka.fetch.min.bytes",
        "kafka.group.id",
        "kafka.heartbeat.interval.ms",
        "kafka.max.poll.interval.ms",
        "kafka.max.poll.records",
        "kafka.metadata.max.age.ms",
        "kafka.metadata.recovery.strategy",
        "kafka.metric.reporters",
        "kafka.metrics.num.samples",
        "kafka.metrics.recording.level",
        "kafka.metrics.sample.window.ms",
        "kafka.partition.assignment.strategy",
        "kafka.receive.buffer.bytes",
        "kafka.reconnect.backoff.max.ms",
        "kafka.reconnect.backoff.ms",
        "kafka.retry.backoff.max.ms",
        "kafka.retry.backoff.ms",
        "kafka.send.buffer.bytes",
        "kafka.session.timeout.ms",
        "kafka.socket.connection.setup.timeout.max.ms",
        "kafka.socket.connection.setup.timeout.ms",
    }
)

# Refused with the reason, as the Kafka connector does, or because there is no such thing here.
_PROTECTED: Final = {
    "kafka.auto.offset.reset": "where to start is said by startingOffsets",
    "kafka.enable.auto.commit": "progress is in the checkpoint; commitGroup shows it to a consumer group",
    "kafka.interceptor.classes": "interceptors are Java classes, and there is no JVM client here",
    "kafka.key.deserializer": "keys are bytes; turn them into what you need with DataFrame functions",
    "kafka.value.deserializer": "values are bytes; use valueFormat=json or DataFrame functions",
    "kafka.key.serializer": "keys are strings or bytes; make them with DataFrame functions",
    "kafka.value.serializer": "values are strings or bytes; make them with DataFrame functions",
    "kafka.transactional.id": "the sink chooses it; see the option transactional",
    "kafka.enable.idempotence": "the sink is always idempotent",
}
_SECURITY: Final = ("kafka.ssl.", "kafka.sasl.")
_NO_SECURITY: Final = f"of these there are {', '.join(access.NAMES[2:])}, and the option profile"


def check(options: Mapping[str, str], names: Collection[str], elsewhere: Mapping[str, str]) -> None:
    """Passes if each option is one of `names`, tuning, or of a connection. ConfigurationError for the first
    that isn't, with the reason and the nearest name. `elsewhere` tells of names that mean something, but
    not here: in what they are right."""
    known = {name.lower(): name for name in (*names, *CONNECTION)}
    other = {name.lower(): (name, where) for name, where in elsewhere.items()}
    for name in options:
        lower = name.lower()
        if lower in known or lower in _TUNING:
            continue
        if lower in _PROTECTED:
            raise ConfigurationError(f"Option {lower} can't be set: {_PROTECTED[lower]}.")
        if lower.startswith(_SECURITY):
            raise ConfigurationError(f"Option {lower} is not known: {_NO_SECURITY}.")
        if lower in other:
            raise ConfigurationError("Option {}: {}.".format(*other[lower]))
        raise ConfigurationError(f"Option {lower} is not known{_nearest(lower, known)}")


def _nearest(lower: str, known: Mapping[str, str]) -> str:
    """What was meant, most likely; a Kafka client's setting may lack its prefix."""
    if CLIENT + lower in known:
        return f"; did you mean {known[CLIENT + lower]}?"
    close = get_close_matches(lower, known, n=1, cutoff=0.7)
    return f"; did you mean {known[close[0]]}?" if close else f"; there are {_listed(known.values())}."


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names, key=str.lower))
