"""Values of older files are converted as the Hive does it whose metastore knows the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.files.acid_files import IDS, insert, struct, write_acid, write_by_pyorc
from support.metastore.fake_hive import FakeHive

from acidctl import Location
from acidctl.metastore import interface as wire
from acidctl.orc.types import OrcType


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A FLOAT that became text."""
    for write_id, kind, value in ((1, "float", 0.1), (2, "string", "x")):
        path = tmp_path / "t" / f"delta_{write_id:07}_{write_id:07}_0000"
        write_by_pyorc(path, [insert(write_id, 0, (value,))], schema=f"struct<{IDS},row:struct<a:{kind}>>")
    return tmp_path / "t"


@pytest.fixture(params=[3, 4])
def fake(request: pytest.FixtureRequest, table: Path) -> Iterator[FakeHive]:
    with FakeHive(request.param) as fake:
        declare(fake, table, a="string")
        yield fake


def declare(fake: FakeHive, table: Path, **columns: str) -> None:
    fake.table("db", "t", f"file:{table}")
    known = fake.tables["db", "t"]
    fields = tuple(wire.FieldSchema(name, kind) for name, kind in columns.items())
    storage = replace(known.storage, columns=fields)  # type: ignore[type-var]
    fake.tables["db", "t"] = replace(known, storage=storage)
    fake.write_ids["db.t"] = [1, 2, 3]


TEXTS = {3: "0.1", 4: "0.10000000149011612"}


def test_without_a_metastore_it_is_hive_4(acidctl: Callable[..., Any], table: Path) -> None:
    assert [row["a"] for row in acidctl("cat", "-o", "json", table).json()] == [TEXTS[4], "x"]


@pytest.mark.parametrize("lists", [(), ("--snapshot", "db.t:2:9223372036854775807::")], ids=["its own", "given"])
@pytest.mark.parametrize("by_name", [True, False], ids=["name", "path"])
def test_rows_are_as_its_hive_reads_them(
    acidctl: Callable[..., Any], table: Path, fake: FakeHive, lists: tuple[str, ...], by_name: bool
) -> None:
    where = "hive:db.t" if by_name else table
    for verb in (("cat",), ("diff", "--from", "0")):
        found = acidctl(*verb, "-o", "json", "--metastore", fake.address, *lists, where)
        assert found.status == 0, found.err
        assert sorted(row["a"] for row in found.json()) == [TEXTS[fake.version], "x"], verb


def test_a_search_finds_what_its_hive_shows(acidctl: Callable[..., Any], fake: FakeHive) -> None:
    for version, text in TEXTS.items():
        found = acidctl("erasure", "--where", f"a = '{text}'", "-o", "json", "--metastore", fake.address, "hive:db.t")
        assert found.json()["events"] == (version == fake.version), found.out


CHANGED_PLACES = {
    3: [(1, None, None), (2, None, 20), (3, {"x": 3, "y": 1}, 30)],
    4: [(1, {"x": 1, "y": None}, 10), (20, {"x": 2, "y": None}, 2), (3, {"x": 3, "y": 1}, 30)],
}
"""The columns `a`, `s`, `n` by each Hive."""


@pytest.mark.parametrize("version", [3, 4])
def test_columns_go_by_name_in_hive_3_and_by_position_in_hive_4(
    acidctl: Callable[..., Any], tmp_path: Path, version: int
) -> None:
    files = [
        ("a:int,old:struct<x:int>,m:int", (1, (1,), 10)),
        ("n:int,old:struct<x:int>,a:int", (20, (2,), 2)),
        ("_col0:int,_col1:struct<y:int,x:int>,_col2:int", (3, (1, 3), 30)),
    ]
    for write_id, (row, values) in enumerate(files, 1):
        path = tmp_path / "t" / f"delta_{write_id:07}_{write_id:07}_0000"
        write_by_pyorc(path, [insert(write_id, 0, values)], schema=f"struct<{IDS},row:struct<{row}>>")
    with FakeHive(version) as fake:
        declare(fake, tmp_path / "t", a="int", s="struct<x:int,y:int>", n="int")
        call = ("-o", "json", "--metastore", fake.address, "hive:db.t")
        wanted = CHANGED_PLACES[version]
        for verb in (("cat",), ("diff", "--from", "0")):
            found = acidctl(*verb, *call)
            assert [(row["a"], row["s"], row["n"]) for row in found.json()] == wanted, verb
        columns = acidctl("cat", "--columns", "s.x,n", "--where", "s.x is null", *call)
        assert [(row["s.x"], row["n"]) for row in columns.json()] == [(None, n) for _, s, n in wanted if s is None]
        search = acidctl("erasure", "--where", "s.x = 1", *call)
    assert search.json()["events"] == 1, "the value is in the file, whoever shows it"


@pytest.mark.parametrize(("own", "value"), [("bigint", 253_402_300_799), ("date", date(9999, 12, 31)), ("int", 0)])
def test_the_schema_is_known_before_values_become_timestamps(tmp_path: Path, own: str, value: Any) -> None:
    for write_id, kind, written in ((1, own, value), (2, "timestamp", datetime(2020, 1, 1, tzinfo=UTC))):
        path = tmp_path / "t" / f"delta_{write_id:07}_{write_id:07}_0000"
        write_by_pyorc(path, [insert(write_id, 0, (written,))], schema=f"struct<{IDS},row:struct<a:{kind}>>")
    with FakeHive(4) as fake:
        declare(fake, tmp_path / "t", a="timestamp")
        scan = Location("hive:db.t", metastore=fake.address).rows().scan()
        found = pa.Table.from_batches(scan.to_batches(), scan.schema)
    assert found.num_rows == 2
    assert pa.types.is_timestamp(found.schema.field("a").type) is (own == "int")


@pytest.mark.parametrize(("version", "wanted"), [(3, ["0001-01-01", "1582-10-15"]), (4, ["0001-01-03", "1582-10-15"])])
def test_days_before_1582_are_by_no_calendar_for_hive_3(
    acidctl: Callable[..., Any], tmp_path: Path, version: int, wanted: list[str]
) -> None:
    events = [insert(1, number, (day,)) for number, day in enumerate((-719_162, -141_427))]
    path = tmp_path / "t/delta_0000001_0000001_0000/bucket_00000"
    write_acid(path, *events, row=struct(a=OrcType("date")), calendar=1)
    with FakeHive(version) as fake:
        declare(fake, tmp_path / "t", a="date")
        call = ("-o", "json", "--metastore", fake.address, "hive:db.t")
        assert [row["a"] for row in acidctl("cat", *call).json()] == wanted
        asked = ("--where", f"a = date '{wanted[0]}'", *call)
        assert len(acidctl("cat", *asked).json()) == 1
        assert acidctl("erasure", *asked).json()["events"] == 1
