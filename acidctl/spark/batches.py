"""Grouping tasks into Spark partitions: the largest first, small ones together."""

from __future__ import annotations

from collections.abc import Sequence

# A Spark task costs about 35 ms, opening a bucket's files about as much as copying this many bytes.
TASK_BYTES = 4 << 20
# Below this it does not pay to hand out another Spark task.
SMALLEST_BATCH = 16 << 20
WAVES = 4


def make_batches(weights: Sequence[int] | None, count: int, parallelism: int) -> list[tuple[int, ...]]:
    """Group the tasks 0..count-1.

    Args:
        weights: bytes per task, or None when they are not known (tasks then count the same).
        count: how many tasks there are.
        parallelism: how many run at once.

    Returns:
        tuples of task indexes, the heaviest batch first: Spark starts them in this order.  Heavy tasks stand alone;
        the rest fill about ``4 * parallelism`` batches, so that the last ones to end are small.
    """
    if weights is not None and len(weights) != count:
        raise ValueError(f"{count} tasks, but {len(weights)} weights")
    slots = max(1, WAVES * parallelism)
    if weights is None:
        return [tuple(range(start, count, slots)) for start in range(min(slots, count))]

    costs = [max(0, weight) + TASK_BYTES for weight in weights]
    target = max(-(-sum(costs) // slots), SMALLEST_BATCH)
    batches: list[list[int]] = []
    filled = target
    for index in sorted(range(count), key=lambda i: (-costs[i], i)):
        if filled + costs[index] > target:
            batches.append([])
            filled = 0
        batches[-1].append(index)
        filled += costs[index]
    return sorted(map(tuple, batches), key=lambda batch: (-sum(costs[index] for index in batch), batch))
