from typing import Any

from postroad.gateway import message_ids
from tests.clients.wait import until_async
from tests.gateway.rest.conftest import PATIENCE_S, Api, dead, state_of


async def test_a_peek_shows_each_messages_state_and_touches_none(api: Api, name: str) -> None:
    await api.queue(name)
    await api.publish(name, "a", {"json": 1})
    await api.post(f"/v1/topics/{name}/messages", {"value": "c", "delay_ms": 60_000}, status=201)
    (held,) = await api.receive(name)
    shown = (await api.get(f"/v1/subscriptions/{name}/messages?values=json"))["messages"]
    assert [(each["value"], each["state"]) for each in shown] == [
        ("a", "held"),
        ({"json": 1}, "available"),
        ("c", "delayed"),
    ]
    assert shown[0]["id"] == held["id"]
    assert shown[0]["held_until_ms"] > shown[0]["timestamp_ms"]
    assert shown[2]["available_at_ms"] > shown[2]["timestamp_ms"]
    again = (await api.get(f"/v1/subscriptions/{name}/messages", params={"limit": "1"}))["messages"]
    assert [each["value"] for each in again] == ["a"]
    where = {"topic": name, "partition": "0", "offset": "1"}
    rest = (await api.get(f"/v1/subscriptions/{name}/messages", params=where))["messages"]
    assert [each["offset"] for each in rest] == [1, 2]


async def test_a_message_is_followed_through_its_subscriptions(api: Api, name: str) -> None:
    await api.queue(name)
    await api.post("/v1/subscriptions", {"name": name + "-2", "topics": [name]}, status=201)
    (published,) = await api.publish(name, "a")
    found = await api.get(f"/v1/messages/{published['id']}")
    assert (found["topic"], found["offset"], found["value"]) == (name, 0, "a")
    assert found["status"] == "pending"
    assert found["acked_by"] == []

    came = await api.receive(name)
    found = await api.get(f"/v1/messages/{published['id']}")
    assert found["status"] == "in_flight"
    assert {state["subscription"]: state["status"] for state in found["subscriptions"]} == {
        name: "in_flight",
        name + "-2": "pending",
    }
    await api.settle(name, "acknowledge", came)
    found = await api.get(f"/v1/messages/{published['id']}")
    assert found["status"] == "pending"
    assert found["acked_by"] == [name]

    await api.settle(name + "-2", "acknowledge", await api.receive(name + "-2"))
    found = await api.get(f"/v1/messages/{published['id']}")
    assert found["status"] == "acknowledged"
    assert found["acked_by"] == [name, name + "-2"]


async def test_a_dead_message_leads_to_its_letter(api: Api, name: str) -> None:
    await api.queue(name)
    first, second = await api.publish(name, "good", "bad")
    good, bad = await api.receive(name, 2)
    await api.settle(name, "acknowledge", [good])
    await api.settle(name, "reject", [bad])
    state = await dead(api, second["id"], name)
    assert state["status"] == "dead"
    assert state["dead_letter"]["reason"] == "rejected"
    letter = await api.get(f"/v1/messages/{state['dead_letter']['id']}")
    assert (letter["topic"], letter["value"]) == (f"{name}.dead", "bad")
    assert (await state_of(api, first["id"], name))["status"] == "acknowledged"


async def test_where_letters_are_not_kept_a_message_is_done(api: Api, name: str) -> None:
    await api.queue(name, dead_letters=False)
    (published,) = await api.publish(name, "bad")
    await api.settle(name, "reject", await api.receive(name))
    assert (await state_of(api, published["id"], name))["status"] == "done"


async def test_ids_of_nothing_are_not_found(api: Api, name: str) -> None:
    await api.queue(name)
    (published,) = await api.publish(name, "a")
    topic_id, partition, offset = message_ids.read(published["id"])
    for wrong in (
        message_ids.write(topic_id, partition, offset + 1),
        message_ids.write(topic_id, partition + 1, offset),
        message_ids.write(bytes(16), partition, offset),
        "_" * 38,
    ):
        await api.get(f"/v1/messages/{wrong}", status=404)
    await api.get("/v1/messages/short", status=400)


# --- dead letters


async def test_dead_letters_are_listed_and_sent_back(api: Api, name: str) -> None:
    await api.queue(name)
    published = await api.publish(name, *"abcde")
    await api.settle(name, "reject", await api.receive(name, 5), reason="no such customer")
    for message in published:
        await dead(api, message["id"], name)
    listed = await api.get(f"/v1/subscriptions/{name}/dead-letters")
    assert [letter["value"] for letter in listed["letters"]] == list("abcde")
    assert listed["next"] is None
    first = listed["letters"][0]
    assert (first["reason"], first["origin_topic"], first["origin_offset"]) == ("rejected", name, 0)
    assert (first["deliveries"], first["reason_text"]) == (1, "no such customer")

    page = await api.get(f"/v1/subscriptions/{name}/dead-letters?limit=3")
    rest = await api.get(f"/v1/subscriptions/{name}/dead-letters?after={page['next']}")
    assert [letter["value"] for letter in page["letters"] + rest["letters"]] == list("abcde")

    task = await api.post(f"/v1/subscriptions/{name}/dead-letters/redrive", {"limit": 2}, status=202)
    ended = await completed(api, task["id"])
    assert (ended["sent"], ended["failed"]) == (2, {})
    assert [message["value"] for message in await api.receive(name, 2)] == ["a", "b"]
    left = await api.get(f"/v1/subscriptions/{name}/dead-letters")
    assert [letter["value"] for letter in left["letters"]] == list("cde")


async def completed(api: Api, redrive: str) -> Any:
    async def ended() -> Any:
        found = await api.get(f"/v1/redrives/{redrive}")
        return None if found["state"] == "running" else found

    state: Any = await until_async(ended, "the redrive has ended", PATIENCE_S)
    assert state["state"] == "completed", state
    return state


async def test_a_redrive_takes_what_matches_and_only_its_subscriptions_letters(api: Api, name: str) -> None:
    await api.queue(name, dead_letter_topic=f"{name}-grave")
    await api.queue(name + "-2", dead_letter_topic=f"{name}-grave")
    for queue in (name, name + "-2"):
        (published,) = await api.publish(queue, queue)
        await api.settle(queue, "reject", await api.receive(queue))
        await dead(api, published["id"], queue)
    listed = await api.get(f"/v1/subscriptions/{name}/dead-letters")
    assert [letter["value"] for letter in listed["letters"]] == [name]

    path = f"/v1/subscriptions/{name}/dead-letters/redrive"
    dry = await api.post(path, {"dry_run": True, "reasons": ["expired"]}, status=202)
    assert (await completed(api, dry["id"]))["sent"] == 0
    real = await api.post(path, {"reasons": ["rejected"], "to": name + "-2"}, status=202)
    assert (await completed(api, real["id"]))["sent"] == 1
    assert (await api.receive(name + "-2"))[0]["value"] == name
    assert {task["id"] for task in (await api.get("/v1/redrives"))["redrives"]} >= {dry["id"], real["id"]}


async def test_a_redrive_is_for_the_subscription_of_the_letter_or_for_all_on_demand(
    api: Api, name: str
) -> None:
    await api.queue(name)
    await api.post("/v1/subscriptions", {"name": f"{name}-2", "topics": [name]}, status=201)
    path = f"/v1/subscriptions/{name}/dead-letters/redrive"
    for body in ({}, {"to_all": True}):
        (published,) = await api.publish(name, "x")
        await api.settle(name, "reject", await api.receive(name))
        await api.settle(f"{name}-2", "acknowledge", await api.receive(f"{name}-2"))
        await dead(api, published["id"], name)
        task = await api.post(path, body, status=202)
        assert (await completed(api, task["id"]))["sent"] == 1
        await api.settle(name, "acknowledge", await api.receive(name))
        await api.publish(name, "new")
        expected = ["x", "new"] if body else ["new"]
        others = await api.receive(f"{name}-2", len(expected))
        assert [message["value"] for message in others] == expected
        await api.settle(f"{name}-2", "acknowledge", others)
        await api.settle(name, "acknowledge", await api.receive(name))
    listed = await api.get("/v1/subscriptions")
    assert not [each["name"] for each in listed["subscriptions"] if each["name"].endswith(".redrive")]


async def test_a_redrive_can_be_cancelled(api: Api, name: str) -> None:
    await api.queue(name)
    published = await api.publish(name, *map(str, range(20)))
    await api.settle(name, "reject", await api.receive(name, 20))
    for message in published:
        await dead(api, message["id"], name)
    path = f"/v1/subscriptions/{name}/dead-letters/redrive"
    task = await api.post(path, {"rate": 1}, status=202)
    state = await api.post(f"/v1/redrives/{task['id']}/cancel")
    assert state["state"] == "cancelled"
    assert state["sent"] < 20
    await api.get("/v1/redrives/0123456789abcdef", status=404)


async def test_without_dead_letters_there_is_nothing_to_send_back(api: Api, name: str) -> None:
    await api.queue(name)
    assert (await api.get(f"/v1/subscriptions/{name}/dead-letters"))["letters"] == []
    await api.post(f"/v1/subscriptions/{name}/dead-letters/redrive", status=404)
