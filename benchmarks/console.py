"""How long pages of the console take in a browser: `python -m benchmarks.console [--messages 5000000]`.

A node and its gateway on loopback, as `postroad serve` starts them, and Debian's Chromium with a warm cache.
Each page is loaded several times; the medians are by the browser's own clock (Navigation and Paint Timing):

    answer   until the first byte of the page
    paint    until something of it is seen (first contentful paint)
    ready    until scripts have run and the page can be used (DOMContentLoaded)
    loaded   until everything on it has been laid out (load)

Then what an open page costs the node and its gateway; ten thousand topics: made, listed, in memory, over a
restart; and millions of messages under a filter that is stopped and continued. Each line ends with the load
of the machine: figures of a busy one say little.
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
from pathlib import Path
from typing import Final, NamedTuple

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
THOUSAND: Final = f"/console/topics/{SMALL}/messages?limit=1000"
TOPICS_AT_ONCE: Final = 500
IDLE_MS: Final = 60_000  # a node with very many topics is asked for its figures once a minute


class Running(NamedTuple):
    """A node and its gateway: where Kafka clients and browsers reach them."""

    kafka: str
    url: str
    process: subprocess.Popen[bytes]

    @property
    def processes(self) -> list[int]:
        """The node, then the gateway."""
        own = self.process.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [own, *map(int, children)]

    def cpu_s(self) -> float:
        """What both have used so far."""
        stats = [Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in self.processes]
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self) -> list[int]:
        pages = [int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in self.processes]
        return [each * os.sysconf("SC_PAGE_SIZE") >> 20 for each in pages]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_S)


def start(place: Path) -> Running:
    ready = place / "ready"
    ready.unlink(missing_ok=True)
    command = ["serve", "--data", f"{place}/data", "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    program = [sys.executable, "-m", "postroad", *command, "--ready-file", str(ready)]
    with (place / "log").open("a") as log:
        process = subprocess.Popen(program, stdout=log, stderr=log)
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        if ready.exists():
            found = json.loads(ready.read_text())
            return Running(found["kafka"], found["url"], process)
        time.sleep(0.05)
    raise SystemExit(f"The node has not started: see {place}/log.")


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


def tell(title: str, told: str) -> None:
    print(f"{title:34} {told}   load {os.getloadavg()[0]:.1f}", flush=True)


def show(title: str, times: dict[str, float]) -> None:
    tell(title, "p50: " + "  ".join(f"{name} {ms:6.0f} ms" for name, ms in times.items()))


def cost(title: str, running: Running, page: Page, path: str) -> None:
    """What one page that stays open costs, beside what the node costs when nobody looks."""
    shares = []
    for url in ("about:blank", f"{running.url}{path}"):
        page.goto(url)
        page.wait_for_timeout(IDLE_MS / 6)
        before = running.cpu_s()
        page.wait_for_timeout(IDLE_MS)
        shares.append((running.cpu_s() - before) / IDLE_MS * 100_000)
    idle, open_ = shares
    tell(title, f"{open_ - idle:.1f} % of a core; nobody looking {idle:.1f} %")


def topics(running: Running, count: int) -> None:
    began = time.monotonic()
    admin = AdminClient({"bootstrap.servers": running.kafka, "socket.timeout.ms": int(PATIENCE_S * 500)})
    for first in range(0, count, TOPICS_AT_ONCE):
        last = min(first + TOPICS_AT_ONCE, count)
        made = admin.create_topics(
            [NewTopic(f"topic-{number:05}", 1) for number in range(first, last)],
            operation_timeout=PATIENCE_S / 2, request_timeout=PATIENCE_S / 2,
        )  # fmt: skip
        for each in made.values():
            each.result(PATIENCE_S)
    took = time.monotonic() - began
    tell(f"{count:,} topics", f"made in {took:.0f} s, {took * TOPICS_AT_ONCE / count:.1f} s for each 500")


def restart(running: Running, place: Path) -> Running:
    began = time.monotonic()
    running.stop()
    stopped = time.monotonic()
    running = start(place)
    tell("restart", f"stopped in {stopped - began:.1f} s, started in {time.monotonic() - stopped:.1f} s")
    return running


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
    tell("filter, stopped", f"after {time.monotonic() - began:.1f} s: {before}")
    page.wait_for_timeout(SLICE_MS)
    assert progress.inner_text() == before, "it goes on though it was stopped"
    began = time.monotonic()
    page.locator("#progress [data-continue]").click()
    wait(page, "document.querySelectorAll('#rows tr:not(.nothing)').length === 3")
    took = time.monotonic() - began
    tell("filter, continued to the end", f"after {took:.1f} s more: {progress.inner_text()}")


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
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        running = start(Path(place))
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        try:
            pages(running, page, options.loads)
            if options.topics:
                running = many_topics(running, page, Path(place), options.topics, options.loads)
            if options.messages:
                took = produce(running.kafka, BIG, options.messages, 10)
                tell(f"{options.messages:,} messages", f"written in {took:.0f} s")
                search(page, running.url, options.messages)
        finally:
            chromium.close()
            running.stop()


def pages(running: Running, page: Page, loads: int) -> None:
    produce(running.kafka, SMALL, 2000, 200)
    show("first page", measure(page, f"{running.url}/console", loads))
    show("1,000 messages", measure(page, f"{running.url}{THOUSAND}", loads))
    cost("first page, left open", running, page, "/console")


def many_topics(running: Running, page: Page, place: Path, count: int, loads: int) -> Running:
    """The node as it runs after a restart."""
    before = running.memory_mib()
    topics(running, count)
    named = f"{count:,} topics"
    sizes = (f"{now} MiB (+{now - then})" for now, then in zip(running.memory_mib(), before, strict=True))
    tell(f"{named}: memory", "node {}, gateway {}".format(*sizes))
    for title, path in {
        "first page": "/console",
        "list": "/console/topics",
        "search": "/console/topics?prefix=topic-09",
        "cluster": "/console/cluster",
        "1,000 messages": THOUSAND,
    }.items():
        show(f"{named}: {title}", measure(page, f"{running.url}{path}", loads))
    cost(f"{named}: list, left open", running, page, "/console/topics")
    return restart(running, place)


if __name__ == "__main__":
    main()
