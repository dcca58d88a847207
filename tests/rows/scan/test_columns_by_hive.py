"""Values of older files are converted as the Hive does it whose metastore knows the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import IDS, insert, write_by_pyorc
from support.metastore.fake_hive import FakeHive

from acidctl.metastore import interface as wire


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
        fake.table("db", "t", f"file:{table}")
        known = fake.tables["db", "t"]
        storage = replace(known.storage, columns=(wire.FieldSchema("a", "string"),))  # type: ignore[type-var]
        fake.tables["db", "t"] = replace(known, storage=storage)
        fake.write_ids["db.t"] = [1, 2]
        yield fake


TEXTS = {3: "0.1", 4: "0.10000000149011612"}


def test_without_a_metastore_it_is_hive_4(acidctl: Callable[..., Any], table: Path) -> None:
    assert [row["a"] for row in acidctl("cat", "-o", "json", table).json()] == [TEXTS[4], "x"]


@pytest.mark.parametrize("lists", [(), ("--write-ids", "db.t:2:9223372036854775807::")], ids=["its own", "given"])
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
