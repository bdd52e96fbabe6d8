"""Seeds run in processes of their own, which have nothing of the process that asks for them."""

from __future__ import annotations

import threading
from pathlib import Path

from simulator.campaign import Campaign, play_all

SHORT = Campaign(seconds=3.0, workloads=("named",))


class Witness:
    """Writes down that it was cleared away, as a connection would be closed."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __del__(self) -> None:
        self._file.touch()


def test_seeds_clear_nothing_away_that_belongs_to_the_process_before(tmp_path: Path) -> None:
    local = threading.local()
    local.witness = Witness(tmp_path / "cleared")
    results = list(play_all(SHORT, [(seed, None) for seed in range(1, 5)], 1))
    assert [str(violation) for result in results for violation in result.violations] == []
    assert not (tmp_path / "cleared").exists()
