"""Random conditions over random tables: what pruning and Arrow's kernels answer against plain Python, row by row."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.made.where_model import ADDED, TYPES, Case, Row, condition, random_table
from support.tables import snapshot_of

from acidctl.rows.scan.scan import Scan

COLUMNS = {name: kind for name, kind in (TYPES | ADDED).items() if name != "st"} | {
    "st.x": "int",
    "st.y": "string",
    "day": "date",
    "region": "string",
    "ROW__ID.writeid": "bigint",
    "ROW__ID.rowid": "bigint",
}


def wanted_ids(rows: list[Row], case: Case) -> Iterator[tuple[int, int]]:
    for row in rows:
        if case.truth(row) is True:
            yield row["ROW__ID.writeid"], row["ROW__ID.rowid"]


def check(seed: int, folder: Path, conditions: int) -> None:
    luck = random.Random(f"where {seed}")
    table = folder / str(seed)
    rows, partition = random_table(luck, table)
    snapshot = snapshot_of(table)
    for _ in range(conditions):
        case = condition(luck, COLUMNS, rows)
        about = f"seed {seed}: {case.sql}"
        want = sorted(wanted_ids(rows, case))
        try:
            scan = Scan(snapshot, ["ROW__ID"], where=case.sql, partition=partition)
            got = sorted(
                (one["writeid"], one["rowid"]) for batch in scan.batches() for one in batch.column(0).to_pylist()
            )
        except Exception as error:
            raise AssertionError(about) from error
        assert got == want, (
            f"{about}\nlost {sorted(set(want) - set(got))[:5]}, extra {sorted(set(got) - set(want))[:5]}"
        )
        assert Scan(snapshot, where=case.sql, partition=partition).count() == len(want), about


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(6))
def test_random_conditions_keep_the_rows_of_the_model(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path, 60)
