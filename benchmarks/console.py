"""How long pages of the console take in a browser: `python -m benchmarks.console [--messages 5000000]`.

A node and its gateway on loopback, as `postroad serve` starts them, and Debian's Chromium with a warm cache.
Each page is loaded several times; the medians are by the browser's own clock (Navigation and Paint Timing):

    answer   until the first byte of the page
    paint    until something of it is seen (first contentful paint)
    ready    until scripts have run and the page can be used (DOMContentLoaded)
    loaded   until everything on it has been laid out (load)

Then what takes long elsewhere: lists with ten thousand topics, and millions of messages under a filter that
is stopped and continued.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from playwright.sync_api import Page, sync_playwright

from tests.gateway.rest import browser as programs

LOADS: Final = 9
PATIENCE_S: Final = 600.0
FLAGS: Final = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
TIMES: Final = """
() => {
  const [page] = performance.getEntriesByType("navigation");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return [page.responseStart, paint?.startTime, page.domContentLoadedEventEnd, page.loadEventEnd];
}
"""
NAMES: Final = ("answer", "paint", "ready", "loaded")
SLICE_MS: Final = 10_000  # more than a look of two seconds takes where the machine is busy
SMALL: Final = "few"
BIG: Final = "millions"


@contextmanager
def node() -> Iterator[tuple[str, str]]:
    """Where Kafka clients and browsers reach it."""
    with tempfile.TemporaryDirectory() as place:
        ready = Path(place) / "ready"
        command = ["serve", "--data", f"{place}/data", "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0"]
        log = (Path(place) / "log").open("w+")
        program = [sys.executable, "-m", "postroad", *command, "--ready-file", str(ready)]
        running = subprocess.Popen(program, stdout=log, stderr=log)
        try:
            yield _addresses(running, ready)
        finally:
            running.terminate()
            running.wait(60)
            log.close()


def _addresses(running: subprocess.Popen[bytes], ready: Path) -> tuple[str, str]:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and running.poll() is None:
        if ready.exists():
            found = json.loads(ready.read_text())
            return found["kafka"], found["url"]
        time.sleep(0.05)
    raise SystemExit("The node has not started.")


def produce(kafka: str, topic: str, count: int, size: int) -> float:
    """Messages of JSON, in seconds."""
    producer = Producer(
        {"bootstrap.servers": kafka, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
    )
    began = time.monotonic()
    for number in range(count):
        value = b'{"total": %d, "customer": "%s"}' % (number, b"x" * size)
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(PATIENCE_S) == 0
    return time.monotonic() - began


def wait(page: Page, expression: str) -> None:
    """From here: the page's policy lets nothing be evaluated inside."""
    deadline = time.monotonic() + PATIENCE_S
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        time.sleep(0.02)


def measure(page: Page, url: str, loads: int) -> dict[str, float]:
    """Medians in ms; the first load fills the browser's cache and does not count."""
    found = []
    for _ in range(loads + 1):
        page.goto(url, wait_until="load")
        wait(page, "performance.getEntriesByName('first-contentful-paint').length > 0")
        found.append(page.evaluate(TIMES))
    return {name: statistics.median(each[index] for each in found[1:]) for index, name in enumerate(NAMES)}


def show(title: str, times: dict[str, float]) -> None:
    figures = "  ".join(f"{name} {ms:6.0f} ms" for name, ms in times.items())
    print(f"{title:34} {figures}   load {os.getloadavg()[0]:.1f}", flush=True)


def topics(kafka: str, count: int) -> None:
    began = time.monotonic()
    admin = AdminClient({"bootstrap.servers": kafka, "socket.timeout.ms": int(PATIENCE_S * 500)})
    for start in range(0, count, 500):
        made = admin.create_topics(
            [NewTopic(f"topic-{number:05}", 1) for number in range(start, min(start + 500, count))],
            operation_timeout=PATIENCE_S / 2, request_timeout=PATIENCE_S / 2,
        )  # fmt: skip
        for each in made.values():
            each.result(PATIENCE_S)
    print(f"{count:,} topics made in {time.monotonic() - began:.0f} s", flush=True)


def search(page: Page, url: str, count: int) -> None:
    """A filter over all messages, which is stopped and continued."""
    where = f"{url}/console/topics/{BIG}/messages?begin=beginning&filter=value.total+%3E%3D+{count - 3}"
    progress = page.locator("#progress")
    began = time.monotonic()
    page.goto(where, wait_until="domcontentloaded")
    page.locator("#progress .stop").click()
    wait(page, "!document.querySelector('#progress .stop')")
    page.wait_for_timeout(SLICE_MS)  # what is under way is still answered
    before = progress.inner_text()
    print(f"stopped after {time.monotonic() - began:.1f} s: {before}", flush=True)
    page.wait_for_timeout(SLICE_MS)
    assert progress.inner_text() == before, "it goes on though it was stopped"
    began = time.monotonic()
    page.locator("#progress [data-continue]").click()
    wait(page, "document.querySelectorAll('#rows tr:not(.nothing)').length === 3")
    took = time.monotonic() - began
    print(f"continued, and at the end after {took:.1f} s more: {progress.inner_text()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--messages", type=int, default=5_000_000)
    parser.add_argument("--loads", type=int, default=LOADS)
    options = parser.parse_args()
    path = programs.program()
    if path is None:
        raise SystemExit("There is no Chromium here: tools/debian-packages installs it.")
    with node() as (kafka, url), sync_playwright() as playwright:
        produce(kafka, SMALL, 2000, 200)
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        show("first page", measure(page, f"{url}/console", options.loads))
        thousand = f"{url}/console/topics/{SMALL}/messages?limit=1000"
        show("1,000 messages", measure(page, thousand, options.loads))
        if options.topics:
            topics(kafka, options.topics)
            named = f"{options.topics:,} topics"
            show(f"{named}: first page", measure(page, f"{url}/console", options.loads))
            show(f"{named}: list", measure(page, f"{url}/console/topics", options.loads))
            show(f"{named}: search", measure(page, f"{url}/console/topics?prefix=topic-09", options.loads))
            show(f"{named}: cluster", measure(page, f"{url}/console/cluster", options.loads))
        if options.messages:
            took = produce(kafka, BIG, options.messages, 10)
            print(f"{options.messages:,} messages written in {took:.0f} s")
            search(page, url, options.messages)
        chromium.close()


if __name__ == "__main__":
    main()
