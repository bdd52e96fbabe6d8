"""Backups in an object store: S3 and what speaks its protocol, Google Cloud Storage, Azure. By obstore.

Credentials, region and endpoint come from the environment, as for other programs (`AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, …). A put is whole or not there, as object stores
promise.
"""

from __future__ import annotations

from typing import Any, Final

from postroad.backups.errors import TargetFailed

CLIENT: Final = {"timeout": "60s", "connect_timeout": "10s"}
RETRY: Final = {"max_retries": 5}


class ObjectTarget:
    def __init__(self, url: str) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            raise TargetFailed(
                "backups in object stores need the package obstore: pip install 'postroad[backup]'"
            ) from None
        self._obstore = obstore
        self._url = url.rstrip("/")
        options: dict[str, Any] = dict(CLIENT)
        if _is_plain(url):
            options["allow_http"] = True
        try:
            make: Any = from_url  # its overloads are for each kind of store
            self._store = make(self._url, client_options=options, retry_config=RETRY)
        except Exception as error:
            raise TargetFailed(f"{url} can't be used: {_text(error)}") from None

    def put(self, path: str, content: bytes | bytearray) -> None:
        try:
            self._obstore.put(self._store, path, bytes(content))
        except Exception as error:
            raise self._failed("written", path, error) from None

    def get(self, path: str) -> bytes | None:
        try:
            return bytes(self._obstore.get(self._store, path).bytes())
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._failed("read", path, error) from None

    def size(self, path: str) -> int:
        try:
            return int(self._obstore.head(self._store, path)["size"])
        except FileNotFoundError:
            return -1
        except Exception as error:
            raise self._failed("read", path, error) from None

    def list(self, prefix: str) -> list[str]:
        try:
            chunks = self._obstore.list(self._store, prefix=prefix)
            return sorted(str(each["path"]) for chunk in chunks for each in chunk)
        except Exception as error:
            raise self._failed("listed", prefix, error) from None

    def delete(self, path: str) -> None:
        try:
            self._obstore.delete(self._store, path)
        except FileNotFoundError:
            return
        except Exception as error:
            raise self._failed("deleted", path, error) from None

    def _failed(self, what: str, path: str, error: Exception) -> TargetFailed:
        return TargetFailed(f"{self._url}/{path} can't be {what}: {_text(error)}")


def _is_plain(url: str) -> bool:
    """Whether the endpoint is one without TLS, which somebody has named on purpose."""
    import os

    endpoint = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or url
    return endpoint.startswith("http://")


def _text(error: Exception) -> str:
    """The first line: what follows is a dump of the request."""
    return str(error).strip().split("\n", 1)[0] or type(error).__name__
