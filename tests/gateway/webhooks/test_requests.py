"""What is in a web hook's request, and which web hooks can be set up at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.client.share_message import ShareMessage
from postroad.gateway.webhooks import hook, request_headers, signature
from postroad.gateway.webhooks.hook import Webhook, WrongHook

GOOD = Webhook("https://example.com/hook?a=b", "s3cret")


def message(**fields: object) -> ShareMessage:
    plain = ShareMessage("orders", 3, 41, 1_767_225_600_123, b"k", b"value", (), 2)
    return plain._replace(**fields)  # type: ignore[arg-type]


def headers_of(**fields: object) -> dict[str, str]:
    return request_headers.of_message(message(**fields), "the-id", "mails")


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The example of the scheme's own documentation."""
    signed = signature.sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert signed["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_message_becomes_a_cloud_event() -> None:
    assert headers_of() == {
        "Content-Type": "application/octet-stream",
        "ce-specversion": "1.0",
        "ce-id": "the-id",
        "ce-source": "/v1/topics/orders",
        "ce-type": "postroad.message",
        "ce-time": "2026-01-01T00:00:00.123Z",
        "ce-subject": "k",
        "Postroad-Subscription": "mails",
        "Postroad-Topic": "orders",
        "Postroad-Partition": "3",
        "Postroad-Offset": "41",
        "Postroad-Key": "k",
        "Postroad-Attempt": "2",
        "Postroad-Delivery-Id": "the-id.2",
    }


def test_a_cloud_event_that_came_over_kafka_stays_what_it_is() -> None:
    given_headers = [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"A-1"),
        ("ce_source", b"/shop"),
        ("ce_type", b"com.example.order"),
        ("ce_tenant", "m\u00fcller & co".encode()),
        ("content-type", b"application/json"),
        ("trace", b"t1"),
    ]
    headers = headers_of(headers=given_headers)
    assert headers["ce-id"] == "A-1"
    assert headers["ce-source"] == "/shop"
    assert headers["ce-type"] == "com.example.order"
    assert headers["ce-tenant"] == "m%C3%BCller%20&%20co"
    assert headers["Content-Type"] == "application/json"
    assert headers["Postroad-Header-trace"] == "t1"


def test_a_key_that_is_no_text_comes_in_base64_and_one_that_is_too_long_not_at_all() -> None:
    assert headers_of(key=b"\xff")["Postroad-Key-Base64"] == "/w=="
    assert "ce-subject" not in headers_of(key=b"\xff")
    assert not {"Postroad-Key", "ce-subject"} & set(headers_of(key=b"k" * 5000))


def test_a_tombstone_is_told() -> None:
    assert headers_of(value=None)["Postroad-Tombstone"] == "true"


header_names = st.text(max_size=20) | st.sampled_from(["content-type", "ce_id", "ce_type", "Host"])


@given(
    key=st.none() | st.binary(max_size=50),
    timestamp=st.integers(-(2**63), 2**63 - 1),
    given_headers=st.lists(st.tuples(header_names, st.none() | st.binary(max_size=50)), max_size=6),
)
def test_whatever_a_message_holds_its_headers_can_be_sent(
    key: bytes | None, timestamp: int, given_headers: list[tuple[str, bytes | None]]
) -> None:
    for name, value in headers_of(key=key, timestamp=timestamp, headers=given_headers).items():
        assert name.isascii()
        assert name.isprintable()
        assert " " not in name
        assert value.isascii()
        assert not value or value.isprintable()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "http://example.com/",
        "ftp://example.com/",
        "https://",
        "https://:443/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://user:pw@example.com/",
        "https://example.com/#part",
        "https://example.com/\r\nHost: other",
        "https://exa mple.com/",
        "https://m\u00fcller.example/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://[fe80::1%25eth0]/",
        "https://[::1/",
        "https://example.com/" + "x" * 2048,
    ],
)
def test_urls_that_lead_nowhere_good_are_refused(url: str) -> None:
    with pytest.raises(WrongHook):
        hook.check(Webhook(url, "s"), private=False)


@pytest.mark.parametrize(
    "host",
    [
        "127.1",
        "127.0.1",
        "2130706433",
        "0",
        "0.",
        "0x7f.1",
        "0x7F.0.0.1",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.1.",
        "127.1.",
        "1.2.3.4.5",
        "a.1",
        "%31%32%37.0.0.1",
        "example.com%2f",
        "exa\\mple.com",
        "..",
        "a..b",
        "[fd00:ec2::254%1]",
        "[fd00:ec2::254%251]",
        "[fd20:ce::254]",
        "[fd00:ec2::23]",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[v1.a]",
    ],
)
def test_hosts_that_are_written_in_an_unusual_way_or_tell_secrets_are_always_refused(host: str) -> None:
    with pytest.raises(WrongHook):
        hook.check(Webhook(f"https://{host}/", "s"), private=True)


@pytest.mark.parametrize(
    "host", ["example.com", "Example.COM.", "a-b.example", "1and1.com", "x_y.example", "[2606:4700::1111]"]
)
def test_names_and_addresses_as_usual_are_taken(host: str) -> None:
    hook.check(Webhook(f"https://{host}/", "s"), private=False)


def test_http_and_private_addresses_need_the_setting() -> None:
    for url in ("http://127.0.0.1:8000/", "http://example.com/", "https://10.0.0.1/"):
        hook.check(Webhook(url, "s"), private=True)
        with pytest.raises(WrongHook):
            hook.check(Webhook(url, "s"), private=False)
    with pytest.raises(WrongHook):
        hook.check(Webhook("http://169.254.169.254/", "s"), private=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"secret": ""},
        {"secret": "x" * 257},
        {"secret": "whsec_***"},
        {"concurrency": 0},
        {"concurrency": 65},
        {"rate": -1.0},
        {"rate": float("nan")},
        {"timeout_ms": 0},
        {"timeout_ms": 30_001},
        {"headers": {"Host": "other"}},
        {"headers": {"Content-Length": "0"}},
        {"headers": {"webhook-id": "1"}},
        {"headers": {"ce-id": "1"}},
        {"headers": {"a b": "1"}},
        {"headers": {"a": "1\r\nb: 2"}},
        {"headers": {f"h{n}": "" for n in range(21)}},
    ],
)
def test_settings_out_of_bounds_are_refused(changes: dict[str, object]) -> None:
    fields = {"url": GOOD.url, "secret": GOOD.secret, **changes}
    with pytest.raises(WrongHook):
        hook.check(Webhook(**fields), private=False)  # type: ignore[arg-type]


def test_a_web_hook_reads_as_it_was_written() -> None:
    hook.check(GOOD, private=False)
    assert hook.read(hook.write(GOOD)) == GOOD
    assert hook.read("") is None
    for text in ("{", "[]", '{"url": 1}', "[" * 100_000, '{"url": "https://a.example"}'):
        with pytest.raises(WrongHook):
            hook.read(text)
