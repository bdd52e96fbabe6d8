"""A schema registry as Spark's tasks ask it: ours, or another one that speaks Confluent's REST API.

What an id or a version stands for never changes, so each process asks for it once.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlsplit

from postroad.errors import ConfigurationError, PostroadError
from postroad.schemas.schema import AVRO, REFERENCES_MAX, Parsed, parse
from postroad.spark.option_values import Values

URL: Final = "schemaRegistry"
USER, PASSWORD = "schemaRegistryUser", "schemaRegistryPassword"
TOKEN: Final = "schemaRegistryToken"
CA: Final = "schemaRegistryCa"
NAMES: Final = (URL, USER, PASSWORD, TOKEN, CA)

TIMEOUT_S: Final = 20.0
TRIES: Final = 5
PAUSE_S: Final = 0.2
ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
MEDIA: Final = "application/vnd.schemaregistry.v1+json"


class RegistryUnavailable(PostroadError):
    """The registry does not answer, or refuses who asks."""


class NotRegistered(PostroadError):
    """There is no such schema, or the registry does not take it."""


class RegisteredText(NamedTuple):
    """A schema as it was registered; `references` are the texts of those that it needs, by name, in order."""

    id: int
    kind: str
    text: str
    references: tuple[tuple[str, str], ...]

    def parsed(self) -> Parsed:
        """Raises InvalidSchema."""
        return parse(self.kind, self.text, dict(self.references))


class SchemaRegistry(NamedTuple):
    """Where it is, and as whom it is asked. It can be pickled."""

    url: str
    user: str = ""
    password: str = ""
    token: str = ""
    ca: str = ""

    def by_id(self, id_: int) -> RegisteredText:
        """Raises NotRegistered, RegistryUnavailable."""
        known = _known.get((self.url, id_))
        if known is None:
            answer = self._ask("GET", f"/schemas/ids/{id_}")
            known = _known[self.url, id_] = self._text(id_, answer)
        return known

    def latest(self, subject: str) -> RegisteredText:
        """Raises NotRegistered, RegistryUnavailable."""
        answer = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        return self._text(answer["id"], answer)

    def register(self, subject: str, kind: str, text: str) -> int:
        """The id of the schema, which the subject has from now on. Who may not register can use what is
        registered. Raises NotRegistered, RegistryUnavailable."""
        body = {"schema": text, "schemaType": kind}
        path = f"/subjects/{quote(subject, safe='')}"
        try:
            found: int = self._ask("POST", path, body)["id"]
        except NotRegistered:
            found = self._ask("POST", f"{path}/versions", body)["id"]
        return found

    def _text(self, id_: int, answer: dict[str, Any]) -> RegisteredText:
        references: dict[str, str] = {}
        self._collect(answer.get("references") or [], references)
        return RegisteredText(
            id_, answer.get("schemaType") or AVRO, answer["schema"], tuple(references.items())
        )

    def _collect(self, wanted: list[dict[str, Any]], found: dict[str, str], depth: int = 0) -> None:
        for each in wanted:
            if each["name"] in found:
                continue
            if depth > 64 or len(found) > REFERENCES_MAX:
                raise NotRegistered("The schema has too many references.")
            path = f"/subjects/{quote(each['subject'], safe='')}/versions/{each['version']}?deleted=true"
            answer = self._ask("GET", path)
            self._collect(answer.get("references") or [], found, depth + 1)
            found[each["name"]] = answer["schema"]

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        for attempt in range(TRIES):
            try:
                return self._ask_once(method, path, body)
            except urllib.error.HTTPError as error:
                if error.code < 500 or attempt == TRIES - 1:
                    raise self._refused(error) from None
            except (OSError, ValueError) as error:
                if attempt == TRIES - 1:
                    raise RegistryUnavailable(f"{self.url} does not answer: {error}") from None
            time.sleep(PAUSE_S * 2**attempt)
        raise AssertionError("the last try returns or raises")

    def _ask_once(self, method: str, path: str, body: Any) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method, headers=self._headers())
        context = ssl.create_default_context(cafile=self.ca or None) if self.url.startswith("https") else None
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as response:
            return json.loads(response.read(ANSWER_BYTES_MAX))

    def _headers(self) -> dict[str, str]:
        found = {"Accept": MEDIA, "Content-Type": MEDIA}
        if self.token:
            found["Authorization"] = f"Bearer {self.token}"
        elif self.user:
            login = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            found["Authorization"] = f"Basic {login}"
        return found

    def _refused(self, error: urllib.error.HTTPError) -> PostroadError:
        try:
            told = json.loads(error.read(ANSWER_BYTES_MAX))["message"]
        except (ValueError, KeyError, TypeError, OSError):
            told = error.reason
        kind = NotRegistered if error.code in (404, 409, 422) else RegistryUnavailable
        return kind(f"{self.url}: {told} (HTTP {error.code})")


_known: dict[tuple[str, int], RegisteredText] = {}


def of_options(values: Values) -> SchemaRegistry:
    """Raises ConfigurationError."""
    url = values.text(URL)
    if url is None:
        raise ConfigurationError(f"Say where the schemas are: option {URL} = http://HOST:PORT.")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"Option {URL} = {url!r}: it must be http://HOST:PORT or https://HOST:PORT.")
    if parts.username or parts.password:
        raise ConfigurationError(f"Option {URL}: name and password are the options {USER} and {PASSWORD}.")
    if values.has(TOKEN) and values.has(USER):
        raise ConfigurationError(f"Give either {TOKEN}, or {USER} and {PASSWORD}.")
    if values.has(USER) != values.has(PASSWORD):
        raise ConfigurationError(f"{USER} and {PASSWORD} belong together: set both.")
    return SchemaRegistry(
        url.rstrip("/"),
        values.text(USER) or "",
        values.raw(PASSWORD) or "",
        values.text(TOKEN) or "",
        values.text(CA) or "",
    )
