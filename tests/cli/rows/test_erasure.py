"""`erasure` on the command line: what is held, by whom, the steps in their order, and statuses that scripts trust."""

from __future__ import annotations

import hashlib
import shlex
import shutil
from pathlib import Path

import pytest
from support.files.acid_files import AB, insert, struct, write_acid
from support.metastore.fake_hive import FakeHive
from support.tables import age

from acidctl.orc.types import OrcType

A = struct(a=OrcType("int"))

COMPACT = ("compact", "--major", "--engine", "local", "--assume-committed=0s")
CLEAN = ("clean", "--yes", "--older-than", "0", "--unsafe-retention", "--assume-committed=0s")


def steps(report: dict) -> list[str]:  # type: ignore[type-arg]
    return [step["do"] for location in report["locations"] for step in location["steps"]]


def test_from_held_to_gone(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    asked = ("erasure", "--where", "id = 3")
    held = acidctl(*asked, crud)
    assert held.status == 14
    assert "HELD: 2 events in 2 files" in held.out
    assert "readers see 0 rows" in held.out
    assert held.out.index("acidctl compact --major") < held.out.index("acidctl clean") < held.out.index("acidctl purge")
    assert acidctl(*COMPACT, crud).status == 0
    report = acidctl(*asked, "-o", "json", crud).json()
    assert steps(report) == ["clean", "purge"]
    assert {one["kind"] for one in report["locations"][0]["holdings"]} == {"obsolete"}
    assert acidctl(*CLEAN, crud).status == 0
    report = acidctl(*asked, "-o", "json", crud).json()
    assert steps(report) == ["purge"]
    assert acidctl("purge", "--yes", crud).status == 0
    proof = acidctl(*asked, "--prove", "-o", "json", crud)
    assert proof.status == 0
    report = proof.json()
    assert (report["result"], report["events"], report["checksums"]) == ("none", 0, True)
    (file,) = report["locations"][0]["files"]
    data = Path(file["path"]).read_bytes()
    assert (file["size"], file["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert "NONE: no file holds such a row" in acidctl(*asked, crud).out


def test_its_commands_are_those_that_do_it(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    age(crud, 30)

    def first() -> tuple[str, list[str]]:
        report = acidctl("erasure", "--where", "id = 3", "--assume-committed", "1h", "-o", "json", crud).json()
        step = report["locations"][0]["steps"][0]
        return step["do"], shlex.split(step["command"])[1:]

    do, words = first()
    assert (do, "--assume-committed=3600s" in words) == ("compact", True)
    assert acidctl(*words, "--engine", "local").status == 0
    do, words = first()
    assert do == "clean"
    assert acidctl(*words, "--yes", "--older-than=0", "--unsafe-retention", "--assume-committed=0s").status == 0
    do, words = first()
    assert do == "purge"
    assert acidctl(*words, "--yes").status == 0
    assert acidctl("erasure", "--where", "id = 3", crud).status == 0


def test_live_rows_are_deleted_first(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    found = acidctl("erasure", "--where", "id = 1", crud)
    assert found.status == 14
    assert "1.          delete the rows with Hive" in found.out
    assert "DELETE FROM" in found.out
    assert steps(acidctl("erasure", "--where", "id = 1", "-o", "json", crud).json()) == [
        "delete", "compact", "clean", "purge",
    ]  # fmt: skip


def test_a_file_that_cannot_be_read_is_never_gone(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    path = crud / "delta_0000001_0000001_0000" / "bucket_00000"
    path.write_bytes(path.read_bytes()[:50])
    found = acidctl("erasure", "--where", "id = 99", crud)
    assert found.status == 15
    assert "NOT KNOWN" in found.out
    assert "validate --deep --all" in found.out


def test_tables_without_the_column_and_nothing_at_all(acidctl, crud: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    warehouse = tmp_path / "warehouse" / "some.db"
    shutil.copytree(crud, warehouse / "crud")
    write_acid(warehouse / "other" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, 1)), row=AB)
    found = acidctl("erasure", "--where", "id = 99", "-o", "json", warehouse)
    assert found.status == 0
    assert [one["table"] for one in found.json()["withoutColumns"]] == ["some.other"]
    assert acidctl("erasure", "--where", "nobody = 99", warehouse).status == 3
    assert acidctl("erasure", "--where", "id = = 9", warehouse).status == 2
    (tmp_path / "empty.db").mkdir()
    assert acidctl("erasure", "--where", "id = 9", tmp_path / "empty.db").status == 17


def test_what_lies_beside_the_locations_of_a_table(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = tmp_path / "t"
    write_acid(table / "day=1" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1, 1)), row=AB)
    stray = table / ".hive-staging_x" / "_tmp.day=2" / "delta_0000002_0000002_0000" / "bucket_00000"
    write_acid(stray, insert(2, 0, (7, 1)), insert(2, 1, (8, 1)), row=AB)
    report = acidctl("erasure", "--where", "a = 7", "-o", "json", table).json()
    (beside,) = [one for one in report["locations"] if one["besideLocations"]]
    assert [one["kind"] for one in beside["holdings"]] == ["staging"]
    assert steps(report) == ["clean-leftovers"]
    # Of the partition alone nobody asked for what lies beside it.
    assert acidctl("erasure", "--where", "a = 7", table / "day=1").status == 0
    # Its partition is not known, so neither is this.
    assert acidctl("erasure", "--where", "a = 7 AND day = 3", table).status == 15
    assert acidctl("erasure", "--where", "a = 9 AND day = 3", table).status == 0


def test_hostile_names_do_not_reach_the_terminal(acidctl, crud: Path) -> None:  # type: ignore[no-untyped-def]
    odd = crud / "_odd\x1b[31m[red]" / "delta_0000001_0000001_0000" / "bucket_00000"
    odd.parent.mkdir(parents=True)
    shutil.copy(crud / "delta_0000001_0000001_0000" / "bucket_00000", odd)
    found = acidctl("erasure", "--where", "id = 3", crud)
    assert "\x1b[31m" not in found.out + found.err
    assert "[red]" in found.out


@pytest.mark.parametrize("name", ["hive:s.t", "hive:s.*"])
def test_a_partition_that_a_metastore_has_dropped_holds_them_still(acidctl, tmp_path: Path, name: str) -> None:  # type: ignore[no-untyped-def]
    table = tmp_path / "t"
    write_acid(table / "day=1" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (1,)), row=A)
    write_acid(table / "day=2" / "delta_0000001_0000001_0000" / "bucket_00000", insert(1, 0, (2,)), row=A)
    with FakeHive() as fake:
        fake.table("s", "t", str(table), keys=("day",))
        fake.partition("s", "t", "day=1")
        # A partition that was dropped, and whose files are there still.
        found = acidctl("erasure", "--where", "a = 2 AND day = '2'", "-o", "json", "--metastore", fake.address, name)
    assert found.status == 14
    (beside,) = [one for one in found.json()["locations"] if one["besideLocations"]]
    assert [one["kind"] for one in beside["holdings"]] == ["other"]
    assert beside["table"] == "s.t"


def test_a_table_of_another_format_is_not_known(acidctl, crud: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    warehouse = tmp_path / "warehouse" / "some.db"
    shutil.copytree(crud, warehouse / "crud")
    (warehouse / "lake" / "_delta_log").mkdir(parents=True)
    (warehouse / "lake" / "part-0.parquet").write_bytes(b"x")
    found = acidctl("erasure", "--where", "id = 99", "-o", "json", warehouse)
    assert found.status == 15
    assert found.json()["result"] == "not-known"
    assert "lake" in found.json()["notEntered"][0]
