"""`upgrade-check` on the command line: what blocks, the commands in their order, and rows compared before and after."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

from support.engines.written_by_hive import HIVE23
from support.tables import age


def test_a_table_of_hive_2_from_blocked_to_the_same(acidctl, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    table = shutil.copytree(HIVE23 / "alltypes_v1" / "table", tmp_path / "t")
    saved = tmp_path / "before.json"
    found = acidctl("upgrade-check", "--save", saved, table)
    assert found.status == 14
    assert "NOT READY" in found.out
    assert found.out.index("acidctl compact --major") < found.out.index("--compare before.json")
    report = acidctl("upgrade-check", "-o", "json", table).json()
    assert (report["result"], report["locations"][0]["findings"][0]["code"]) == ("not-ready", "compact")
    assert {"R13"} <= {one["rule"] for one in report["locations"][0]["readers"]}
    (command,) = (step["command"] for step in report["steps"] if step["text"].startswith("compact"))
    age(table, 2)
    assumed = ("--engine", "local", "--assume-committed=1h")  # the printed command assumes nothing
    assert acidctl(*shlex.split(command)[1:], *assumed).status == 0
    assert acidctl("upgrade-check", table).status == 0
    same = acidctl("upgrade-check", "--compare", saved, "-o", "json", table)
    assert same.status == 0
    assert [one["result"] for one in same.json()["comparison"]] == ["same"]


def test_rows_that_differ_or_are_gone(acidctl, crud: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    saved = tmp_path / "before.json"
    warehouse = tmp_path / "w" / "some.db"
    for name in ("a", "b"):
        shutil.copytree(crud, warehouse / name)
    assert acidctl("upgrade-check", "--save", saved, warehouse).status == 0
    assert len(json.loads(saved.read_text())["locations"]) == 2
    shutil.rmtree(warehouse / "a" / "delete_delta_0000003_0000003_0000")
    shutil.rmtree(warehouse / "b")
    found = acidctl("upgrade-check", "--compare", saved, "-o", "json", warehouse)
    assert found.status == 14
    results = {one["name"]: one["result"] for one in found.json()["comparison"]}
    assert results == {"some.a": "differs", "some.b": "gone"}


def test_files_that_are_none_of_save_and_places_without_tables(acidctl, crud: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    bad = tmp_path / "bad.json"
    for text in (
        "",
        "[]",
        "{}",
        '{"schema_version": 1, "locations": [7]}',
        '{"schema_version": 1, "locations": 7}',
        "[" * 100_000,
    ):
        bad.write_text(text)
        assert acidctl("upgrade-check", "--compare", bad, crud).status == 4
    (tmp_path / "empty.db").mkdir()
    assert acidctl("upgrade-check", tmp_path / "empty.db").status == 17


def test_nothing_is_saved_where_something_cannot_be_read(acidctl, crud: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = crud / "delta_0000001_0000001_0000" / "bucket_00000"
    path.write_bytes(path.read_bytes()[:50])
    found = acidctl("upgrade-check", "--save", tmp_path / "before.json", crud)
    assert found.status == 4
    assert not (tmp_path / "before.json").exists()
    assert acidctl("upgrade-check", crud).status == 15
