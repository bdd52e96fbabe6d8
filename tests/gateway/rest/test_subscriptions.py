from postroad.client import Client, ShareConsumer
from tests.gateway.conftest import RunningGateway
from tests.gateway.rest.conftest import Api

PROMISES = {
    "start": "earliest",
    "lock_ms": 5000,
    "attempts": 7,
    "backoff_ms": 100,
    "backoff_factor": 3.0,
    "backoff_max_ms": 60000,
    "backoff_jitter": 0.5,
    "order": "key",
    "fair_by": "tenant",
    "delivery": "at-least-once",
    "dead_letters": True,
    "dead_letter_topic": "graveyard",
    "deduplicate_ms": 300000,
    "max_locks": 5000,
    "partition_max_locks": 500,
    "member_max_locks": 50,
}


async def test_a_subscription_shows_what_it_was_created_with(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name, "partitions": 2}, status=201)
    new = {"name": name, "topics": [name], "configs": {"share.session.timeout.ms": "20000"}, **PROMISES}
    made = await api.post("/v1/subscriptions", new, status=201)
    assert {key: made[key] for key in PROMISES} == PROMISES
    assert made["topics"] == [name]
    assert made["configs"]["share.session.timeout.ms"] == "20000"
    assert "share.session.timeout.ms" in made["overrides"]
    assert await api.get(f"/v1/subscriptions/{name}") == made
    listed = (await api.get(f"/v1/subscriptions?prefix={name}"))["subscriptions"]
    assert [(each["name"], each["topics"]) for each in listed] == [(name, [name])]


async def test_counts_tell_where_messages_are(api: Api, name: str) -> None:
    await api.queue(name)
    await api.publish(name, "a", "b", "c", "d")
    await api.post(f"/v1/topics/{name}/messages", {"value": "later", "delay_ms": 60_000}, status=201)
    came = await api.receive(name, 3)
    await api.settle(name, "acknowledge", came[:1])
    counts = (await api.get(f"/v1/subscriptions/{name}"))["counts"]
    assert (counts["lag"], counts["in_flight"], counts["delayed"]) == (4, 2, 1)
    (part,) = (await api.get(f"/v1/subscriptions/{name}"))["partitions"]
    assert (part["topic"], part["start"], part["end"]) == (name, 1, 5)


async def test_what_is_altered_holds_and_the_rest_stays(api: Api, name: str) -> None:
    await api.queue(name, lock_ms=5000, attempts=7)
    change = {"attempts": 9, "configs": {"share.record.lock.duration.ms": None}}
    altered = await api.call("PATCH", f"/v1/subscriptions/{name}", change)
    assert (altered["attempts"], altered["lock_ms"]) == (9, 30000)


async def test_topics_are_added_and_taken_away(api: Api, name: str) -> None:
    await api.queue(name, start="earliest")
    await api.post("/v1/topics", {"name": name + "-2"}, status=201)
    both = {"topics": [name, name + "-2"]}
    assert (await api.call("PATCH", f"/v1/subscriptions/{name}", both))["topics"] == both["topics"]
    await api.publish(name + "-2", "from the other")
    assert (await api.receive(name))[0]["value"] == "from the other"
    altered = await api.call("PATCH", f"/v1/subscriptions/{name}", {"topics": [name + "-2"]})
    assert altered["topics"] == [name + "-2"]


async def test_a_deleted_subscription_is_gone(api: Api, name: str) -> None:
    await api.queue(name)
    await api.call("DELETE", f"/v1/subscriptions/{name}", status=204)
    await api.get(f"/v1/subscriptions/{name}", status=404)
    await api.call("DELETE", f"/v1/subscriptions/{name}", status=404)
    await api.get(f"/v1/topics/{name}")


async def test_one_with_consumers_can_not_be_deleted(api: Api, name: str, gateway: RunningGateway) -> None:
    await api.queue(name)
    async with Client(gateway.bootstrap) as client, ShareConsumer(client, name, [name]):
        assert (await api.get(f"/v1/subscriptions/{name}"))["members"] == 1
        await api.call("DELETE", f"/v1/subscriptions/{name}", status=409)


async def test_names_are_taken_once(api: Api, name: str) -> None:
    await api.queue(name)
    problem = await api.post("/v1/subscriptions", {"name": name, "topics": [name]}, status=409)
    assert "subscription of this name" in problem["detail"]


async def test_an_unknown_topic_is_most_likely_a_typing_error(api: Api, name: str) -> None:
    problem = await api.post("/v1/subscriptions", {"name": name, "topics": [name]}, status=404)
    assert name in problem["detail"]


async def test_configs_that_contradict_are_refused(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    new = {"name": name, "topics": [name]}
    for wrong in (
        {"start": "tomorrow"},
        {"backoff_ms": 1000, "backoff_max_ms": 10},
        {"lock_ms": 1000, "configs": {"share.record.lock.duration.ms": "2000"}},
        {"configs": {"no.such.config": "1"}},
        {"configs": {"postroad.webhook": "{}"}},
        {"configs": {"postroad.topics": "other"}},
    ):
        await api.post("/v1/subscriptions", {**new, **wrong}, status=422)
    await api.get(f"/v1/subscriptions/{name}", status=404)


async def test_seek_goes_back_and_forth(api: Api, name: str) -> None:
    await api.queue(name)
    await api.publish(name, "a", "b", "c")
    await api.settle(name, "acknowledge", await api.receive(name, 3))
    moved = await api.post(f"/v1/subscriptions/{name}/seek", {"to": "earliest", "dry_run": True})
    assert moved["partitions"] == [{"topic": name, "partition": 0, "before": 3, "after": 0}]
    assert (await api.get(f"/v1/subscriptions/{name}"))["counts"]["lag"] == 0
    await api.post(f"/v1/subscriptions/{name}/seek", {"offset": 1, "topic": name, "partition": 0})
    assert [message["value"] for message in await api.receive(name, 2)] == ["b", "c"]
    await api.post(f"/v1/subscriptions/{name}/seek", {"time_ms": 0})
    assert len(await api.receive(name, 3)) == 3
    await api.post(f"/v1/subscriptions/{name}/seek", {"to": "latest"})
    assert (await api.get(f"/v1/subscriptions/{name}"))["counts"]["lag"] == 0


async def test_seek_needs_one_place_that_is_the_subscriptions(api: Api, name: str) -> None:
    await api.queue(name)
    await api.post(f"/v1/subscriptions/{name}/seek", {}, status=422)
    await api.post(f"/v1/subscriptions/{name}/seek", {"to": "latest", "offset": 1}, status=422)
    await api.post(f"/v1/subscriptions/{name}/seek", {"to": "latest", "partition": 0}, status=422)
    await api.post(f"/v1/subscriptions/{name}/seek", {"to": "latest", "topic": "other"}, status=404)
    await api.post(f"/v1/subscriptions/{name}-x/seek", {"to": "latest"}, status=404)


async def test_purge_is_done_with_everything(api: Api, name: str) -> None:
    await api.queue(name)
    await api.publish(name, "a", "b", "c")
    held = await api.receive(name)
    assert await api.post(f"/v1/subscriptions/{name}/purge") == {"purged": 3}
    assert (await api.post(f"/v1/subscriptions/{name}/receive", {"wait_ms": 200}))["messages"] == []
    await api.settle(name, "acknowledge", held, status=207)
