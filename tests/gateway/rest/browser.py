"""A browser without a window, driven by its own protocol (Chrome DevTools) over a WebSocket."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.client import ClientConnection, connect

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# Without a sandbox it also runs as root; the others keep it from calling home.
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    *("--remote-debugging-port=0", "about:blank"),
]
PATIENCE_S = 60.0
CTRL = 2


class Browser:
    """One page. `events` has what it told unasked."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._calls = 0
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        told = self._answer(method, **parameters)
        assert "error" not in told, told
        return told["result"]

    def _answer(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters}))
        while True:
            told: dict[str, Any] = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if told.get("id") == self._calls:
                return told
            self.events.append(told)

    def run(self, script: str) -> Any:
        """The value of the last expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, script: str) -> None:
        """Until it is something. A page that is just being left throws: then it is not yet."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._holds(script):
            assert time.monotonic() < deadline, script
            time.sleep(0.02)

    def _holds(self, script: str) -> bool:
        told = self._answer("Runtime.evaluate", expression=f"Boolean({script})", returnByValue=True)
        return bool(told.get("result", {}).get("result", {}).get("value"))

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait_for(f"location.href === {json.dumps(url)}")

    def look(self, width: int, height: int, scheme: str) -> None:
        """The page has been told when this returns."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.wait_for(f"innerWidth === {width} && matchMedia('(prefers-color-scheme: {scheme})').matches")

    def focus(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")

    def write(self, selector: str, text: str) -> None:
        """In place of what is there, as by a keyboard."""
        self.focus(selector)
        self.run("document.activeElement.select()")
        self.call("Input.insertText", text=text)

    def enter(self, modifiers: int = 0) -> None:
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    @property
    def hosts(self) -> set[str]:
        """The hosts that the page asked for anything."""
        sent = [event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return {urlsplit(request["request"]["url"]).netloc for request in sent}

    @property
    def complaints(self) -> list[str]:
        """Errors in the console but for answers with a status of 400 or more, and exceptions."""
        entries = [event["params"]["entry"] for event in self.events if event["method"] == "Log.entryAdded"]
        failed = [entry for entry in entries if entry["level"] == "error" and entry["source"] != "network"]
        thrown = [event for event in self.events if event["method"] == "Runtime.exceptionThrown"]
        return [*map(str, failed), *map(str, thrown)]


def program() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def started(path: str, home: Path) -> Iterator[Browser]:
    command = [path, f"--user-data-dir={home}", *FLAGS]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            # It answers no pings while it is busy.
            patience: dict[str, Any] = {"open_timeout": PATIENCE_S, "ping_timeout": None}
            with connect(_page_url(home), max_size=None, **patience) as socket:
                yield Browser(socket)
        finally:
            process.kill()


def _page_url(home: Path) -> str:
    """The browser writes down at which port it can be told what to do; its page may come a little later."""
    told = home / "DevToolsActivePort"
    deadline = time.monotonic() + PATIENCE_S
    while not (pages := _pages(told)):
        assert time.monotonic() < deadline, "the browser does not start"
        time.sleep(0.02)
    return str(pages[0]["webSocketDebuggerUrl"])


def _pages(told: Path) -> list[dict[str, Any]]:
    port = told.read_text().split()[:1] if told.exists() else []
    if not port:
        return []
    with urllib.request.urlopen(f"http://127.0.0.1:{port[0]}/json", timeout=PATIENCE_S) as answer:
        return [page for page in json.load(answer) if page["type"] == "page"]
