from tests.gateway.rest.conftest import Api


async def test_a_topic_is_created_shown_and_listed(api: Api, name: str) -> None:
    new = {"name": name, "partitions": 3, "configs": {"retention.ms": "60000"}}
    made = await api.post("/v1/topics", new, status=201)
    assert made["name"] == name
    assert [part["partition"] for part in made["partitions"]] == [0, 1, 2]
    assert made["configs"]["retention.ms"] == "60000"
    assert made["overrides"] == ["retention.ms"]
    assert await api.get(f"/v1/topics/{name}") == made
    listed = (await api.get(f"/v1/topics?prefix={name}"))["topics"]
    assert listed == [{"name": name, "id": made["id"], "partitions": 3, "internal": False}]


async def test_start_and_end_of_partitions_are_told(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    await api.publish(name, "one", "two")
    (part,) = (await api.get(f"/v1/topics/{name}"))["partitions"]
    assert (part["start"], part["end"]) == (0, 2)


async def test_configs_are_altered_and_taken_back(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    altered = await api.call("PATCH", f"/v1/topics/{name}", {"configs": {"retention.ms": "5000"}})
    assert altered["configs"]["retention.ms"] == "5000"
    reset = await api.call("PATCH", f"/v1/topics/{name}", {"configs": {"retention.ms": None}})
    assert reset["overrides"] == []


async def test_partitions_can_be_added_but_not_taken_away(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name, "partitions": 2}, status=201)
    wider = await api.call("PATCH", f"/v1/topics/{name}", {"partitions": 4})
    assert len(wider["partitions"]) == 4
    await api.call("PATCH", f"/v1/topics/{name}", {"partitions": 3}, status=422)


async def test_a_deleted_topic_is_gone(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    await api.call("DELETE", f"/v1/topics/{name}", status=204)
    await api.get(f"/v1/topics/{name}", status=404)
    await api.call("DELETE", f"/v1/topics/{name}", status=404)


async def test_a_topic_that_exists_is_a_conflict(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    problem = await api.post("/v1/topics", {"name": name}, status=409)
    assert problem["type"] == "/docs#conflict"


async def test_wrong_configs_are_refused_with_what_would_be_right(api: Api, name: str) -> None:
    problem = await api.post("/v1/topics", {"name": name, "configs": {"retention.mss": "1"}}, status=422)
    assert "retention.ms" in problem["detail"]
    await api.post("/v1/topics", {"name": name, "configs": {"retention.ms": "soon"}}, status=422)


async def test_lists_come_in_pages(api: Api, name: str) -> None:
    names = [f"{name}-{number}" for number in range(5)]
    for each in names:
        await api.post("/v1/topics", {"name": each}, status=201)
    found: list[str] = []
    after = ""
    while after is not None:
        page = await api.get("/v1/topics", params={"prefix": name, "limit": "2", "after": after})
        assert len(page["topics"]) <= 2
        found += [topic["name"] for topic in page["topics"]]
        after = page["next"]
    assert found == names


async def test_a_page_knows_all_partitions_of_topics_that_have_more_than_it_has_rows(
    api: Api, name: str
) -> None:
    for number, partitions in enumerate((1, 7, 2)):
        await api.post("/v1/topics", {"name": f"{name}-{number}", "partitions": partitions}, status=201)
    page = await api.get("/v1/topics", params={"prefix": name, "limit": "2"})
    assert [topic["partitions"] for topic in page["topics"]] == [1, 7]
    rest = await api.get("/v1/topics", params={"prefix": name, "limit": "1", "after": f"{name}-1"})
    assert [topic["partitions"] for topic in rest["topics"]] == [2]
    assert rest["next"] is None


async def test_a_prefix_that_no_name_can_have_finds_nothing(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    assert (await api.get("/v1/topics", params={"prefix": name + "é"}))["topics"] == []
    assert (await api.get("/v1/topics", params={"prefix": name, "after": "é"}))["topics"] == []
