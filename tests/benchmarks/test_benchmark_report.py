"""Medians in the columns, the ratio to the others in the last one, and nothing that names the machine."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import kafka_jars, report
from benchmarks.cache import Missing
from benchmarks.peers import PEERS
from benchmarks.results import ModeResults, ServerFacts, number
from benchmarks.runner import run_mode
from benchmarks.servers import Mode
from benchmarks.session import Limits, Measurement
from benchmarks.workload import Part
from benchmarks.workloads import WORKLOADS


def outcome_of(**rounds: list[tuple[float, float]]) -> ModeResults:
    """produce-1k by server: (MB/s, CPU seconds) of each round."""
    return outcome_with("produce-1k", rounds)


def outcome_with(key: str, rounds: Mapping[str, Sequence[tuple[float, ...]]]) -> ModeResults:
    """One workload by server: the values of each round. The last value is also the CPU seconds."""
    outcome = ModeResults(Mode.PAGE_CACHE)
    outcome.servers = {name: ServerFacts("1.2.3", 0.5, 40.0, 60.0) for name in rounds}
    outcome.results[key] = {
        name: {turn: Measurement(values, 400_000, values[-1]) for turn, values in enumerate(measured, 1)}
        for name, measured in rounds.items()
    }
    return outcome


RAW = next(workload for workload in WORKLOADS if workload.key == "raw")


def cells(text: str, title: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {title}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_columns_are_medians_and_the_ratio_is_the_median_of_the_rounds() -> None:
    outcome = outcome_of(
        postroad=[(100.0, 0.2), (400.0, 0.2), (300.0, 0.2)],
        kafka=[(100.0, 0.8), (100.0, 0.8), (200.0, 0.8)],
    )
    text = report.render([outcome], rounds=3)
    assert cells(text, "produce 1 KB") == ["produce 1 KB, MB/s", "300", "100", "1.50× (≥ 1.5 ✓)"]
    assert cells(text, "server CPU")[-1] == "0.25× (≤ 0.33 ✓)"


def test_ratio_pairs_only_rounds_that_both_sides_finished() -> None:
    outcome = outcome_of(postroad=[(100.0, 1.0), (600.0, 1.0)], kafka=[(50.0, 1.0), (200.0, 1.0)])
    del outcome.results["produce-1k"]["kafka"][1]
    assert cells(report.render([outcome], rounds=2), "produce 1 KB")[-1].startswith("3.00×")


def test_missed_goal_is_marked() -> None:
    outcome = outcome_of(postroad=[(100.0, 0.5)], kafka=[(100.0, 1.0)])
    text = report.render([outcome], rounds=1)
    assert cells(text, "produce 1 KB")[-1] == "1.00× (≥ 1.5 ✗)"
    assert cells(text, "server CPU")[-1] == "0.50× (≤ 0.33 ✗)"


def test_without_kafka_there_is_a_table_without_ratios() -> None:
    outcome = outcome_of(postroad=[(100.0, 0.5)], redis=[(50.0, 1.0)])
    outcome.left_out["kafka"] = "no Java"
    text = report.render([outcome], rounds=1)
    assert cells(text, "produce 1 KB")[-1] == "–"
    assert "kafka is left out here: no Java." in text


def test_server_that_fails_is_left_out_with_a_reason_that_names_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    outcome = run_mode(Mode.PAGE_CACHE, {"kafka": PEERS["kafka"]}, [RAW], 1, Limits(), tmp_path / "data")
    assert outcome.servers == {}
    assert outcome.left_out["kafka"]
    assert str(tmp_path) not in report.render([outcome], rounds=1)
    assert not (tmp_path / "data").exists()


def test_server_without_work_is_not_started(tmp_path: Path) -> None:
    peers = {name: PEERS[name] for name in ("redis", "rabbitmq-quorum")}
    outcome = run_mode(Mode.PAGE_CACHE, peers, [RAW], 1, Limits(), tmp_path / "data")
    assert not outcome.servers
    assert not outcome.left_out


def test_queues_are_compared_with_the_best_of_the_brokers_that_have_queues() -> None:
    rounds = {
        "postroad": [300.0, 300.0],
        "kafka": [900.0, 900.0],
        "nats": [100.0, 50.0],
        "rabbitmq": [50.0, 200.0],
    }
    outcome = outcome_with(
        "queue-100-1-batch", {name: [(v,) for v in values] for name, values in rounds.items()}
    )
    text = report.render([outcome], rounds=2)
    assert cells(text, "100 B, 1 consumer")[1:] == ["300", "900", "75", "125", "2.25× (≥ 1 ✓)"]
    assert "### Queues" in text
    assert "### Logs" not in text


def test_lowest_latency_is_the_best_one() -> None:
    rounds = {"postroad": [(0.2, 0.6)], "nats": [(0.1, 2.0)], "rabbitmq-quorum": [(0.4, 0.5)]}
    text = report.render([outcome_with("queue-latency", rounds)], rounds=1)
    assert cells(text, "end to end at 1,000 msg/s with an ack for each, p50")[-1] == "2.00×"
    assert cells(text, "end to end at 1,000 msg/s with an ack for each, p99")[-1] == "1.20× (≤ 1 ✗)"


def test_goal_of_its_own_needs_no_other_broker() -> None:
    outcome = outcome_with("queue-backlog", {"postroad": [(90.0, 0.9), (70.0, 0.7), (85.0, 0.85)]})
    text = report.render([outcome], rounds=3)
    assert cells(text, "5 million waiting : empty") == [
        "5 million waiting : empty, ratio",
        "0.85",
        "0.85 (≥ 0.8 ✓)",
    ]


def test_row_may_have_a_goal_for_the_ratio_and_one_of_its_own() -> None:
    rounds = {"postroad-gateway": [(12_000.0, 3.0)], "moto": [(500.0, 90.0)], "elasticmq": [(3_000.0, 60.0)]}
    text = report.render([outcome_with("sqs-send-64-single", rounds)], rounds=1)
    assert cells(text, "SQS: send, 100 B, 64 connections, one by one")[1:] == [
        "12,000",
        "500",
        "3,000",
        "4.00× (≥ 3 ✓), 12,000 (≥ 10,000 ✓)",
    ]
    assert "### Gateway" in text


def test_memory_stands_in_no_cpu_table() -> None:
    outcome = outcome_with("queue-memory", {"postroad": [(12.0, 20.0, 25.0, 5.0)]})
    outcome.results["queue-memory"]["postroad"][1] = Measurement((12.0, 20.0, 25.0, 5.0), 100_000, 0.0)
    assert "Server CPU" not in report.render([outcome], rounds=1)


def test_a_part_may_be_asked_for_by_its_name() -> None:
    queues = [workload for workload in WORKLOADS if workload.part is Part.QUEUES]
    assert command.chosen(["queues"], quick=False) == queues
    assert [workload.key for workload in command.chosen(["queue-latency", "single"], quick=False)] == [
        "single",
        "queue-latency",
    ]


def test_quick_look_takes_long_workloads_only_if_they_are_named() -> None:
    assert not any(workload.long for workload in command.chosen(["logs", "queues"], quick=True))
    assert [workload.key for workload in command.chosen(["queue-memory"], quick=True)] == ["queue-memory"]


def test_json_holds_every_round() -> None:
    outcome = outcome_of(postroad=[(100.0, 0.5), (200.0, 0.5)])
    document = json.loads(report.to_json([outcome], rounds=2))
    rounds = document["modes"][0]["results"]["produce-1k"]["postroad"]
    assert {turn: measurement["values"][0] for turn, measurement in rounds.items()} == {
        "1": 100.0,
        "2": 200.0,
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567.0, "1,230,000"), (1000.0, "1,000"), (691.4, "691"), (45.31, "45.3"), (0.1234, "0.123")],
)
def test_numbers_carry_three_figures(value: float, shown: str) -> None:
    assert number(value) == shown


def test_unknown_workload_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--only", "produce-2k"])
    assert "produce-1k" in capsys.readouterr().err


def test_kafka_home_without_kafka_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    monkeypatch.setattr("benchmarks.kafka_jars.shutil.which", lambda _: "/bin/true")
    with pytest.raises(Missing, match="KAFKA_HOME"):
        kafka_jars.find()
