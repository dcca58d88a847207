"""Copies to Iceberg that follow tables of real Hives: after every statement PyIceberg reads what Hive reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.table import StaticTable
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive
from support.migrating import rows
from support.servers.hive_server import HiveServer

import acidctl
from acidctl.outcome import Result

pytestmark = [pytest.mark.server]

INSERT_ONLY = "tblproperties('transactional'='true','transactional_properties'='insert_only')"
STATEMENTS = {
    "insert-only": [
        "insert into {t} values (1, 'a'), (2, null)",
        "insert into {t} values (3, 'c')",
        "minor",
        "insert into {t} values (4, 'd'), (5, 'e')",
        "major",
        "insert overwrite table {t} select * from {t} where id > 2",
        "insert into {t} select id + 10, s from {t}",
        "major",
        "truncate table {t}",
        "insert into {t} values (6, 'f')",
    ],
    "full": [
        "insert into {t} values (1, 'a'), (2, null), (3, 'c')",
        "update {t} set s = 'new' where id = 1",
        "minor",
        "delete from {t} where id = 2",
        "major",
        "insert overwrite table {t} select * from {t} where id > 1",
        "truncate table {t}",
        "insert into {t} values (6, 'f')",
    ],
}


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_copy_follows_every_statement(kind: str, real_hive: HiveServer, tmp_path: Path) -> None:
    name, to = f"followed_{kind.replace('-', '_')}", tmp_path / "copy"
    properties = INSERT_ONLY if kind == "insert-only" else "tblproperties('transactional'='true')"
    real_hive.sql(f"drop table if exists {name}", f"create table {name} (id int, s string) stored as orc {properties}")
    real_hive.sql(STATEMENTS[kind][0].format(t=name))
    acidctl.migrate(f"hive:default.{name}", to, metastore=real_hive.metastore)
    for statement in STATEMENTS[kind][1:]:
        if statement in ("minor", "major"):
            assert compact_by_hive(real_hive, name, statement) == READY
            clean_by_hive(real_hive, name)
        else:
            real_hive.sql(statement.format(t=name))
        done = acidctl.migrate(f"hive:default.{name}", to, metastore=real_hive.metastore, catch_up=True)
        found = sorted([str(id_), "NULL" if text is None else text] for id_, text in rows(to))
        assert found == sorted(real_hive.sql(f"select * from {name}")), (statement, done)
        for id_, text in rows(to):  # the bounds and NULLs in the manifests hide none
            kept = f"id = {id_} and " + ("s is null" if text is None else f"s = '{text}'")
            assert StaticTable.from_metadata(str(to)).scan(row_filter=kept).to_arrow().num_rows == 1, statement
        again = acidctl.migrate(f"hive:default.{name}", to, metastore=real_hive.metastore, catch_up=True)
        assert (again.result, again.snapshot) == (Result.NOTHING_TO_DO, None), statement
        if statement in ("minor", "major"):
            assert (done.rows, done.deleted) == (0, 0), statement


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_partition_with_the_name_of_a_dropped_one_is_copied_again(
    kind: str, real_hive: HiveServer, tmp_path: Path
) -> None:
    """One INSERT gave the rows of both partitions the same ROW__IDs, in files of the same size."""
    name, to = f"renamed_{kind.replace('-', '_')}", tmp_path / "copy"
    properties = INSERT_ONLY if kind == "insert-only" else "tblproperties('transactional'='true')"
    columns = f"{name} (id int, s string) partitioned by (p int) stored as orc {properties}"
    real_hive.sql(
        f"drop table if exists {name}",
        f"create table {columns}",
        "set hive.exec.dynamic.partition.mode=nonstrict",
        f"insert into {name} partition (p) values (1, 'old', 1), (1, 'new', 2), (5, 'five', 3)",
    )

    def follow(**options: object) -> acidctl.outcome.Outcome:
        done = acidctl.migrate(f"hive:default.{name}", to, metastore=real_hive.metastore, **options)
        found = sorted(list(map(str, row)) for row in rows(to))
        assert found == sorted(real_hive.sql(f"select * from {name}")), done
        return done

    follow()
    real_hive.sql(
        f"alter table {name} drop partition (p=1)", f"alter table {name} partition (p=2) rename to partition (p=1)"
    )
    assert ["1", "new", "1"] in real_hive.sql(f"select * from {name}")
    assert (follow(catch_up=True).rows, follow(catch_up=True).result) == (1, Result.NOTHING_TO_DO)
    real_hive.sql(f"insert into {name} partition (p=1) values (2, 'more')")
    assert follow(catch_up=True).rows == 1
    assert compact_by_hive(real_hive, name, "major", "p=1") == READY
    clean_by_hive(real_hive, name)
    assert follow(catch_up=True, proof="full").result is Result.NOTHING_TO_DO
