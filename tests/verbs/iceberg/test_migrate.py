"""Plans of copies, and catch-ups that are repeated."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.command_line import Result as Run
from support.files.acid_files import insert, struct, write_acid, write_deletes, write_delta
from support.migrating import COMMITTED, copy, rows

from acidctl.base.errors import UsageProblem
from acidctl.orc.types import OrcType
from acidctl.verbs.events import Events
from acidctl.verbs.iceberg import migrate as repeating
from acidctl.verbs.iceberg.migrate import migrate
from acidctl.verbs.iceberg.options import MigrateOptions
from acidctl.verbs.selection import Selection


def added(table: Path, at: int) -> None:
    write_acid(table / f"delta_{at:07}_{at:07}_0000" / "bucket_00000", insert(at, 0, (at, "x")))


def test_a_catch_up_is_repeated_until_it_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, to = tmp_path / "t", tmp_path / "copy"
    added(table, 1)
    copy(table, to)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            added(table, 2)
        elif len(pauses) == 2:
            (table / "delta_0000003_0000003_0000").mkdir()
            (table / "delta_0000003_0000003_0000" / "bucket_00000").write_bytes(b"no ORC")
        elif len(pauses) == 3:
            shutil.rmtree(table / "delta_0000003_0000003_0000")
            added(table, 4)
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr(repeating, "_pause", pause)
    events = Events()
    options = MigrateOptions(to=str(to), catch_up=True, every=60.0)
    done = list(migrate(Selection((str(table),), resolver=COMMITTED), options, events))
    assert [one.rows for one in done] == [1, 1], "rounds without news are silent"
    assert [place for place, _ in events.errors] == [str(table)]
    assert len(rows(to)) == 3
    assert len(pauses) == 4
    assert all(50 < pause <= 60 for pause in pauses)


@pytest.mark.parametrize("more", [{}, {"catch_up": True, "dry_run": True}, {"catch_up": True, "every": 0.5}])
def test_only_catch_ups_are_repeated(tmp_path: Path, more: dict[str, Any]) -> None:
    added(tmp_path / "t", 1)
    options = MigrateOptions(to=str(tmp_path / "copy"), **{"every": 60.0, **more})
    with pytest.raises(UsageProblem, match="--every repeats"):
        list(migrate(Selection((str(tmp_path / "t"),), resolver=COMMITTED), options, Events()))


def odd_table(path: Path, columns: int) -> Path:
    """A partitioned table of three rows, one of them deleted, with a CHAR, a time, and a column to leave out."""
    kinds = struct(c=OrcType("char", max_length=5), t=OrcType("timestamp"), x=OrcType("int"))
    more = [f"n{at}" for at in range(columns - 3)]
    row = struct(**dict(kinds.fields()), **dict.fromkeys(more, OrcType("bigint")))
    numbers = [pa.array([1, 2, 3], pa.int64())] * len(more)
    times = pa.array(["2020-01-01", "2020-01-02", None]).cast(pa.timestamp("ns"))
    values = [pa.array(["a", "b", "c"]), times, pa.array([1, 2, 3], pa.int32()), *numbers]
    write_delta(path / "p=1", 1, pa.RecordBatch.from_arrays(values, list(row.names)), row=row)
    write_deletes(path / "p=1", 2, 1, [1], row=row)
    return path


def test_the_plan_shows_columns_and_what_is_lost(tmp_path: Path, acidctl: Callable[..., Run]) -> None:
    table = odd_table(tmp_path / "t", 4)
    line = ("migrate", "--assume-committed=0s", "--drop-column=x", table, "--to", tmp_path / "copy", "-n")
    told = acidctl(*line)
    shown = {words[0]: words[1:] for text in told.out.splitlines() if (words := text.split())}
    assert " ".join(shown["c"]) == "char(5) string encoded again: Iceberg's readers would find its padding"
    assert (shown["n0"], shown["p"]) == (["bigint", "long"], ["bigint", "long"])
    assert (shown["t"][:2], shown["x"]) == (["timestamp", "timestamp"], ["int", "-", "left", "out"])
    assert "nanoseconds are cut" in " ".join(shown["t"])
    assert "2 new rows, 1 dead row left out (1 file," in " ".join(told.out.split())
    for words in ("DuckDB, polars, Snowflake and BigQuery read no", "not copied: ROW__IDs"):
        assert words in " ".join(told.err.split())
    record = acidctl(*line, "-o", "json").one()
    assert (record["hiveTypes"]["c"], record["columns"]["c"], record["columns"].get("x")) == ("char(5)", "string", None)
    assert (record["rowsDead"], record["columnNotes"]["x"], len(record["notes"])) == (1, "left out", 2)
    (row,) = acidctl(*line, "-o", "csv").out.splitlines()[1:]
    assert row.split(",")[5] == str(record["bytes"]) != "0"


def test_a_wide_table_shows_columns_with_notes(tmp_path: Path, acidctl: Callable[..., Run]) -> None:
    table = odd_table(tmp_path / "t", 30)
    line = ("migrate", "--assume-committed=0s", table, "--to", tmp_path / "copy", "-n")
    names = [text.split()[0] for text in acidctl(*line).out.splitlines() if "Iceberg's" in text or "nano" in text]
    assert names == ["c", "t"]
    assert "29 columns without a note" in acidctl(*line).out
    assert ["n26", "bigint", "long"] in [text.split() for text in acidctl(*line, "-v").out.splitlines()]
