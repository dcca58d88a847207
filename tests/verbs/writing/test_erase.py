"""An erasure as a whole: rows go, files go, and what is left is said; it goes on where it ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.command_line import Result
from support.writing import WrittenTable, written_table

from acidctl.base.errors import ExitStatus
from acidctl.location.walk import is_log

Run = Callable[..., Result]
NOW = ("--older-than", "0", "--unsafe-retention", "--engine", "local")


@pytest.fixture
def table(tmp_path: Path) -> Iterator[WrittenTable]:
    with written_table(tmp_path / "t", {"a": "int", "b": "string"}, {"day": "string"}) as made:
        door = made.door.table("db.t")
        door.insert(pa.table({"a": [1, 2, 3], "b": ["ann", "bob", "ann"], "day": ["x", "x", "y"]}))
        door.insert(pa.table({"a": [4], "b": ["cid"], "day": ["z"]}))
        door.update("b = 'ann2'", "a = 3")
        yield made


@pytest.fixture
def erase(table: WrittenTable, acidctl: Run) -> Run:
    def call(*words: str) -> Result:
        return acidctl(
            "erase", "hive:db.t", "--where", "b LIKE 'ann%'", f"--metastore={table.hive.address}", *NOW, *words
        )

    return call


def holds(table: WrittenTable, text: bytes) -> list[str]:
    """Return the files whose bytes hold a text: values as short as these are not compressed."""
    return [str(path) for path in table.path.rglob("*") if path.is_file() and text in path.read_bytes()]


def test_rows_and_every_file_that_held_them_are_gone(erase: Run, table: WrittenTable) -> None:
    assert holds(table, b"ann")
    planned = erase("--dry-run", "-o", "json")
    assert (planned.status, planned.one()["result"], planned.one()["events"] > 2) == (0, "planned", True)
    assert planned.one()["steps"] == ["delete", "compact", "clean"]
    assert len(table.rows()) == 4
    assert erase().status == 7, "nobody can be asked"
    assert len(table.rows()) == 4
    done = erase("--yes", "-o", "json")
    assert done.status == 0, done.err
    *_, last = done.json()
    assert (last["result"], last["events"], last["isKnown"]) == ("erased", 0, True)
    assert all(file["sha256"] for file in last["files"])
    assert table.rows() == [(2, "bob", "x"), (4, "cid", "z")]
    assert not holds(table, b"ann")
    assert table.is_quiet
    again = erase("--yes", "-o", "json")
    assert (again.status, again.json()[-1]["events"]) == (0, 0)


def test_a_retention_leaves_files_for_another_run(erase: Run, table: WrittenTable) -> None:
    done = erase("--yes", "--older-than", "1h", "-o", "json")
    assert done.status == 14
    *_, last = done.json()
    assert (last["result"], last["events"] > 0) == ("postponed", True)
    assert table.rows() == [(2, "bob", "x"), (4, "cid", "z")], "readers see them no more"
    assert erase("--yes").status == 0
    assert not holds(table, b"ann")


def test_staging_files_and_the_trash_go_as_well(erase: Run, acidctl: Run, table: WrittenTable) -> None:
    line = ("hive:db.t", f"--metastore={table.hive.address}")
    assert acidctl("compact", "--major", "--engine", "local", *line).status == 0
    assert acidctl("clean", "--older-than", "0", "--unsafe-retention", "--yes", *line).status == 0
    held = table.path / "day=x" / "delta_0000001_0000001_0000" / "bucket_00000"
    stale = table.path / "day=x" / "_tmp_1" / held.name
    stale.parent.mkdir()
    stale.write_bytes(held.read_bytes())
    os.utime(stale, (0, 0))
    os.utime(stale.parent, (0, 0))
    planned = erase("--dry-run", "-o", "json").one()
    assert planned["steps"] == ["delete", "compact", "clean", "clean-leftovers", "purge"]
    assert erase("--yes").status == 0
    assert not holds(table, b"ann")
    assert table.rows() == [(2, "bob", "x"), (4, "cid", "z")]


def test_a_retention_that_is_not_safe_is_refused_before_any_step(acidctl: Run, table: WrittenTable) -> None:
    line = ("erase", "hive:db.t", "--where", "b LIKE 'ann%'", f"--metastore={table.hive.address}", "--engine", "local")
    assert acidctl(*line, "--yes", "--older-than", "10m").status == 7
    assert len(table.rows()) == 4


@pytest.mark.parametrize("part", ["delete", "compact", "clean"])
def test_an_erasure_that_was_interrupted_goes_on(
    erase: Run, table: WrittenTable, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"acidctl.verbs.writing.erase.{part}", killed)
        assert erase("--yes").status == 130
    assert erase("--yes").status == 0
    assert table.rows() == [(2, "bob", "x"), (4, "cid", "z")]
    assert not holds(table, b"ann")


def test_what_the_table_lacks_is_refused(acidctl: Run, table: WrittenTable) -> None:
    line = ("--yes", f"--metastore={table.hive.address}", *NOW)
    assert acidctl("erase", "hive:db.t", "--where", "nothing = 1", *line).status == 2
    assert acidctl("erase", str(table.path), "--where", "a = 1", *line).status == 2
    assert acidctl("erase", "hive:db.t", "--where", "a = 77", *line).status == 0
    assert len(table.rows()) == 4


def test_help_promises_only_conditions_that_an_erasure_takes(erase: Run, acidctl: Run, table: WrittenTable) -> None:
    promised = {verb: "`true` selects all" in acidctl(verb, "--help").out for verb in ("delete", "update", "erase")}
    assert promised == {"delete": True, "update": True, "erase": False}
    assert erase("--where", "true", "--yes").status == 2
    assert len(table.rows()) == 4


@pytest.fixture
def erase_keys(table: WrittenTable, acidctl: Run, tmp_path: Path) -> Run:
    def call(text: str, *words: str) -> Result:
        (tmp_path / "keys.csv").write_text(text)
        line = ("erase", "hive:db.t", "--keys", str(tmp_path / "keys.csv"), f"--metastore={table.hive.address}")
        return acidctl(*line, *NOW, *words)

    return call


def test_keys_select_rows_as_a_condition_does(erase_keys: Run, table: WrittenTable) -> None:
    table.door.table("db.t").insert(
        pa.table({"a": pa.array([None, 9], pa.int32()), "b": ["zed", "yan"], "day": ["x", "x"]})
    )
    text = "A,why\n1,asked\n3,asked\n77,asked\n,nobody\n"
    planned = erase_keys(text, "--key", "a", "--dry-run", "-o", "json")
    assert (planned.one()["events"] > 2, planned.one()["steps"]) == (True, ["delete", "compact", "clean"])
    assert "1 key has a NULL" in planned.err
    done = erase_keys(text, "--key", "a", "--yes", "-o", "json")
    *_, last = done.json()
    assert (done.status, last["result"], last["events"], last["isKnown"]) == (0, "erased", 0, True)
    assert done.err.count("1 key has a NULL") == 1
    assert not holds(table, b"ann")
    assert all(holds(table, name) for name in (b"zed", b"bob", b"yan"))
    assert sorted(row[1] for row in table.rows()) == ["bob", "cid", "yan", "zed"]


def test_keys_may_be_of_several_columns_and_partitions(erase_keys: Run, table: WrittenTable) -> None:
    assert erase_keys("day,a\nx,2\ny,1\nz,4\n", "--yes").status == 0
    assert [row[0] for row in table.rows()] == [1, 3]
    assert not holds(table, b"bob")


@pytest.mark.parametrize(
    ("text", "words", "status"),
    [("a\n3x\n", (), 4), ("c\n1\n", (), 2), ("a\n1\n", ("--key", "b"), 2), ("a\n1\n", ("--where", "a = 1"), 2),
     ("a\n99999999999\n", (), 4)],
)  # fmt: skip
def test_keys_that_do_not_fit_erase_nothing(
    erase_keys: Run, table: WrittenTable, text: str, words: tuple[str, ...], status: int
) -> None:
    assert erase_keys(text, "--yes", *words).status == status
    assert len(table.rows()) == 4
    assert table.is_quiet


@pytest.mark.parametrize("part", ["compact", "clean"])
def test_an_erasure_by_keys_goes_on_after_an_interruption(
    erase_keys: Run, table: WrittenTable, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"acidctl.verbs.writing.erase.{part}", killed)
        assert erase_keys("a\n1\n3\n", "--yes").status == 130
    assert len(table.rows()) == 2, "readers see them no more"
    assert holds(table, b"ann")
    assert erase_keys("a\n1\n3\n", "--yes").status == 0
    assert not holds(table, b"ann")


def test_rows_must_be_selected(acidctl: Run, table: WrittenTable) -> None:
    assert acidctl("erase", "hive:db.t", "--yes", f"--metastore={table.hive.address}", *NOW).status == 2
    assert len(table.rows()) == 4


def test_a_file_that_cannot_be_read_leaves_the_proof_open(erase: Run, table: WrittenTable) -> None:
    (table.path / "notes").write_bytes(b"neither ORC nor Parquet")
    done = erase("--yes", "-o", "json")
    *_, last = done.json()
    assert (done.status, last["result"], last["events"], last["isKnown"]) == (
        ExitStatus.UNCHECKED,
        "postponed",
        0,
        False,
    )
    assert not holds(table, b"ann")


def test_staging_files_that_were_cut_off_go_as_well(erase: Run, table: WrittenTable) -> None:
    """Nobody can read them, and they may hold such a row."""
    held = table.path / "day=x" / "delta_0000001_0000001_0000" / "bucket_00000"
    for torn in (table.path / "day=x" / "_tmp_1" / held.name, table.path / "day=x" / ".acidctl-lock-7701538d13ba"):
        torn.parent.mkdir(exist_ok=True)
        torn.write_bytes(held.read_bytes()[:100])
        os.utime(torn, (0, 0))
        os.utime(torn.parent, (0, 0))
    assert erase("--dry-run", "-o", "json").one()["steps"] == ["delete", "compact", "clean", "clean-leftovers"]
    done = erase("--yes")
    assert done.status == 0, done.err
    assert not holds(table, b"ann")
    assert sorted(path.name for path in (table.path / "day=x").iterdir() if not is_log(path.name))[1:] == []
