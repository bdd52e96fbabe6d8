"""What goes on when a request is over: web hooks, redrives and moves, in the name of who began them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroad.client import subscriptions
from postroad.gateway.webhooks import hook as hooks
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from tests.clients.wait import until, until_async
from tests.gateway.security.asking import Outcome, rest, sqs
from tests.gateway.security.conftest import ADMIN, WORKER, House
from tests.gateway.security.table import Place, letters
from tests.gateway.webhooks.receivers import Endpoint, endpoint

READS = ((Op.READ, Type.GROUP, "n"), (Op.READ, Type.TOPIC, "n"))
HOOKS = (*READS, (Op.ALTER_CONFIGS, Type.GROUP, "n"))


@pytest.fixture
def place(house: House, name: str) -> Place:
    place = Place(house, name)
    place.make()
    return place


# --- web hooks


@pytest.fixture
async def receiver() -> AsyncIterator[Endpoint]:
    async with endpoint() as made:
        yield made


def hook_path(place: Place) -> str:
    return f"/v1/subscriptions/{place.name}/webhook"


async def in_thread(work: Any, *arguments: Any) -> Outcome:
    found: Outcome = await asyncio.to_thread(work, *arguments)
    return found


async def shown(place: Place) -> dict[str, Any]:
    found = await in_thread(rest, place.house, ADMIN, "GET", hook_path(place))
    content: dict[str, Any] = found.content
    return content


async def test_a_web_hook_sends_as_long_as_who_has_set_it_up_may_receive(
    place: Place, receiver: Endpoint
) -> None:
    house = place.house
    rights = [place.right(right) for right in HOOKS]
    await asyncio.to_thread(house.allow, WORKER, *rights)
    made = await in_thread(rest, house, WORKER, "PUT", hook_path(place), {"url": receiver.url})
    assert made.status == 201, made
    await asyncio.to_thread(place.send, "one")
    await receiver.has_got(1)
    await asyncio.to_thread(house.disallow, WORKER, *rights)
    await asyncio.to_thread(place.send, "two")

    async def is_stopped() -> bool:
        return "Not authorized" in (await shown(place)).get("health", {}).get("last_error", "")

    await until_async(is_stopped, "the web hook is not allowed to receive", 30)
    assert receiver.values == [b"one"]
    await asyncio.to_thread(house.allow, WORKER, *rights)
    await receiver.has_got(2)
    assert receiver.values == [b"one", b"two"]
    assert (await in_thread(rest, house, ADMIN, "DELETE", hook_path(place))).status == 204
    await asyncio.to_thread(house.disallow, WORKER, *rights)


async def test_a_web_hook_of_nobody_sends_nothing_until_it_is_set_up_again(
    place: Place, receiver: Endpoint
) -> None:
    """One from the time before users were asked for."""
    house, gateway = place.house, place.house.running.gateway
    old = hooks.Webhook(receiver.url, "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ=", verified=True)
    change = subscriptions.alter_config(gateway.client, place.name, {hooks.CONFIG: hooks.write(old)}, [])
    await asyncio.to_thread(house.running.run, change)
    await asyncio.to_thread(place.send, "one")

    async def is_stopped() -> bool:
        return "set it up again" in (await shown(place)).get("health", {}).get("last_error", "")

    await until_async(is_stopped, "the web hook has nobody's rights", 30)
    assert receiver.values == []
    again = await in_thread(rest, house, ADMIN, "POST", hook_path(place) + "/verify")
    assert again.status == 200, again
    await receiver.has_got(1)
    assert (await in_thread(rest, house, ADMIN, "DELETE", hook_path(place))).status == 204


# --- redrives over REST


def test_a_letter_goes_where_who_redrives_it_may_write(place: Place) -> None:
    """A letter may name any topic as its own: it was made up here to reach another one."""
    house = place.house
    place.make("-secret")
    letters(place)
    forged = {
        "value": "forged",
        "headers": [
            ["postroad-dead-topic", f"{place.name}-secret"],
            ["postroad-dead-subscription", place.name],
        ],
    }
    path = f"/v1/topics/{place.name}.dead/messages"
    assert rest(house, ADMIN, "POST", path, forged).status == 201
    rights = [place.right(right) for right in (*READS, (Op.READ, Type.TOPIC, "n.dead"))]
    rights.append(place.right((Op.WRITE, Type.TOPIC, "n")))
    house.allow(WORKER, *rights)
    try:
        begun = rest(house, WORKER, "POST", f"/v1/subscriptions/{place.name}/dead-letters/redrive", {})
        assert begun.status == 202, begun
        over = ended(house, begun.content["id"])
    finally:
        house.disallow(WORKER, *rights)
    assert (over["state"], over["sent"]) == ("completed", 1)
    assert over["failed"] == {f"who began it may not write to {place.name}-secret": 1}
    assert ends_of(place, "-secret") == [0]


def ended(house: House, task: str) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        found: dict[str, Any] = rest(house, ADMIN, "GET", f"/v1/redrives/{task}").content
        return found

    until(lambda: look()["state"] in ("completed", "failed", "cancelled"), "the redrive is over")
    return look()


def ends_of(place: Place, suffix: str = "") -> list[int]:
    found = rest(place.house, ADMIN, "GET", f"/v1/topics/{place.name}{suffix}").content
    return [part["end"] for part in found["partitions"]]


# --- moves over SQS


def dead_letter_queue(place: Place) -> None:
    """The place's queue takes the dead letters of `n-src`, and has one that says it was in `n-secret`."""
    place.make("-src", RedrivePolicy=f'{{"deadLetterTargetArn":"{place.arn()}","maxReceiveCount":1}}')
    place.make("-secret")
    forged = {"value": "forged", "headers": [["postroad-dead-topic", f"{place.name}-secret"]]}
    assert rest(place.house, ADMIN, "POST", f"/v1/topics/{place.name}/messages", forged).status == 201


def task_of(place: Place) -> dict[str, Any]:
    found = sqs(place.house, ADMIN, "ListMessageMoveTasks", SourceArn=place.arn())
    task: dict[str, Any] = found.content["Results"][0]
    return task


@pytest.mark.parametrize("may_write", [True, False])
def test_a_move_goes_where_who_began_it_may_write(place: Place, may_write: bool) -> None:
    house = place.house
    dead_letter_queue(place)
    rights = [place.right(right) for right in READS]
    rights += [place.right((Op.WRITE, Type.TOPIC, "n-secret"))] if may_write else []
    house.allow(WORKER, *rights)
    try:
        begun = sqs(house, WORKER, "StartMessageMoveTask", SourceArn=place.arn())
        assert begun.status == 200, begun
        until(lambda: task_of(place)["Status"] in ("COMPLETED", "FAILED"), "the move is over")
    finally:
        house.disallow(WORKER, *rights)
    assert task_of(place)["Status"] == ("COMPLETED" if may_write else "FAILED")
    assert ends_of(place, "-secret") == [1 if may_write else 0]
    if not may_write:
        assert "Write" in task_of(place)["FailureReason"]


def test_a_move_is_cancelled_by_who_may_receive_from_its_source(place: Place) -> None:
    """A stranger is told what is told of a queue that is not there; else the task itself is looked for."""
    house = place.house
    dead_letter_queue(place)
    for number in range(20):
        place.send(str(number))
    started = sqs(
        house, ADMIN, "StartMessageMoveTask", SourceArn=place.arn(), DestinationArn=place.arn("-src"),
        MaxNumberOfMessagesPerSecond=1,
    )  # fmt: skip
    handle = started.content["TaskHandle"]
    stranger = sqs(house, WORKER, "CancelMessageMoveTask", TaskHandle=handle)
    assert (stranger.status, stranger.code) == (404, "ResourceNotFoundException")
    assert "doesn't exist" in stranger.text
    sees = place.right((Op.DESCRIBE, Type.GROUP, "n"))
    rights = [place.right(right) for right in READS]
    house.allow(WORKER, sees)
    assert sqs(house, WORKER, "CancelMessageMoveTask", TaskHandle=handle).code == "AccessDenied"
    house.allow(WORKER, *rights)
    try:
        assert sqs(house, WORKER, "CancelMessageMoveTask", TaskHandle=handle).status == 200
    finally:
        house.disallow(WORKER, sees, *rights)
    until(lambda: task_of(place)["Status"] == "CANCELLED", "the move is cancelled")
