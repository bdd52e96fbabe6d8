"""Web hooks set up over REST: the challenge, what is refused, and that messages flow afterwards."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from postroad.gateway import push, rest
from postroad.gateway.dialects import CONTEXTS, DIALECTS
from postroad.gateway.webhooks import signature
from tests.clients.wait import until_async
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.webhooks.conftest import Queue, eventually, served
from tests.gateway.webhooks.receivers import endpoint, nobody

Ask = Callable[..., Awaitable[Any]]


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([rest.routes, push.routes], webhooks_private=True)


@pytest.fixture(scope="module")
def public_gateway(start_gateway: StartGateway) -> RunningGateway:
    """As it is without the setting."""
    return start_gateway([rest.routes])


@pytest.fixture(scope="module")
def sending(start_gateway: StartGateway) -> RunningGateway:
    """The only one that delivers until the module ends: what a second one sends is not in its figures."""
    return start_gateway(DIALECTS, webhooks_private=True, contexts=CONTEXTS)


@pytest.fixture
async def ask(queue: Queue) -> AsyncIterator[Ask]:
    async with aiohttp.ClientSession() as session:

        async def ask(
            method: str, body: object = None, *, tail: str = "", status: int = 200, url: str = ""
        ) -> Any:
            where = f"{url or queue.running.url}/v1/subscriptions/{queue.name}/webhook{tail}"
            async with session.request(method, where, json=body) as response:
                assert response.status == status, await response.text()
                return json.loads(await response.read() or b"null")

        yield ask


async def test_an_endpoint_that_echoes_its_challenge_gets_messages(queue: Queue, ask: Ask) -> None:
    async with endpoint() as receiver, served(queue.running):
        made = await ask("PUT", {"url": receiver.url}, status=201)
        assert made["verified"]
        assert made["secret"].startswith("whsec_")
        (challenge,) = receiver.challenges
        said = json.loads(challenge.body)
        assert said["type"] == "postroad.webhook.challenge"
        assert said["subscription"] == queue.name
        assert challenge.headers["webhook-signature"].startswith("v1,")
        await queue.publish(b"hello")
        await receiver.has_got(1)
        assert receiver.values == [b"hello"]


async def test_answers_go_to_a_topic_that_the_subscription_does_not_read(queue: Queue, ask: Ask) -> None:
    async with endpoint() as receiver:
        problem = await ask("PUT", {"url": receiver.url, "reply_topic": queue.topic}, status=422)
        assert "come back" in problem["detail"]
        await ask("PUT", {"url": receiver.url, "reply_topic": "a b"}, status=400)
        await ask("PUT", {"url": receiver.url, "reply_topic": f"{queue.topic}-out"}, status=201)
        assert (await ask("GET"))["reply_topic"] == f"{queue.topic}-out"
        await ask("PUT", {"url": receiver.url})
        assert "reply_topic" not in await ask("GET")


async def test_an_endpoint_that_does_not_echo_gets_nothing_until_it_does(queue: Queue, ask: Ask) -> None:
    async with endpoint() as receiver, served(queue.running):
        receiver.echo = False
        made = await ask("PUT", {"url": receiver.url}, status=201)
        assert not made["verified"]
        assert "challenge" in made["note"]
        await queue.publish(b"hello")
        assert not (await ask("POST", tail="/verify"))["verified"]
        assert receiver.got == []
        receiver.echo = True
        assert (await ask("POST", tail="/verify"))["verified"]
        await receiver.has_got(1)


async def test_nobody_at_the_url_is_told_in_the_note(ask: Ask) -> None:
    with nobody() as url:
        made = await ask("PUT", {"url": url}, status=201)
    assert not made["verified"]
    assert made["note"]


async def test_a_change_keeps_secret_and_verification_but_a_new_url_is_challenged(ask: Ask) -> None:
    async with endpoint() as receiver, endpoint() as other:
        await ask("PUT", {"url": receiver.url, "secret": "mine"}, status=201)
        changed = await ask("PUT", {"url": receiver.url, "concurrency": 2, "rate": 5.5})
        assert changed["verified"]
        assert "secret" not in changed
        assert len(receiver.challenges) == 1
        await ask("PUT", {"url": other.url})
        assert len(other.challenges) == 1
        found = await ask("GET")
        assert found["url"] == other.url
        assert "secret" not in found


async def test_a_web_hook_can_be_taken_away(queue: Queue, ask: Ask) -> None:
    async with endpoint() as receiver:
        await ask("PUT", {"url": receiver.url}, status=201)
        await ask("DELETE", status=204)
        await ask("GET", status=404)
        await ask("DELETE", status=404)
        await ask("POST", tail="/verify", status=404)
        assert await queue.hook() is None


async def test_its_health_is_told(queue: Queue, sending: RunningGateway, ask: Ask) -> None:
    async with endpoint() as receiver:
        await ask("PUT", {"url": receiver.url}, status=201, url=sending.url)
        await queue.publish(b"1")
        await receiver.has_got(1)

        async def is_told() -> bool:
            health = (await ask("GET", url=sending.url)).get("health", {})
            return bool(health.get("delivered") == 1 and health["state"] == "closed")

        await eventually(is_told)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"url": 1}, 400),
        ({"url": ""}, 400),
        ({"url": "https://example.com/", "concurrency": 0}, 400),
        ({"url": "https://example.com/", "timeout_ms": 60_000}, 400),
        ({"url": "https://example.com/", "surprise": 1}, 400),
        ({"url": "nowhere"}, 422),
        ({"url": "ftp://example.com/"}, 422),
        ({"url": "https://user:pw@example.com/"}, 422),
        ({"url": "http://169.254.169.254/"}, 422),
        ({"url": "https://example.com/", "headers": {"Host": "other"}}, 422),
        ({"url": "https://example.com/", "secret": "whsec_*"}, 422),
    ],
)
async def test_what_can_t_be_a_web_hook_is_refused(ask: Ask, body: object, status: int) -> None:
    await ask("PUT", body, status=status)


@pytest.mark.parametrize("url", ["http://example.com/", "https://127.0.0.1/", "https://[::ffff:10.0.0.1]/"])
async def test_private_endpoints_are_refused_by_default(
    ask: Ask, public_gateway: RunningGateway, url: str
) -> None:
    problem = await ask("PUT", {"url": url}, status=422, url=public_gateway.url)
    assert problem["detail"]


async def test_a_name_that_leads_to_a_private_address_is_never_connected_to(
    ask: Ask, public_gateway: RunningGateway
) -> None:
    async with endpoint() as receiver:
        url = receiver.url.replace("http://127.0.0.1", "https://localhost")
        made = await ask("PUT", {"url": url}, status=201, url=public_gateway.url)
    assert not made["verified"]
    assert "public internet" in made["note"]
    assert receiver.challenges == []


async def test_a_subscription_that_does_not_exist_has_no_web_hook(queue: Queue, ask: Ask) -> None:
    other = Queue(queue.running, f"{queue.name}-other")
    url = f"{queue.running.url}/v1/subscriptions/{other.name}/webhook"
    async with aiohttp.ClientSession() as session:
        for method in ("GET", "DELETE"):
            async with session.request(method, url) as response:
                assert response.status == 404
        async with session.put(url, json={"url": "https://example.com/"}) as response:
            assert response.status == 404


async def test_the_last_deliveries_are_listed(queue: Queue, sending: RunningGateway, ask: Ask) -> None:
    """The newest first, with what the endpoint answered."""
    url = sending.url
    answers = iter([500, 204])
    async with endpoint(lambda _: web.Response(status=next(answers))) as receiver:
        await ask("PUT", {"url": receiver.url}, status=201, url=url)
        assert await ask("GET", tail="/deliveries", url=url) == {"deliveries": []}
        await queue.publish(b"hello")
        await receiver.has_got(2)

        async def both() -> Any:
            found = (await ask("GET", tail="/deliveries", url=url))["deliveries"]
            return found if len(found) == 2 else None

        second, first = await until_async(both, "both are noted", 20)
        assert (first["attempt"], first["status"], first["delivered"]) == (1, 500, False)
        assert (first["reason"], second["reason"]) == ("status 500", "")
        assert (second["attempt"], second["status"], second["delivered"]) == (2, 204, True)
        assert first["message"] == second["message"] == receiver.got[0].headers["ce-id"]
        assert (first["topic"], first["offset"]) == (queue.topic, 0)
        assert first["took_ms"] > 0
        assert await ask("GET", tail="/deliveries?limit=1", url=url) == {"deliveries": [second]}


async def test_an_endpoint_is_tried_without_a_message(queue: Queue, ask: Ask) -> None:
    async with endpoint() as receiver:
        await ask("PUT", {"url": receiver.url}, status=201)
        tried = await ask("POST", tail="/test")
        assert (tried["success"], tried["status"]) == (True, 204)
        (got,) = receiver.got
        assert json.loads(got.body) == {"type": "postroad.webhook.test", "subscription": queue.name}
        assert got.headers["Postroad-Test"] == "true"
        assert got.headers["webhook-signature"].startswith("v1,")
    tried = await ask("POST", tail="/test")
    assert (tried["success"], tried["status"]) == (False, 0)
    assert tried["reason"]


async def test_a_secret_is_rotated_and_shown_once(queue: Queue, ask: Ask) -> None:
    async with endpoint() as receiver, served(queue.running):
        made = await ask("PUT", {"url": receiver.url}, status=201)
        rotated = await ask("POST", tail="/rotate-secret")
        assert rotated["secret"] != made["secret"]
        assert rotated["verified"]
        assert "secret" not in await ask("GET")
        kept = await queue.hook()
        assert kept is not None
        assert kept.secret == rotated["secret"]
        await ask("POST", tail="/test")
        (got,) = receiver.got
        id_, at = got.headers["webhook-id"], int(got.headers["webhook-timestamp"])
        signed = signature.sign(rotated["secret"], id_, at, got.body)
        assert got.headers["webhook-signature"] == signed["webhook-signature"]
