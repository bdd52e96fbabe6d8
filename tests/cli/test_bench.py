"""`postroad bench` and `postroad serve` as programs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from .conftest import PATIENCE_S, Command, read_json


def test_bench_gives_rates_and_latencies_and_cleans_up(run: Command) -> None:
    options = ["-n", "2000", "-s", "100", "-p", "2", "-z", "lz4", "--latency-messages", "20"]
    figures = read_json(run("bench", *options, "--json").stdout)
    assert figures["produce_messages_per_s"] > 0
    assert figures["consume_mb_per_s"] > 0
    assert 0 < figures["acknowledged_p50_ms"] <= figures["acknowledged_p99_ms"]
    assert 0 < figures["end_to_end_p50_ms"] <= figures["end_to_end_p99_ms"]
    assert "postroad-bench" not in run("topic", "list").stdout


def test_serve_says_where_it_listens_and_ends_well_on_sigterm(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "postroad", "serve", "--data", str(tmp_path / "data")]
    command += ["--kafka", "127.0.0.1:0", "--ready-file", str(ready)]
    serving = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not ready.exists():
            assert serving.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        address = json.loads(ready.read_text())["kafka"]
        serving.send_signal(signal.SIGTERM)
        said, _ = serving.communicate(timeout=PATIENCE_S)
        assert serving.returncode == 0
        assert address in said
        assert "postroad publish" in said
    finally:
        serving.kill()
        serving.wait()
