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


async def redriven(api: Api, name: str, **body: Any) -> Any:
    """A redrive that has ended."""
    began = await api.post(f"/v1/subscriptions/{name}/dead-letters/redrive", body, status=202)

    async def ended() -> Any:
        found = await api.get(f"/v1/redrives/{began['id']}")
        return found if found["state"] not in ("running", "cancelling") else None

    return await until_async(ended, "the redrive has ended", 50)


async def test_chosen_letters_go_back_with_one_edit_and_others_stay(api: Api, name: str) -> None:
    first, second, third = await letters_of(api, name, "a bad one", "a good one", "a bad two")
    chosen = [first["id"], second["id"]]
    edit = {"find": "bad", "replace": "mended", "headers": {"by": "hand"}, "remove_headers": ["trace"]}
    counted = await redriven(api, name, letters=chosen, edit=edit, dry_run=True)
    assert counted["sent"] == 1, "one has nothing to find, one is not chosen"
    done = await redriven(api, name, letters=chosen, edit=edit)
    assert (done["state"], done["sent"]) == ("completed", 1)
    (message,) = await api.receive(name)
    assert (message["value"], message["key"]) == ("a mended one", "cat")
    headers = dict(map(tuple, message["headers"]))
    assert (headers.get("by"), headers.get("trace")) == ("hand", None)
    assert {letter["id"] for letter in await listed(api, name)} == {second["id"], third["id"]}


async def test_a_value_and_a_key_stand_for_all(api: Api, name: str) -> None:
    await letters_of(api, name, "1", "2")
    done = await redriven(api, name, edit={"value": "the same", "key": "dog"})
    assert done["sent"] == 2
    found = await api.receive(name, 2)
    assert {(each["value"], each["key"]) for each in found} == {("the same", "dog")}


async def test_chosen_letters_are_discarded(api: Api, name: str) -> None:
    first, second, third = await letters_of(api, name, "1", "2", "3")
    chosen = [first["id"], third["id"]]
    counted = await redriven(api, name, letters=chosen, discard=True, dry_run=True)
    assert (counted["sent"], counted["discard"], await dead(api, name)) == (2, True, 3)
    done = await redriven(api, name, letters=chosen, discard=True)
    assert done["sent"] == 2
    assert [letter["id"] for letter in await listed(api, name)] == [second["id"]]
    came = await api.post(f"/v1/subscriptions/{name}/receive", {"wait_ms": 0})
    assert came["messages"] == []


async def test_what_a_redrive_can_not_do_is_refused(api: Api, name: str) -> None:
    (letter,) = await letters_of(api, name, "1")
    path = f"/v1/subscriptions/{name}/dead-letters/redrive"
    await api.post(path, {"letters": ["x" * 38]}, status=422)
    await api.post(path, {"letters": ["short"]}, status=400)
    await api.post(path, {"letters": [letter["id"]] * 101}, status=400)
    await api.post(path, {"discard": True, "to": name}, status=422)
    await api.post(path, {"discard": True, "edit": {"find": "1"}}, status=422)
    await api.post(path, {"edit": {"find": "x" * 1001}}, status=400)
    await api.post(path, {"edit": {"unknown": "x"}}, status=400)
    assert await dead(api, name) == 1
