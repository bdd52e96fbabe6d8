"""`Worker`: a function, the subscription whose messages it gets, and what that subscription promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from postroad.wire import subscription_names as names
from postroad.workers.spans import Span, milliseconds

LOCK_MS: Final = 30_000
LOCK_MS_MIN: Final = 1_000  # a lock is renewed after a third of its time, on a machine that may be busy
LOCK_MS_MAX: Final = 43_200_000  # 12 hours, which a node allows
ATTEMPTS: Final = 5
ATTEMPTS_MAX: Final = 1_000
CONCURRENCY: Final = 10
CONCURRENCY_MAX: Final = 10_000
BACKOFF_MS_MAX: Final = 86_400_000
DEFAULT_BACKOFF_MAX_MS: Final = 600_000
NO_LIMIT: Final = 0

Order = Literal["none", "key", "partition"]


@dataclass(frozen=True)
class Worker:
    """Made by `App.worker`, which has the meaning of the options. Calling it calls the function."""

    function: Callable[..., Any]
    subscription: str
    topics: tuple[str, ...]
    lock_ms: int = LOCK_MS
    concurrency: int = CONCURRENCY
    timeout_ms: int | None = None
    transaction: bool = False
    attempts: int | None = None  # None: as the subscription says; NO_LIMIT
    configs: Mapping[str, str] = field(default_factory=dict)  # of the subscription, as far as the code says

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def name(self) -> str:
        return getattr(self.function, "__qualname__", None) or repr(self.function)


def declare(
    function: Callable[..., Any],
    subscription: str,
    *,
    topic: str | Sequence[str] | None,
    lock: Span | None,
    attempts: int | Literal["none"] | None,
    backoff: Span | None,
    backoff_max: Span | None,
    concurrency: int,
    order: Order | None,
    timeout: Span | None,
    start: Literal["earliest", "latest"],
    dead_letters: str | None,
    transaction: bool,
    config: Mapping[str, str] | None,
) -> Worker:
    """TypeError and ValueError say which option can't be used."""
    if not callable(function):
        raise TypeError(f"a worker is a function, and not {function!r}")
    topics = _topics(subscription, topic)
    lock_ms = None
    configs = {names.TOPICS_CONFIG: ",".join(topics), names.START_CONFIG: _one_of(start, "start", _STARTS)}
    if lock is not None:
        lock_ms = milliseconds(lock, "lock", shortest_ms=LOCK_MS_MIN, longest_ms=LOCK_MS_MAX)
        configs[names.LOCK_CONFIG] = str(lock_ms)
    if attempts is not None:
        configs[names.DELIVERY_LIMIT_CONFIG] = str(_attempts(attempts))
    configs |= _backoff(backoff, backoff_max)
    if order is not None:
        configs[names.ORDER_CONFIG] = _one_of(order, "order", ("none", "key", "partition"))
    if dead_letters is not None:
        configs[names.DEAD_LETTERS_CONFIG] = str(dead_letters != "none").lower()
        if dead_letters != "none":
            configs[names.DEAD_LETTER_TOPIC_CONFIG] = dead_letters
    if isinstance(concurrency, bool) or not 1 <= concurrency <= CONCURRENCY_MAX:
        raise ValueError(f"concurrency: {concurrency!r} is not from 1 to {CONCURRENCY_MAX}")
    return Worker(
        function,
        subscription,
        topics,
        LOCK_MS if lock_ms is None else lock_ms,
        concurrency,
        None if timeout is None else milliseconds(timeout, "timeout", shortest_ms=1),
        transaction,
        None if attempts is None else _attempts(attempts),
        {**configs, **(config or {})},
    )


_STARTS: Final = ("earliest", "latest")


def _topics(subscription: str, topic: str | Sequence[str] | None) -> tuple[str, ...]:
    if not isinstance(subscription, str) or not subscription:
        raise TypeError('name the subscription: @app.worker("resize", topic="jobs")')
    found = (topic,) if isinstance(topic, str) else tuple(topic or (subscription,))
    if not all(isinstance(each, str) and each for each in found):
        raise ValueError(f"topic: {topic!r} is no topic's name")
    return tuple(dict.fromkeys(found))


def _backoff(backoff: Span | None, longest: Span | None) -> dict[str, str]:
    """A first wait beyond what a subscription allows by itself is the longest one, too."""
    found = {}
    first_ms = None if backoff is None else milliseconds(backoff, "backoff", longest_ms=BACKOFF_MS_MAX)
    if longest is not None:
        longest_ms: int | None = milliseconds(longest, "backoff_max", longest_ms=BACKOFF_MS_MAX)
    else:
        longest_ms = first_ms if first_ms is not None and first_ms > DEFAULT_BACKOFF_MAX_MS else None
    if first_ms is not None:
        found[names.BACKOFF_CONFIG] = str(first_ms)
    if longest_ms is not None:
        found[names.BACKOFF_MAX_CONFIG] = str(longest_ms)
    if first_ms is not None and longest_ms is not None and first_ms > longest_ms:
        raise ValueError(f"backoff: {backoff!r} is longer than backoff_max, {longest!r}")
    return found


def _attempts(attempts: int | Literal["none"]) -> int:
    if attempts == "none":
        return NO_LIMIT
    if isinstance(attempts, bool) or not isinstance(attempts, int) or not 1 <= attempts <= ATTEMPTS_MAX:
        raise ValueError(f"attempts: {attempts!r} is neither a number from 1 to {ATTEMPTS_MAX} nor 'none'")
    return attempts


def _one_of(given: str, name: str, known: Sequence[str]) -> str:
    if given not in known:
        raise ValueError(f"{name}: {given!r} is none of {', '.join(known)}")
    return given
