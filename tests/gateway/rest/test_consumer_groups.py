from postroad.client import Client, TopicPartition, groups
from tests.gateway.conftest import RunningGateway
from tests.gateway.rest.conftest import Api


async def test_a_groups_lag_is_told(api: Api, name: str, gateway: RunningGateway) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    await api.publish(name, "a", "b", "c")
    async with Client(gateway.bootstrap) as client:
        await groups.commit(client, name, {TopicPartition(name, 0): 1})
    listed = (await api.get(f"/v1/consumer-groups?prefix={name}"))["groups"]
    assert [group["name"] for group in listed] == [name]
    found = await api.get(f"/v1/consumer-groups/{name}")
    assert (found["lag"], found["members"]) == (2, [])
    (part,) = found["partitions"]
    assert (part["topic"], part["committed"], part["end"], part["messages"]) == (name, 1, 3, 2)
    assert part["seconds"] >= 0


async def test_subscriptions_are_no_consumer_groups(api: Api, name: str) -> None:
    await api.queue(name)
    assert (await api.get(f"/v1/consumer-groups?prefix={name}"))["groups"] == []


async def test_an_unknown_group_is_not_found(api: Api, name: str) -> None:
    await api.get(f"/v1/consumer-groups/{name}", status=404)


async def test_a_subscription_can_not_take_a_groups_name(
    api: Api, name: str, gateway: RunningGateway
) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    async with Client(gateway.bootstrap) as client:
        await groups.commit(client, name, {TopicPartition(name, 0): 0})
    problem = await api.post("/v1/subscriptions", {"name": name, "topics": [name]}, status=409)
    assert "consumer group" in problem["detail"]


async def test_each_is_found_only_as_what_it_is(api: Api, name: str, gateway: RunningGateway) -> None:
    await api.queue(name)
    await api.get(f"/v1/consumer-groups/{name}", status=404)
    async with Client(gateway.bootstrap) as client:
        await groups.commit(client, name + "-group", {TopicPartition(name, 0): 0})
    await api.get(f"/v1/subscriptions/{name}-group", status=404)
    await api.post(f"/v1/subscriptions/{name}-group/receive", status=404)
    await api.call("DELETE", f"/v1/subscriptions/{name}-group", status=404)
    await api.get(f"/v1/consumer-groups/{name}-group")
