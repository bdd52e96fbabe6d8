"""What a web hook's request says about its message, apart from the body, which is the message's value.

CloudEvents 1.0 in binary mode. A message that came as a CloudEvent over Kafka (its headers are `ce_id`,
`ce_type` …) goes out as the event that it is; any other becomes one, of the type `postroad.message`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote

from postroad.client.share_message import ShareMessage

EVENT_TYPE: Final = "postroad.message"
OCTETS: Final = "application/octet-stream"
VALUE_MAX: Final = 1024  # bytes of a header, encoded; what is longer is left out
ALL_MAX: Final = 8192  # bytes of the message's own headers together

# As CloudEvents wants it in HTTP: blanks, quotes, percent signs and what is not visible ASCII are encoded.
_PLAIN: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_ATTRIBUTE: Final = re.compile(r"ce_([a-z0-9]{1,20})")
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$&'*+.^_`|~-]{1,100}")
_CONTENT_TYPE: Final = re.compile(r"[A-Za-z0-9.+-]{1,64}/[A-Za-z0-9.+-]{1,64}( ?;[ -~]{1,128})?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def of_message(message: ShareMessage, message_id: str, subscription: str) -> dict[str, str]:
    headers = {
        "Content-Type": OCTETS,
        "ce-specversion": "1.0",
        "ce-id": message_id,
        "ce-source": f"/v1/topics/{message.topic}",
        "ce-type": EVENT_TYPE,
        "ce-time": _time(message.timestamp),
        "Postroad-Subscription": _encoded(subscription.encode()),
        "Postroad-Topic": message.topic,
        "Postroad-Partition": str(message.partition),
        "Postroad-Offset": str(message.offset),
        "Postroad-Attempt": str(message.delivery_count),
        "Postroad-Delivery-Id": f"{message_id}.{message.delivery_count}",
    }
    if message.value is None:
        headers["Postroad-Tombstone"] = "true"
    headers |= _key(message.key)
    headers |= _own(message)
    return headers


def _key(key: bytes | None) -> Mapping[str, str]:
    if key is None:
        return {}
    try:
        key.decode()
    except UnicodeDecodeError:
        return _short({"Postroad-Key-Base64": b64encode(key).decode()})
    text = _encoded(key)
    return _short({"ce-subject": text, "Postroad-Key": text}) if text else {"Postroad-Key": ""}


def _own(message: ShareMessage) -> Mapping[str, str]:
    """From the message's headers: the event's attributes, its content type, and all others with a prefix."""
    names = {name for name, _ in message.headers}
    is_event = {"ce_specversion", "ce_id", "ce_type", "ce_source"} <= names
    own: dict[str, str] = {}
    room = ALL_MAX
    for name, value in message.headers:
        attribute = _ATTRIBUTE.fullmatch(name) if is_event else None
        text = _encoded(value or b"")
        if name.lower() == "content-type" and _CONTENT_TYPE.fullmatch((value or b"").decode("latin-1")):
            own["Content-Type"] = (value or b"").decode("latin-1")
        elif attribute is not None and text:
            own |= _short({f"ce-{attribute[1]}": text})
        elif _TOKEN.fullmatch(name) and len(text) <= min(VALUE_MAX, room):
            own[f"Postroad-Header-{name}"] = text
            room -= len(name) + len(text)
    return own


def _short(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if len(value) <= VALUE_MAX}


def _encoded(data: bytes) -> str:
    return quote(data[: VALUE_MAX + 1], safe=_PLAIN)


def _time(timestamp: int) -> str:
    """RFC 3339, as far as its four digits of a year reach."""
    try:
        at = _EPOCH + timedelta(milliseconds=max(timestamp, 0))
    except OverflowError:
        at = datetime.max.replace(tzinfo=UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
