"""What `repair` mends in tables that Hive 3.1.3 and 4.0.1 wrote: both go on with them as if nothing had happened."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.compacting import run_compaction
from support.engines.hive_compactor import READY, clean_by_hive, compact_by_hive, names
from support.engines.real_hive import HiveTable, same
from support.files.orc_bytes import local_tail, retailed
from support.servers.hive_server import HiveServer
from support.validating import check

from acidctl import Location
from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import AcidctlError
from acidctl.orc.tail import KEY_INDEX
from acidctl.validation.findings import Depth

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]

COLUMNS = {"id": "int", "name": "string"}
ROWS = 2400
STRIPES = ", 'orc.stripe.size'='262144', 'orc.rows.between.memory.checks'='100'"
"""Several of them, although there are not many rows."""


@pytest.fixture
def hive(real_hive: HiveServer) -> HiveServer:
    return real_hive


def filled(hive: HiveServer, name: str) -> HiveTable:
    """Inserts by three write ids, the first of several stripes, of which some rows were deleted."""
    table = HiveTable(hive, name, COLUMNS, properties=STRIPES, by_lists=True)
    text = ", ".join(f"md5(cast(pos + {i} as string))" for i in range(4))
    numbers = f"select posexplode(split(space({ROWS - 1}), ' ')) as (pos, x)"
    table.run(f"insert into {name} select pos, concat({text}) from ({numbers}) s")
    for first in (5000, 6000):
        table.run(f"insert into {name} values ({first}, 'a'), ({first + 7}, 'b'), ({first + 8}, null)")
    table.run(f"delete from {name} where id % 100 = 7")
    return table


def inserts(table: HiveTable, write_id: int) -> Path:
    """The file of an insert."""
    (file,) = table.path.glob(f"delta_{write_id:07d}_*/bucket_00000*")
    return file


def change_key_index(file: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Change the entries of a file's key index; without entries the key itself goes."""
    assert len(local_tail(file).stripes) > 1

    def changed(footer: Any, _: Any) -> None:
        (place,) = (i for i, item in enumerate(footer.metadata) if item.name == KEY_INDEX)
        entries = change(footer.metadata[place].value.decode().removesuffix(";").split(";"))
        footer.metadata[place].value = "".join(f"{one};" for one in entries).encode()
        if not entries:
            del footer.metadata[place]

    file.write_bytes(retailed(file.read_bytes(), changed, statistics=True))


def nest(outer: Path, *, alone: bool) -> None:
    """Put a copy of a directory into it, as a rename onto itself does; perhaps instead of what was there."""
    shutil.copytree(outer, aside := outer.parent / "_aside")
    aside.rename(outer / outer.name)
    for file in outer.iterdir() if alone else ():
        if file.is_file():
            file.unlink()


def told(table: HiveTable) -> set[str]:
    (report,) = check(table.path, depth=Depth.DEEP, write_ids=str(table.write_ids))
    return {one.rule for one in report.findings if one.severity != "info" and one.rule != "R15"}


@pytest.mark.parametrize("whole", [True, False], ids=["nothing is left of it", "a part is left of it"])
@pytest.mark.sampled(3)
def test_hive_goes_on_with_a_table_that_was_mended(hive: HiveServer, whole: bool) -> None:
    table = filled(hive, f"mended_{whole}".lower())
    before = table.judge()
    change_key_index(inserts(table, 1), lambda entries: [] if whole else entries[:-1])
    marker = inserts(table, 3).parent / "_orc_acid_version"
    marker.unlink() if whole else marker.write_bytes(b"")
    nest(inserts(table, 2).parent, alone=whole)
    rules = {"key-index": "V30", "version-file": "V13", "nested": "V17"}
    assert set(rules.values()) <= told(table)
    location = Location(table.path, snapshot=table.write_ids)
    for kind, rule in rules.items():
        assert location.repair(kind, force=True, offline=True)
        location.restore()
        assert rule in told(table)
        assert location.repair(kind, force=True, offline=True)
        assert rule not in told(table)
    same(table.judge(), before)
    if not whole:
        same(table.compacted(CompactionKind.MINOR), before)
    go_on(table)


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "a copy"])
def test_hive_3_does_not_look_into_a_nested_directory_and_hive_4_does(hive: HiveServer, alone: bool) -> None:
    """Hive 4 reads a copy again, where delete events may not apply to it."""
    table = HiveTable(hive, f"nested_{alone}".lower(), COLUMNS, by_lists=True)
    table.run(f"insert into {table.name} values (1, 'a'), (2, 'b')", f"delete from {table.name} where id = 2")
    table.judge()
    (outer,) = table.path.glob("delta_0000001_*")
    nest(outer, alone=alone)
    found = sorted(row[0] for row in hive.sql(f"select id from {table.name}"))
    own = [] if alone else ["1"]
    assert found == (own if hive.version == 3 else sorted([*own, "1", "2"]))
    assert [values[0] for _, values in table.ours()] == ["1"]
    with pytest.raises(AcidctlError, match="nested"):
        run_compaction(table.path, CompactionKind.MAJOR, table.write_ids)
    location = Location(table.path, snapshot=table.write_ids)
    assert location.repair("nested", force=True, offline=True)
    assert [values[0] for _, values in table.judge()] == ["1"]


def go_on(table: HiveTable) -> None:
    """Hive changes rows, compacts both ways and cleans; it reads what we read."""
    table.run(f"update {table.name} set name = 'u' where id % 100 = 8", f"delete from {table.name} where id % 100 = 9")
    rows = table.judge()
    assert compact_by_hive(table.hive, table.name, "major") == READY
    same(table.judge(), rows)
    clean_by_hive(table.hive, table.name)
    same(table.judge(), rows)
    assert {name.partition("_")[0] for name in names(table.path)} == {"base"}


def test_hive_goes_on_with_a_stream_that_was_cut(hive: HiveServer) -> None:
    table = HiveTable(hive, "cut", COLUMNS, by_lists=True)
    table.run("stream open cut 4", "stream begin")
    table.run(*(f"stream write {i},a" for i in range(20)), "stream commit", "stream begin", "stream write 90,lost")
    table.run("stream leave", "stream abort-open")
    before = table.judge()
    assert len(before) == 20
    (side,) = table.path.glob("*/*_flush_length")
    location = Location(table.path, snapshot=table.write_ids)
    assert location.repair("flush-length", force=True)
    assert not side.exists()
    same(table.judge(), before)
    location.restore()
    assert side.exists()
    same(table.judge(), before)
    assert location.repair("flush-length", force=True)
    table.run("insert into cut values (1008, 'b'), (1009, 'c')")
    go_on(table)
