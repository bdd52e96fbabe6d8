"""What holds for every request: who asks, in what form, and how a refusal is told."""

from typing import Any

import aiohttp
import pytest

from postroad.gateway import rest
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.rest.conftest import Api

KEYS = "reader:one,boss:two:admin"


@pytest.fixture(scope="module")
def secured(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([rest.routes], access_keys=KEYS)


async def answered(api: Api, method: str, path: str, **options: object) -> aiohttp.ClientResponse:
    async with api.session.request(method, path, **options) as response:  # type: ignore[arg-type]
        await response.read()
        return response


# --- who asks


@pytest.mark.parametrize(
    "header",
    [
        None,
        "Bearer reader:two",
        "Bearer reader",
        "Bearer nobody:one",
        "Basic !!!",
        "Basic",
        "Digest reader:one",
    ],
)
async def test_without_a_right_key_nothing_is_answered(
    api: Api, secured: RunningGateway, header: str | None
) -> None:
    headers = {} if header is None else {"Authorization": header}
    async with aiohttp.ClientSession(secured.url, headers=headers) as session:
        await Api(session).get("/v1/topics", status=401)
        response = await answered(Api(session), "POST", "/v1/topics", json={"name": "x"})
        assert response.status == 401
        assert "Bearer" in response.headers["WWW-Authenticate"]


async def test_a_key_is_shown_as_bearer_or_basic(secured: RunningGateway) -> None:
    for headers in ({"Authorization": "Bearer reader:one"}, {"Authorization": "basic cmVhZGVyOm9uZQ=="}):
        async with aiohttp.ClientSession(secured.url, headers=headers) as session:
            await Api(session).get("/v1/topics")


async def test_only_an_admin_deletes_and_purges(secured: RunningGateway, name: str) -> None:
    reader = {"Authorization": "Bearer reader:one"}
    boss = {"Authorization": "Bearer boss:two"}
    async with aiohttp.ClientSession(secured.url) as session:
        api = Api(session)
        await api.post("/v1/topics", {"name": name}, status=201, headers=reader)
        new = {"name": name, "topics": [name]}
        await api.post("/v1/subscriptions", new, status=201, headers=reader)
        for method, path, status in (
            ("POST", f"/v1/subscriptions/{name}/purge", 200),
            ("POST", f"/v1/subscriptions/{name}/seek", 422),
            ("PATCH", f"/v1/topics/{name}", 200),
            ("DELETE", f"/v1/subscriptions/{name}", 204),
            ("DELETE", f"/v1/topics/{name}", 204),
        ):
            await api.call(method, path, status=403, headers=reader)
            await api.call(method, path, status=status, headers=boss)


LOSSES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a topic taken away": ({}, {"topics": []}),
    "no dead letters": ({}, {"dead_letters": False}),
    "no dead letters, as a config": ({}, {"configs": {"postroad.dead.letters": "false"}}),
    "no dead letters, in capitals": ({}, {"configs": {"postroad.dead.letters": " FALSE"}}),
    "the usual way with dead letters": ({}, {"configs": {"postroad.dead.letters": None}}),
    "at most once": ({}, {"delivery": "at-most-once"}),
    "at most once, behind a blank": ({}, {"configs": {"postroad.delivery": " at-most-once"}}),
    "fewer attempts without dead letters": ({"dead_letters": False, "attempts": 9}, {"attempts": 1}),
    "fewer attempts, with a sign": (
        {"configs": {"postroad.dead.letters": "False"}, "attempts": 9},
        {"configs": {"share.delivery.count.limit": "+1"}},
    ),
    "the usual attempts without dead letters": (
        {"dead_letters": False, "attempts": 9},
        {"configs": {"share.delivery.count.limit": None}},
    ),
}


@pytest.mark.parametrize(("settings", "change"), LOSSES.values(), ids=LOSSES)
async def test_only_an_admin_changes_a_subscription_so_that_messages_are_lost(
    secured: RunningGateway, name: str, settings: dict[str, Any], change: dict[str, Any]
) -> None:
    reader = {"Authorization": "Bearer reader:one"}
    boss = {"Authorization": "Bearer boss:two"}
    async with aiohttp.ClientSession(secured.url) as session:
        api = Api(session)
        for topic in (name, name + "-2"):
            await api.post("/v1/topics", {"name": topic}, status=201, headers=reader)
        new = {"name": name, "topics": [name, name + "-2"], **settings}
        await api.post("/v1/subscriptions", new, status=201, headers=reader)
        path = f"/v1/subscriptions/{name}"
        harmless = {"lock_ms": 1000, "attempts": 10}
        if "configs" not in settings:
            harmless["dead_letters"] = settings.get("dead_letters", True)
        await api.call("PATCH", path, harmless, headers=reader)
        if "topics" in change:
            change = {"topics": [name]}
        refused = await api.call("PATCH", path, change, status=403, headers=reader)
        assert "needs an admin key" in refused["detail"]
        await api.call("PATCH", path, change, headers=boss)


async def test_the_document_says_that_keys_are_needed(api: Api, secured: RunningGateway) -> None:
    assert "security" not in (await api.get("/openapi.json"))["paths"]["/v1/topics"]["get"]
    async with aiohttp.ClientSession(secured.url) as session:
        operation = (await Api(session).get("/openapi.json"))["paths"]["/v1/topics"]["get"]
    assert operation["security"] == [{"bearer": []}, {"basic": []}]
    assert "401" in operation["responses"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://[", ""])
async def test_pages_from_elsewhere_change_nothing(api: Api, name: str, origin: str) -> None:
    await api.queue(name)
    headers = {"Origin": origin, "Content-Type": "text/plain"}
    await api.call("POST", f"/v1/topics/{name}/messages", data=b"x", headers=headers, status=403)
    await api.post(f"/v1/subscriptions/{name}/purge", headers={"Origin": origin}, status=403)


async def test_a_foreign_name_for_this_machine_opens_nothing(api: Api) -> None:
    """DNS rebinding: to the browser the page and the gateway are of one origin."""
    foreign = {"Host": "evil.example:8080", "Origin": "http://evil.example:8080"}
    await api.get("/v1/topics", headers={"Host": "evil.example:8080"}, status=403)
    await api.post("/v1/topics", {"name": "t"}, headers=foreign, status=403)
    await api.get("/v1/topics", headers={"Host": "localhost:8080"})


async def test_links_and_images_elsewhere_get_nothing(api: Api) -> None:
    await api.get("/v1/topics", headers={"Sec-Fetch-Site": "cross-site"}, status=403)
    await api.get("/v1/topics", headers={"Sec-Fetch-Site": "none"})


async def test_the_gateways_own_page_may_do_everything(api: Api, gateway: RunningGateway) -> None:
    await api.get("/v1/topics", headers={"Origin": gateway.url})


# --- paths and methods


async def test_another_method_is_told_what_is_allowed(api: Api, name: str) -> None:
    for method, path, allowed in (
        ("PUT", "/v1/topics", "GET, HEAD, POST"),
        ("POST", f"/v1/topics/{name}", "GET, HEAD, PATCH, DELETE"),
        ("GET", f"/v1/subscriptions/{name}/receive", "POST"),
        ("OPTIONS", f"/v1/messages/{name}", "GET, HEAD"),
        ("TRACE", "/v1/topics", "GET, HEAD, POST"),
    ):
        response = await answered(api, method, path)
        assert response.status == 405
        assert response.headers["Allow"] == allowed
        assert response.content_type == "application/problem+json"


async def test_head_answers_as_get_without_a_body(api: Api) -> None:
    response = await answered(api, "HEAD", "/v1/topics")
    assert response.status == 200
    assert response.content_type == "application/json"


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/", "/v1/nothing", "/v1/topics/", "/v1/topics/a/b/c", "/v2/topics"]
)
async def test_nothing_is_at_other_paths(api: Api, path: str) -> None:
    assert (await answered(api, "GET", path)).status == 404


async def test_names_that_can_not_be_are_refused(api: Api) -> None:
    for path in ("/v1/topics/a%20b", "/v1/topics/%2F", "/v1/topics/" + "x" * 250, "/v1/topics/%FF"):
        await api.get(path, status=400)
    await api.get("/v1/subscriptions/" + "x" * 250, status=400)


async def test_a_subscription_of_any_name_can_be_asked_for(api: Api) -> None:
    for name in ("a%20b", "%2F", "%C3%A9", "%00", "a%2Fb", "%FF", "a:b"):
        response = await answered(api, "GET", f"/v1/subscriptions/{name}")
        assert response.status in (404, 422), name


# --- forms


async def test_a_query_is_what_the_document_says(api: Api) -> None:
    for query in ("limit=0", "limit=1001", "limit=x", "limit=", "limit=1&limit=2", "other=1", "limit=1e3x"):
        await api.get(f"/v1/topics?{query}", status=400)


async def test_the_document_tells_which_parts_of_a_query_are_needed(api: Api) -> None:
    document = await api.get("/openapi.json")
    for path, methods in document["paths"].items():
        needed = {
            each["name"]
            for each in methods.get("get", {}).get("parameters", [])
            if each["in"] == "query" and each["required"]
        }
        if needed and "{" not in path:
            problem = await api.get(path, status=400)
            assert "missing required field" in problem["detail"], path
    (rule,) = [each for each in document["paths"]["/v1/history"]["get"]["parameters"] if each["required"]]
    assert rule["name"] == "of"


async def test_only_json_is_taken_where_json_is_expected(api: Api, name: str) -> None:
    body = b'{"name": "x"}'
    for content_type in (
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "application/jsonx",
    ):
        headers = {"Content-Type": content_type}
        await api.call("POST", "/v1/topics", data=body, headers=headers, status=415)
    headers = {"Content-Type": "application/json; charset=latin-1"}
    await api.call("POST", "/v1/topics", data=body, headers=headers, status=415)
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    new = f'{{"name": "{name}"}}'.encode()
    await api.call("POST", "/v1/topics", data=new, headers=headers, status=201)


async def test_who_takes_no_json_gets_none(api: Api) -> None:
    for accept in ("text/html", "application/xml, text/plain", "application/json;q=0", "*/*;q=0.0"):
        await api.get("/v1/topics", headers={"Accept": accept}, status=406)
    for accept in (
        "*/*",
        "text/html, */*;q=0.1",
        "application/*",
        "application/json;q=0.5",
        "APPLICATION/JSON",
    ):
        await api.get("/v1/topics", headers={"Accept": accept})


async def test_where_no_body_belongs_none_is_taken(api: Api, name: str) -> None:
    await api.call("GET", f"/v1/topics/{name}", {"a": 1}, status=400)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"17",
        b'{"name": 17}',
        b'{"name": null}',
        b'{"name": "x", "unknown": 1}',
        b'{"name": "x", "partitions": "1"}',
        b'{"name": "x", "partitions": 1.5}',
        b'{"name": "x", "partitions": 99999999999999999999999999999}',
        b'{"name": "x", "partitions": -1}',
        b'{"name": "x", "partitions": 1e400}',
        b'{"name": "x", "configs": {"retention.ms": 5}}',
        b'{"name": "\xff"}',
        b'{"name": "\\ud800"}',
        b'{"name": "a/b"}',
        b'{"name": "' + b"x" * 250 + b'"}',
        b'{"name": ' + b"[" * 100_000,
        b'{"name": ' + b"[" * 65 + b"]" * 65 + b"}",
        b'\xef\xbb\xbf{"name": "x"}',
        b'{"name": "x"} trailing',
    ],
)
async def test_bodies_that_do_not_fit_are_refused(api: Api, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    problem = await api.call("POST", "/v1/topics", data=body, headers=headers, status=400)
    assert problem["type"] == "/docs#malformed"


@pytest.mark.parametrize(
    "message",
    [
        b"{}",
        b'{"value": ' + b"[" * 65 + b"]" * 65 + b"}",
        b'{"value": "x", "key": 5}',
        b'{"value": "x", "key": {"base64": "?"}}',
        b'{"value": "x", "key": {"base64": "AAA"}}',
        b'{"value": "x", "headers": [["a"]]}',
        b'{"value": "x", "headers": {"a": 5}}',
        b'{"value": "x", "delay_ms": -1}',
        b'{"value": "x", "deliver_at_ms": 99999999999999999}',
        b'{"value": "x", "partition": 4294967296}',
        b'{"value": "x", "timestamp_ms": 1e3}',
        b'{"value": nan}',
        b'{"value": "\xff"}',
        b"[" + b'{"value":1},' * 1000 + b'{"value":1}]',
    ],
)
async def test_messages_that_do_not_fit_are_refused_and_none_is_stored(
    api: Api, name: str, message: bytes
) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    headers = {"Content-Type": "application/json"}
    path = f"/v1/topics/{name}/messages"
    await api.call("POST", path, data=message, headers=headers, status=400)
    await api.call("POST", path, data=b'[{"value":"good"},' + message + b"]", headers=headers, status=400)
    await api.call("POST", path, data=b"[]", headers=headers, status=400)
    assert (await api.get(f"/v1/topics/{name}"))["partitions"][0]["end"] == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"Postroad-Delay-Ms": "soon"},
        {"Postroad-Delay-Ms": "-1"},
        {"Postroad-Expires-At-Ms": "9" * 30},
        {"Postroad-Partition": "1.5"},
        {"Idempotency-Key": ""},
        {"Idempotency-Key": "x" * 256},
        {"Idempotency-Key": "with blank"},
    ],
)
async def test_request_headers_that_do_not_fit_are_refused(
    api: Api, name: str, headers: dict[str, str]
) -> None:
    await api.post("/v1/topics", {"name": name}, status=201)
    headers = {"Content-Type": "application/octet-stream", **headers}
    await api.call("POST", f"/v1/topics/{name}/messages", data=b"x", headers=headers, status=400)


async def test_null_is_no_value_of_a_query(api: Api) -> None:
    response = await answered(api, "GET", "/v1/subscriptions/any/messages?partition=null")
    assert response.status == 400
