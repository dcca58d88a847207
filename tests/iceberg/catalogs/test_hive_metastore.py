"""Iceberg tables in a metastore, by acidctl's own client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from support.command_line import Result as Run
from support.metastore.fake_hive import FakeHive
from support.metastore.fake_metastore import Refused
from support.metastore.writable import client, writable

import acidctl
from acidctl.base.errors import (
    AcidctlError,
    ConflictError,
    NotFoundError,
    RefusedError,
    StorageError,
    UsageProblem,
)
from acidctl.iceberg.catalogs import hive_metastore
from acidctl.iceberg.catalogs.hive_metastore import METADATA, PREVIOUS, MetastoreCatalog
from acidctl.metastore.interface import Database, FieldSchema, LockType, SerDeInfo
from acidctl.outcome import Result
from acidctl.verbs.iceberg.options import Migrated

KEY = "db", "t_ice"


@pytest.fixture(params=[3, 4])
def hive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakeHive]:
    """A metastore of either version, with a table of two rows."""
    with FakeHive(request.param, remembers=True) as made:
        made.databases["db"] = Database("db", f"file:{tmp_path}")
        writable(made, tmp_path / "t")
        insert(made, 1, 2)
        yield made


def insert(hive: FakeHive, *numbers: int) -> None:
    rows = pa.table({"a": pa.array(numbers, pa.int32()), "b": list(map(str, numbers))})
    acidctl.Hive(hive.address).table("db.t").insert(rows)


def copy(hive: FakeHive, to: str = "hive:db.t_ice", **options: Any) -> Migrated:
    return acidctl.migrate("hive:db.t", to, metastore=hive.address, **{"catch_up": KEY in hive.tables, **options})


def rows(hive: FakeHive) -> list[int]:
    return sorted(
        StaticTable.from_metadata(hive.tables[KEY].parameters[METADATA]).scan().to_arrow().column("a").to_pylist()
    )


def test_the_table_is_external_and_only_the_place_of_its_metadata_changes(hive: FakeHive, tmp_path: Path) -> None:
    assert copy(hive).proof == "all values of 2 rows compared"
    made = hive.tables[KEY]
    assert (made.table_type, made.partition_keys, made.storage and made.storage.location) == (
        "EXTERNAL_TABLE", (), f"file://{tmp_path}/t_ice",
    )  # fmt: skip
    assert made.storage
    assert made.storage.columns == (FieldSchema("a", "int"), FieldSchema("b", "string"))
    assert made.parameters.keys() == {"EXTERNAL", "table_type", METADATA, PREVIOUS}
    handler = SerDeInfo(serialization_lib="org.apache.iceberg.mr.hive.HiveIcebergSerDe")
    others = {"storage_handler": "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler", "owner": "me"}
    by_hive = replace(made, storage=replace(made.storage, serde=handler), parameters=made.parameters | others)
    hive.tables[KEY] = by_hive
    insert(hive, 3)
    copy(hive)
    now = hive.tables[KEY]
    assert replace(now, parameters=by_hive.parameters) == by_hive
    assert now.parameters.items() - by_hive.parameters.items() == {
        (METADATA, now.parameters[METADATA]), (PREVIOUS, made.parameters[METADATA]),
    }  # fmt: skip
    assert rows(hive) == [1, 2, 3]
    assert not hive.locks
    assert ("t_ice", LockType.EXCLUSIVE) in {(lock.table, lock.type) for lock in hive.wanted_locks}
    assert copy(hive).result is Result.NOTHING_TO_DO


def test_new_columns_and_the_newest_snapshot_are_described(hive: FakeHive) -> None:
    """Iceberg's own catalog writes parameters about the snapshot, which must not become wrong."""
    copy(hive)
    hive.tables[KEY] = replace(
        hive.tables[KEY], parameters=hive.tables[KEY].parameters | {"current-snapshot-id": "7", "snapshot-count": "9"}
    )
    source = hive.tables["db", "t"]
    assert source.storage
    columns = (FieldSchema("a", "bigint"), FieldSchema("b", "string"), FieldSchema("c", "array<double>"))
    hive.tables["db", "t"] = replace(source, storage=replace(source.storage, columns=columns))
    done = copy(hive)
    now = hive.tables[KEY]
    assert now.storage
    assert now.storage.columns == columns
    table = StaticTable.from_metadata(now.parameters[METADATA])
    assert now.parameters["current-snapshot-id"] == str(table.metadata.current_snapshot_id)
    assert (now.parameters["snapshot-count"], done.notes) == ("1", ("a is long now", "c list<double> is new"))


def test_a_commit_of_somebody_else_is_not_lost(hive: FakeHive) -> None:
    copy(hive)
    insert(hive, 3)
    old = hive.tables[KEY].parameters
    theirs = old[METADATA].replace("metadata/", "metadata/99-")
    Path(theirs.removeprefix("file://")).write_bytes(Path(old[METADATA].removeprefix("file://")).read_bytes())
    real = hive.answers["lock"]

    def locking(asked: Any) -> Any:
        """Somebody commits just before: what Spark does when it adds a column has other metadata, but no snapshot."""
        if asked.components[0].table == "t_ice":
            changed = old | {METADATA: theirs, PREVIOUS: old[METADATA]}
            hive.tables[KEY] = replace(hive.tables[KEY], parameters=changed)
        return real(asked)

    hive.answers["lock"] = locking
    before = hive.calls.count(altering(hive))
    with pytest.raises(ConflictError, match="was changed by somebody else meanwhile"):
        copy(hive)
    assert hive.tables[KEY].parameters[METADATA] == theirs
    assert hive.calls.count(altering(hive)) == before
    hive.answers["lock"] = real
    assert (copy(hive).rows, rows(hive)) == (1, [1, 2, 3])


def altering(hive: FakeHive) -> str:
    return "alter_table_req" if hive.version == 4 else "alter_table_with_environment_context"


@pytest.mark.parametrize(("kind", "times"), [("done", 1), ("lost", 1), ("done", 3)])
def test_a_lost_answer_of_the_commit(hive: FakeHive, kind: str, times: int) -> None:
    copy(hive)
    insert(hive, 3)
    hive.fault(altering(hive), kind, times)
    assert (copy(hive).rows, rows(hive)) == (1, [1, 2, 3])


def test_a_commit_without_any_answer_may_have_happened(hive: FakeHive) -> None:
    copy(hive)
    insert(hive, 3)
    hive.fault(altering(hive), "lost", 3)
    with pytest.raises(StorageError, match="nobody knows whether the copy has the new snapshot"):
        copy(hive)
    assert (copy(hive).rows, rows(hive)) == (1, [1, 2, 3])


def test_a_refused_commit_leaves_the_copy_as_it_was(hive: FakeHive) -> None:
    copy(hive)
    insert(hive, 3)
    files = len(list(metadata_files(hive)))
    hive.fault(altering(hive), "refused")
    with pytest.raises(RefusedError, match="cannot commit to db"):
        copy(hive)
    assert (rows(hive), len(list(metadata_files(hive)))) == ([1, 2], files)


def metadata_files(hive: FakeHive) -> Iterator[Path]:
    return Path(hive.tables[KEY].parameters[METADATA].removeprefix("file://")).parent.glob("*.metadata.json")


def test_a_commit_waits_for_the_lock_of_another(hive: FakeHive, monkeypatch: pytest.MonkeyPatch) -> None:
    copy(hive)
    insert(hive, 3)
    monkeypatch.setattr(hive_metastore, "_WAIT", 0.0)
    hive.lock("db", "t_ice", txn=hive.begin(), type=LockType.EXCLUSIVE)
    with pytest.raises(ConflictError, match="could not lock db"):
        copy(hive)
    assert rows(hive) == [1, 2]


@pytest.mark.parametrize(
    ("to", "error", "why"),
    [
        ("hive:db.t", RefusedError, "it is not an Iceberg table"),
        ("hive:db.*", UsageProblem, "it is a pattern or a partition"),
        ("hive:db.t_ice/p=1", UsageProblem, "it is a pattern or a partition"),
        ("hive:nothing.t_ice", NotFoundError, ""),
    ],
)
def test_what_cannot_be_a_target(hive: FakeHive, to: str, error: type[AcidctlError], why: str) -> None:
    with pytest.raises(error) as found:
        copy(hive, to)
    assert why in found.value.why


def test_where_a_new_table_may_lie(hive: FakeHive, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "other").mkdir()
    hive.table("db", "other", str(tmp_path / "other"))
    for place, why in (
        ("full", "it holds files"),
        ("other/below", "in or around the directory of db.other"),
        ("t/below", "in or around"),
        ("", "it holds files"),
    ):
        with pytest.raises(RefusedError) as found:
            copy(hive, target_location=str(tmp_path / place))
        assert why in found.value.why
    assert KEY not in hive.tables
    assert copy(hive, target_location=f"file:{tmp_path}/elsewhere", dry_run=True).result is Result.PLANNED
    assert not (tmp_path / "elsewhere").exists()
    copy(hive, target_location=f"file:{tmp_path}/elsewhere")
    assert hive.tables[KEY].parameters[METADATA].startswith(f"file://{tmp_path}/elsewhere/metadata/")


def test_two_that_make_the_table_at_once(hive: FakeHive, tmp_path: Path) -> None:
    catalog = MetastoreCatalog(client(hive), {})
    create = "create_table_req" if hive.version == 4 else "create_table"

    def made_already() -> None:
        hive.before.clear()
        hive.table("db", "t_ice", str(tmp_path / "t_ice"))

    hive.before[create] = made_already
    with pytest.raises(ConflictError, match="t_ice exists"):
        copy(hive)
    assert not list((tmp_path / "t_ice").rglob("*.json"))
    assert catalog.has("db.t_ice")


@pytest.mark.parametrize("kind", ["refused", "done"])
def test_the_next_run_makes_the_table_after_one_that_was_refused(hive: FakeHive, kind: str) -> None:
    hive.fault("create_table_req" if hive.version == 4 else "create_table", kind)
    if kind == "refused":
        with pytest.raises(AcidctlError):
            copy(hive)
    assert copy(hive).rows == 2
    assert rows(hive) == [1, 2]


@pytest.mark.parametrize("step", ["create", "alter"])
def test_metadata_stays_if_nobody_can_say_that_it_is_not_in_use(hive: FakeHive, step: str) -> None:
    """The metastore does what it was asked for, then says that it failed, and does not answer for a while."""
    if step == "alter":
        copy(hive)
        insert(hive, 3)
    method = altering(hive) if step == "alter" else "create_table_req" if hive.version == 4 else "create_table"
    real = hive.answers[method]

    def fails(*asked: Any) -> Any:
        real(*asked)
        hive.answers[method] = real
        hive.fault("get_table_req", "failed", 3)
        raise Refused("MetaException" if step == "alter" else "AlreadyExistsException", "it has been done before")

    hive.answers[method] = fails
    with pytest.raises(AcidctlError):
        copy(hive)
    hive.faults.clear()
    copy(hive)
    assert rows(hive) == ([1, 2, 3] if step == "alter" else [1, 2])


def test_the_command_makes_a_table_in_directories_that_do_not_exist(
    hive: FakeHive, tmp_path: Path, acidctl: Callable[..., Run]
) -> None:
    """It follows no links below a directory, and so begins at one that exists."""
    place = tmp_path / "external" / "db" / "t_ice"
    words = ("migrate", "--metastore", hive.address, "hive:db.t", "--to", "hive:db.t_ice", "--yes")
    assert acidctl(*words, "--target-location", f"file:{place}").status == 0
    insert(hive, 3)
    assert acidctl(*words, "--catch-up").status == 0
    assert rows(hive) == [1, 2, 3]
    done = acidctl(*words, "--cut-over", "-o", "json").json()
    assert [one["names"] for one in done][-1] == "db.t becomes the Iceberg table, and the Hive table becomes db.t_acid"
    assert acidctl(*words, "--back").status == 0
    assert hive.tables[KEY].parameters[METADATA].startswith(f"file://{place}/metadata/")
