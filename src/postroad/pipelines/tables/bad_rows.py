"""What becomes of rows of which the values have no columns, as `bad` says.

    keep         they are in the table with their value and the reason: nothing is lost (the default)
    fail         the archive fails, and names the first of them
    drop         they are left out
    deadletter   they go to a topic with the reason, and are left out

A task that is repeated sends the same letters again, which are stored once. Where tasks disagree about a new
column they are repeated with another opinion of what is bad, and as other producers: then letters may be
there twice, and none is missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow.compute as pc

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.tables.schema import BAD
from postroad.spark.columns import OFFSET, PARTITION, TOPIC
from postroad.spark.dead_letters import DeadLetters
from postroad.spark.parsed_values import letter

KEEP, FAIL, DROP, DEADLETTER = CHOICES = ("keep", "fail", "drop", "deadletter")


class BadRows(NamedTuple):
    choice: str = KEEP

    def apply(self, batch: Any, letters: DeadLetters | None) -> Any:
        """What goes into the table of a batch with `bad`. Raises PipelineError."""
        bad = batch.column(BAD)
        if self.choice == KEEP or bad.null_count == len(bad):
            return batch
        rows = pc.indices_nonzero(pc.is_valid(bad)).to_pylist()
        if self.choice == FAIL:
            raise _failed(batch, rows[0])
        if self.choice == DEADLETTER:
            assert letters is not None, "there is a topic for them"
            for row in rows:
                letters.add(letter(batch, row), bad[row].as_py())
        return batch.filter(pc.is_null(bad))


def _failed(batch: Any, row: int) -> PipelineError:
    topic, partition, offset = (batch.column(name)[row] for name in (TOPIC, PARTITION, OFFSET))
    return PipelineError(
        f"{topic}/{partition} offset {offset}: {batch.column(BAD)[row]}. Nothing of this batch was archived; "
        "to archive such rows with the reason beside them, leave --bad-rows at keep"
    )
