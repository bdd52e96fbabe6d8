"""A page of metrics beside a pipeline that runs: `GET /metrics`, for Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from postroad.metrics.page import CONTENT_TYPE
from postroad.pipelines.errors import PipelineError

ANSWER_WITHIN_S: Final = 10.0  # whoever sends half a request is not waited for


@contextmanager
def served(host: str, port: int, text: Callable[[], str]) -> Iterator[int]:
    """What `text` gives is there in the block; gives the port. PipelineError if it can't be had."""

    class Handler(BaseHTTPRequestHandler):
        timeout = ANSWER_WITHIN_S

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404)
                return
            body = text().encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the library's)
            """Requests are no news."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise PipelineError(f"metrics can't be served at {host}:{port}: {error.strerror}") from None
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
