"""The page at /docs and the document that it reads."""

import re

from tests.gateway.rest.conftest import Api


async def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing_inline(api: Api) -> None:
    for path, content_type in (
        ("/docs", "text/html"),
        ("/docs/page.js", "text/javascript"),
        ("/docs/page.css", "text/css"),
    ):
        async with api.session.get(path) as response:
            text = await response.text()
            assert response.content_type == content_type
            policy = response.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert not re.search(r"https?://|//cdn|innerHTML|<script>|style=|onclick", text)


async def test_each_problem_has_its_place_on_the_page(api: Api) -> None:
    problem = await api.get("/v1/topics/no-such-topic", status=404)
    slugs = {known["slug"] for known in (await api.get("/openapi.json"))["x-problems"]}
    assert problem["type"].removeprefix("/docs#") in slugs


async def test_each_operation_has_a_name_of_its_own(api: Api) -> None:
    paths = (await api.get("/openapi.json"))["paths"]
    names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(set(names)) == len(names) > 20
