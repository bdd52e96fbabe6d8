"""Which pages may use a gateway, and by which names it is known."""

from __future__ import annotations

import time
import timeit
from typing import Any

import pytest
from multidict import CIMultiDict

from postroad.config.sections import Http
from postroad.gateway.origin import FOREIGN_NAME, FROM_ELSEWHERE, Visitors


def refusal(http: Http | None = None, *, keys: bool = False, **headers: str) -> str | None:
    given: Any = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    return Visitors(http or Http(), keys).refusal(given)


OPEN: dict[str, Any] = {"host": "0.0.0.0", "insecure": True}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8080",
        "127.0.0.1",
        "localhost:8080",
        "LOCALHOST.",
        "sqs.eu-west-1.localhost:8080",
        "[::1]:8080",
        "192.168.3.4:8080",
        "host.docker.internal:8080",
    ],
)
def test_addresses_and_local_names_are_always_right(host: str) -> None:
    assert refusal(Host=host) is None
    assert refusal(Http(hosts="queues"), Host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8080",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evillocalhost",
        "",
        ":8080",
        "[",
        "[evil.example]",
        "0x7f.1",
    ],
)
def test_a_foreign_name_that_resolves_to_us_is_refused(host: str) -> None:
    assert refusal(Host=host) == FOREIGN_NAME
    assert refusal(Host=host, Origin=f"http://{host}") == FOREIGN_NAME


def test_programs_of_old_send_no_host() -> None:
    assert refusal() is None


def test_names_of_our_own_are_configured() -> None:
    assert refusal(Http(hosts="queues,Other.example"), Host="other.example:80") is None
    assert refusal(Http(hosts="queues"), Host="other.example") == FOREIGN_NAME
    assert refusal(Http(hosts="*"), Host="other.example") is None
    assert refusal(Http(url="https://queues.example/x"), Host="queues.example") is None
    assert refusal(Http(host="devbox", insecure=True, hosts="x"), Host="devbox:8080") is None


def test_where_a_key_is_needed_or_others_are_let_in_any_name_is_right_unless_some_are_configured() -> None:
    assert refusal(keys=True, Host="queues.example") is None
    assert refusal(Http(**OPEN), Host="postroad") is None
    assert refusal(Http(**OPEN, hosts="queues"), Host="postroad") == FOREIGN_NAME
    assert refusal(Http(hosts="queues"), keys=True, Host="postroad") == FOREIGN_NAME


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:8080", "HTTP://127.0.0.1:8080", "https://127.0.0.1:8080"]
)
def test_pages_of_the_gateway_itself_may_use_it(origin: str) -> None:
    assert refusal(Host="127.0.0.1:8080", Origin=origin, Sec_Fetch_Site="same-origin") is None


def test_pages_of_the_address_that_a_proxy_serves_may_use_it() -> None:
    behind_proxy = Http(url="https://queues.example/base")
    assert refusal(behind_proxy, Host="127.0.0.1:8080", Origin="https://queues.example") is None
    assert refusal(behind_proxy, Host="127.0.0.1:8080", Origin="https://other.example") == FROM_ELSEWHERE


@pytest.mark.parametrize("keys", [False, True])
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://127.0.0.1:1", "null", "", "http://", "://"]
)
def test_pages_from_elsewhere_may_not(origin: str, keys: bool) -> None:
    assert refusal(keys=keys, Host="127.0.0.1:8080", Origin=origin) == FROM_ELSEWHERE


@pytest.mark.parametrize(
    ("site", "right"), [("none", True), ("same-site", False), ("cross-site", False), ("", False)]
)
def test_images_and_links_of_other_sites_may_not_either(site: str, right: bool) -> None:
    assert (refusal(Host="127.0.0.1:8080", Sec_Fetch_Site=site) is None) is right


def test_it_takes_no_memory_of_many_addresses_and_no_time_of_a_program() -> None:
    visitors = Visitors(Http(), keys_required=False)
    for number in range(5000):
        assert visitors.refusal({"host": f"127.0.0.1:{number}"}) is None
    assert len(visitors._known) <= 1000
    headers: Any = CIMultiDict({"Host": "127.0.0.1:1", "User-Agent": "x", "X-Amz-Target": "y", "Accept": "z"})
    took = timeit.repeat(lambda: visitors.refusal(headers), timer=time.thread_time, number=10_000, repeat=5)
    took_s = min(took) / 10_000
    assert took_s < 10e-6, took_s  # a third of a microsecond, where nothing else runs
