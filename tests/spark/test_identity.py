"""A task writes as the same producer whenever it is repeated, and as another one otherwise."""

from __future__ import annotations

from postroad.spark.identity import EPOCHS, of_task
from postroad.wire.batch import NAMED_PRODUCERS


def test_a_repeated_task_is_the_same_producer() -> None:
    assert of_task("query", 3, 7) == of_task("query", 3, 7)


def test_the_next_micro_batch_is_the_same_producer_with_a_higher_epoch() -> None:
    before, after = of_task("query", 3, 7), of_task("query", 3, 8)
    assert before.producer_id == after.producer_id
    assert (before.epoch, after.epoch) == (7, 8)


def test_epochs_stay_within_16_bits_because_the_id_changes_in_time() -> None:
    last, first = of_task("query", 0, EPOCHS - 1), of_task("query", 0, EPOCHS)
    assert (last.epoch, first.epoch) == (EPOCHS - 1, 0)
    assert last.producer_id != first.producer_id
    assert EPOCHS - 1 < 1 << 15


def test_tasks_and_writers_are_different_producers() -> None:
    ids = {of_task(writer, task).producer_id for writer in ("a", "b", "1 a") for task in range(200)}
    assert len(ids) == 600


def test_ids_are_never_those_that_brokers_give_out_or_names_take() -> None:
    assert all(1 << 61 <= of_task("query", task).producer_id < NAMED_PRODUCERS for task in range(1_000))


def test_tasks_and_batches_begin_their_turn_at_different_partitions() -> None:
    assert {of_task("query", task, 5).turn % 4 for task in range(4)} == {0, 1, 2, 3}
    assert {of_task("query", 0, batch).turn % 4 for batch in range(4)} == {0, 1, 2, 3}
