"""The list of configs says what a config means and which values the nodes take."""

from __future__ import annotations

import pytest

from postroad.cluster.config_definition import between, one_of, some_of
from tests.gateway.rest.conftest import Api


async def test_configs_are_told_with_their_ranges(api: Api) -> None:
    listed = (await api.get("/v1/configs"))["configs"]
    assert [(each["of"], each["name"]) for each in listed] == sorted(
        (each["of"], each["name"]) for each in listed
    )
    assert all(each["meaning"] for each in listed)
    found = {(each["of"], each["name"]): each for each in listed}
    retention = found["topic", "retention.ms"]
    assert (retention["default"], retention["range"]) == ("604800000", "at least -1")
    assert (retention["minimum"], retention["maximum"], retention["has_effect"]) == (-1, None, True)
    assert found["topic", "cleanup.policy"]["choices"] == ["delete", "compact"]
    assert found["topic", "preallocate"]["has_effect"] is False
    assert found["topic", "preallocate"]["choices"] == ["true", "false"]
    lock = found["group", "share.record.lock.duration.ms"]
    assert (lock["type"], lock["minimum"], lock["maximum"]) == ("int", 0, 43_200_000)
    assert lock["default_from"] == "group.share.record.lock.duration.ms"
    assert ("group", "postroad.webhook") not in found  # it holds a secret, and is set elsewhere
    only = (await api.get("/v1/configs?of=group"))["configs"]
    assert {each["of"] for each in only} == {"group"}
    await api.get("/v1/configs?of=node", status=400)


async def test_what_is_out_of_a_configs_range_is_refused_with_that_range(api: Api, name: str) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    for each in (await api.get("/v1/configs?of=topic"))["configs"]:
        if each["minimum"] is None:
            continue
        wrong = {each["name"]: str(int(each["minimum"]) - 1)}
        problem = await api.call("PATCH", f"/v1/topics/{name}", {"configs": wrong}, status=422)
        assert each["range"] in problem["detail"]


@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [
        (between(0, 5), 5, 6),
        (one_of("a", "b"), "b", "c"),
        (some_of("a", "b"), ("b", "a"), ("a", "a")),
    ],
)
def test_a_range_holds_for_what_is_right_and_names_itself_to_what_is_not(
    rule: object, right: object, wrong: object
) -> None:
    assert callable(rule)
    assert rule(right) is None
    assert rule(wrong) == getattr(rule, "words", None)
