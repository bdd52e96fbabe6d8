"""What a subscription promises, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from postroad.gateway.console import words
from postroad.gateway.rest.subscriptions import SubscriptionDetails


def in_words(details: SubscriptionDetails) -> list[str]:
    return list(_sentences(details))


def _sentences(details: SubscriptionDetails) -> Iterator[str]:
    if details.delivery == "at-most-once":
        yield "A message is delivered once, and never again, whatever becomes of its consumer."
        return
    yield (
        f"A consumer has {words.span_ms(details.lock_ms)} for a message; if it is not done by then it comes "
        "again, to whoever asks."
    )
    yield _order(details)
    yield _attempts(details)
    if details.backoff_ms:
        grows = (
            f", {details.backoff_factor:g} times longer each time"
            if (details.backoff_factor or 1) > 1
            else ""
        )
        most = f", at most {words.span_ms(details.backoff_max_ms)}" if details.backoff_max_ms else ""
        yield f"After a failed delivery it waits {words.span_ms(details.backoff_ms)}{grows}{most}."
    if details.fair_by:
        yield f"Tenants, as the header {details.fair_by} names them, are served in turn."
    if details.deduplicate_ms:
        yield f"Repetitions within {words.span_ms(details.deduplicate_ms)} (postroad-dedup-id) are left out."


def _order(details: SubscriptionDetails) -> str:
    if details.order == "key":
        return "Messages of one key are delivered one after the other, in order."
    if details.order == "partition":
        return "Messages of one partition are delivered one after the other, in order."
    return "Messages are delivered in no particular order."


def _attempts(details: SubscriptionDetails) -> str:
    letters = (
        f"a dead letter in {details.dead_letter_topic or details.name + '.dead'}"
        if details.dead_letters
        else "dropped, since no dead letters are kept"
    )
    if not details.attempts:
        return f"It is delivered as often as it takes; what is rejected is {letters}."
    often = words.plural(details.attempts, "delivery", "deliveries")
    return f"After {often}, or when it is rejected, it is {letters}."
