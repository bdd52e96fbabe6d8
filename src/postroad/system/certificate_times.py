"""Until when a certificate is valid, read from its bytes (RFC 5280): Python tells it of peers' only.

Certificate    := SEQUENCE { TBSCertificate ... }
TBSCertificate := SEQUENCE { [0] version OPTIONAL, serial, algorithm, issuer, Validity ... }
Validity       := SEQUENCE { notBefore, notAfter }    UTCTime (two digits of the year) or GeneralizedTime
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

SEQUENCE: Final = 0x30
VERSION: Final = 0xA0
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
BEFORE_VALIDITY: Final = 3  # serial, algorithm, issuer
PIVOT_YEAR: Final = 50  # 50 to 99 are of the last century


def valid_until(certificate: bytes) -> float:
    """Seconds since 1970; ValueError for what is no certificate."""
    at, _ = _enter(certificate, 0)
    at, _ = _enter(certificate, at)
    if _tag(certificate, at) == VERSION:
        at = _end(certificate, at)
    for _ in range(BEFORE_VALIDITY):
        at = _end(certificate, at)
    at, _ = _enter(certificate, at)
    return _time(certificate, _end(certificate, at))


def _time(data: bytes, at: int) -> float:
    start, stop = _content(data, at)
    text = data[start:stop].decode("ascii")
    if _tag(data, at) == UTC_TIME:
        text = ("19" if int(text[:2]) >= PIVOT_YEAR else "20") + text
    elif _tag(data, at) != GENERALIZED_TIME:
        raise ValueError("its validity is no time")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _enter(data: bytes, at: int) -> tuple[int, int]:
    if _tag(data, at) != SEQUENCE:
        raise ValueError("it is no certificate")
    return _content(data, at)


def _end(data: bytes, at: int) -> int:
    return _content(data, at)[1]


def _tag(data: bytes, at: int) -> int:
    if at + 2 > len(data):
        raise ValueError("it ends too early")
    return data[at]


def _content(data: bytes, at: int) -> tuple[int, int]:
    """Where the content of the element at this position begins and ends."""
    _tag(data, at)
    size, start = data[at + 1], at + 2
    if size >= 0x80:
        count = size & 0x7F
        size, start = int.from_bytes(data[start : start + count]), start + count
    if start + size > len(data):
        raise ValueError("it ends too early")
    return start, start + size
