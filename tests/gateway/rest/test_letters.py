"""Single dead letters over REST: counted, edited and sent back, discarded."""

from __future__ import annotations

from typing import Any

from tests.clients.wait import until_async
from tests.gateway.rest.conftest import Api


async def letters_of(api: Api, name: str, *values: str) -> list[Any]:
    """A queue whose messages were rejected, and their letters in the order in which they were published."""
    await api.queue(name)
    messages = [
        {"value": value, "key": "cat", "headers": {"trace": "a1"}, "expires_at_ms": 4_000_000_000_000}
        for value in values
    ]
    await api.post(f"/v1/topics/{name}/messages", messages, status=201)
    await api.settle(name, "reject", await api.receive(name, len(values)))

    async def all_are_there() -> Any:
        found = await listed(api, name)
        return found if len(found) == len(values) else None

    found = await until_async(all_are_there, "the letters are there", 50)
    return sorted(found, key=lambda letter: values.index(letter["value"]))


async def listed(api: Api, name: str) -> list[Any]:
    found = await api.get(f"/v1/subscriptions/{name}/dead-letters")
    return list(found["letters"])


async def dead(api: Api, name: str) -> int:
    return int((await api.get(f"/v1/subscriptions/{name}"))["counts"]["dead"])


async def test_letters_are_counted_until_they_are_gone(api: Api, name: str) -> None:
    await api.queue(name + "-none")
    assert await dead(api, name + "-none") == 0
    first, second, third = await letters_of(api, name, "1", "2", "3")
    assert await dead(api, name) == 3
    path = f"/v1/subscriptions/{name}/dead-letters"
    await api.call("DELETE", f"{path}/{second['id']}", status=204)
    assert await dead(api, name) == 2
    assert {letter["value"] for letter in await listed(api, name)} == {"1", "3"}
    await api.post(f"{path}/{first['id']}/redrive", {})
    assert await dead(api, name) == 1
    assert [letter["id"] for letter in await listed(api, name)] == [third["id"]]


async def test_a_letter_is_edited_and_sent_back(api: Api, name: str) -> None:
    """For its own subscription; another one of the topic passes it over."""
    (letter,) = await letters_of(api, name, "broken")
    await api.post("/v1/subscriptions", {"name": name + "-other", "topics": [name]}, status=201)
    sent = await api.post(
        f"/v1/subscriptions/{name}/dead-letters/{letter['id']}/redrive", {"value": {"mended": True}}
    )
    assert sent["topic"] == name
    (message,) = await api.receive(name, values="json")
    assert (message["value"], message["key"], message["id"]) == ({"mended": True}, "cat", sent["id"])
    headers = dict(message["headers"])
    assert headers["trace"] == "a1"
    assert not [header for header in headers if "dead" in header or "expire" in header]
    await api.settle(name, "acknowledge", [message])
    other = await api.post(f"/v1/subscriptions/{name}-other/receive", {"wait_ms": 500})
    assert other["messages"] == []


async def test_a_letter_goes_as_it_is_or_with_all_new_content(api: Api, name: str) -> None:
    first, second = await letters_of(api, name, "1", "2")
    await api.post("/v1/topics", {"name": name + "-elsewhere"}, status=201)
    path = f"/v1/subscriptions/{name}/dead-letters"
    await api.post(f"{path}/{first['id']}/redrive", {"to": name + "-elsewhere"})
    new = {"to": name + "-elsewhere", "key": None, "value": None, "headers": {"by": {"base64": "/w=="}}}
    await api.post(f"{path}/{second['id']}/redrive", new)
    page = await api.get(f"/v1/topics/{name}-elsewhere/messages")
    assert [(each["key"], each["value"], each["headers"]) for each in page["messages"]] == [
        ("cat", "1", [["trace", "a1"]]),
        (None, None, [["by", {"base64": "/w=="}]]),
    ]


async def test_a_letter_is_sent_back_or_discarded_once(api: Api, name: str) -> None:
    sent, dropped = await letters_of(api, name, "1", "2")
    path = f"/v1/subscriptions/{name}/dead-letters"
    await api.post(f"{path}/{sent['id']}/redrive", {})
    await api.call("DELETE", f"{path}/{dropped['id']}", status=204)
    for letter in (sent, dropped):
        problem = await api.post(f"{path}/{letter['id']}/redrive", {}, status=409)
        assert "before" in problem["detail"]
        await api.call("DELETE", f"{path}/{letter['id']}", status=409)
    assert len(await api.receive(name)) == 1


async def test_only_letters_of_the_subscription_are_found(api: Api, name: str) -> None:
    (letter,) = await letters_of(api, name, "1")
    (published,) = await api.publish(name, "no letter")
    await api.post("/v1/subscriptions", {"name": name + "-other", "topics": [name]}, status=201)
    for path in (
        f"/v1/subscriptions/{name}/dead-letters/{published['id']}",
        f"/v1/subscriptions/{name}/dead-letters/{'A' * 38}",
        f"/v1/subscriptions/{name}-none/dead-letters/{letter['id']}",
        f"/v1/subscriptions/{name}-other/dead-letters/{letter['id']}",
    ):
        await api.post(path + "/redrive", {}, status=404)
        await api.call("DELETE", path, status=404)
    assert len(await listed(api, name)) == 1
