"""Commands over several tables at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tables import CLEAN_NOW
from support.trouble.faults import Faults


@pytest.fixture
def warehouse(acidctl, tmp_path: Path) -> Path:  # type: ignore[no-untyped-def]
    for name in ("a", "b"):
        acidctl("demo", tmp_path / "sales.db" / name)
    return tmp_path / "sales.db"


@pytest.mark.parametrize(
    "command", [("ls",), ("clean", "--yes"), ("compact", "--assume-committed=0s", "--major", "--engine", "local")]
)
def test_one_write_id_list_serves_one_table(acidctl, warehouse: Path, command: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    before = sorted(str(path) for path in warehouse.rglob("*"))
    refused = acidctl(*command, "--snapshot", "sales.a:3:9223372036854775807::1", warehouse)
    assert refused.status == 7
    assert sorted(str(path) for path in warehouse.rglob("*")) == before
    lists = "42$sales.a:3:9223372036854775807::1$sales.b:3:9223372036854775807::"
    assert acidctl("ls", "--snapshot", lists, warehouse).status == 0
    found = acidctl("ls", "-o", "jsonl", "--snapshot", lists, warehouse).lines()
    assert [report["aborted"] for report in found] == [1, 0]
    assert acidctl("ls", "--snapshot", "42$sales.a:3:9223372036854775807::1", warehouse).status == 7


def test_one_bad_table_does_not_stop_the_others(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    (warehouse / "a" / "delta_0000001_0000001_0000" / "bucket_00000").write_bytes(b"bad")
    done = acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", warehouse)
    assert done.status == 4
    assert (warehouse / "b" / "base_0000003").is_dir()
    assert not (warehouse / "a" / "base_0000003").exists()


def test_modes_exclude_each_other_and_properties_are_checked(acidctl, warehouse: Path) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("compact", "--assume-committed=0s", "--major", "--minor", warehouse).status == 2
    assert (
        acidctl(
            "compact", "--assume-committed=0s", "--auto", "--property", "compactorthreshold.nonsense=1", warehouse / "a"
        ).status
        == 2
    )
    key = "compactorthreshold.hive.compactor.delta.num.threshold=1"
    due = acidctl("compact", "--assume-committed=0s", "--auto", "--dry-run", "--property", key, warehouse / "a")
    assert "4 deltas, limit 1" in due.out
    off = acidctl(
        "compact",
        "--assume-committed=0s",
        "--auto",
        "--property",
        key,
        "--property",
        "no_auto_compaction=true",
        warehouse / "a",
    )
    assert "no_auto_compaction" in off.out


def test_dump_takes_a_partitioned_table_but_not_a_database(acidctl, warehouse: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert acidctl("dump", warehouse).status == 2
    for day in (1, 2):
        acidctl("demo", tmp_path / "orders" / f"day={day}")
    assert len(acidctl("dump", tmp_path / "orders").lines()) == 12


@pytest.mark.parametrize(
    "command",
    [("restore", "--dry-run"), ("restore", "--list"), ("purge", "--dry-run")],
)
def test_where_only_the_trash_matters_no_location_is_listed(  # type: ignore[no-untyped-def]
    acidctl, warehouse: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert acidctl("compact", "--assume-committed=0s", "--major", "--engine", "local", warehouse).status == 0
    assert acidctl(*CLEAN_NOW, warehouse).status == 0
    faults = Faults()
    faults.install(monkeypatch)
    assert acidctl(*command, warehouse).status == 0
    listed = {path for name, path in faults.calls if name == "list_tree"}
    assert not listed & {str(warehouse / name) for name in ("a", "b")}
    assert {path for name, path in faults.calls if name == "list_dir"} >= {str(warehouse / name) for name in ("a", "b")}
