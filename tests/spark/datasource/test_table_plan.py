"""Plans of a load: what is held of a table with many partitions."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from support.files.acid_files import delete, insert, write_acid, write_orc

from acidctl.base.errors import BadDataError
from acidctl.base.packed import Packed
from acidctl.rows.scan import table as module
from acidctl.spark.datasource.load_options import SourceOptions
from acidctl.spark.datasource.table_plan import TablePlan, plan_splits, plan_table


def shares(plan: TablePlan) -> list[list[tuple[str, list[str], dict[str, object]]]]:
    return [
        [(split.snapshot.path, [entry.path for entry in split.snapshot.listing.entries], split.only) for split in task]
        for task in plan_splits(plan, None)
    ]


def test_few_listings_are_held_of_many_partitions_and_the_tasks_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        here = tmp_path / "t" / f"p={number}"
        for one in (1, 2):
            write_acid(here / f"delta_{one:07}_{one:07}_0000" / "bucket_00000", insert(one, 0, (one, "x")))
        write_acid(here / "delete_delta_0000003_0000003_0000" / "bucket_00000", delete(1, 0, 3))
    options = SourceOptions.parse({"path": str(tmp_path / "t")})
    plain = plan_table(options)
    monkeypatch.setattr(module, "_FEW_LOCATIONS", 10)
    plan = pickle.loads(pickle.dumps(plan_table(options)))
    assert (isinstance(plan.locations, Packed), len(plan.locations)) == (True, 12)
    assert all(isinstance(held, bytes) for held in plan.locations._data)
    assert shares(plan) == shares(plain)
    assert len(pickle.dumps(plan)) < len(pickle.dumps(list(plan.locations))) / 2


def test_without_a_metastore_text_and_other_files_are_not_one_table(tmp_path: Path) -> None:
    write_orc(tmp_path / "day=1" / "000000_0", "struct<a:int>", [(1,)])
    (tmp_path / "day=2").mkdir()
    (tmp_path / "day=2" / "000000_0").write_text("hello\n")
    with pytest.raises(BadDataError, match=r"is text, and .* is ORC"):
        plan_table(SourceOptions.parse({"path": str(tmp_path)}))
