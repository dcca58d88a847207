"""Transactions first, then partitions, then listings: what happens in between is noticed, and nothing is lost by it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Result
from support.files.acid_files import insert, write_acid
from support.metastore.fake_metastore import FakeMetastore, FakeTables, fake_metastore

from acidctl.base.errors import ConflictError, NotFoundError
from acidctl.location.find import find
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.location.warehouse import Warehouse
from acidctl.rows.scan import table as tables
from acidctl.rows.scan.table import Table, table_at


class Lived:
    """A table whose writes are known to a metastore: write id and transaction are one number."""

    def __init__(self, root: Path, *keys: str) -> None:
        self.root = root / "t"
        self.root.mkdir()
        self.meta = FakeTables()
        self.meta.add("db.t", f"file:{self.root}", *keys)
        self.meta.written["db.t"] = {}
        self.server: FakeMetastore | None = None

    def write_directory(self, at: str, name: str, write_id: int, *rows: int) -> None:
        write_acid(self.root / at / name / "bucket_00000", *(insert(write_id, k, (row,)) for k, row in enumerate(rows)))

    def write(self, *rows: int, where: str = "", commit: bool = True) -> None:
        self.meta.high_watermark += 1
        number = self.meta.high_watermark
        for part in (where or ".").split():
            self.write_directory(part, f"delta_{number:07}_{number:07}_0000", number, *rows)
            if "=" in part:
                self.meta.partitions["db", "t"][part.partition("=")[2],] = f"file:{self.root / part}"
        self.meta.written["db.t"][number] = number
        if not commit:
            self.meta.open.add(number)

    def compact(self, *rows: int, at: str = ".", visibility: bool = True, commit: bool = True) -> list[Path]:
        """Hive's compaction; gives the directories that its cleaner may remove."""
        old = [path for path in (self.root / at).iterdir() if path.is_dir() and "=" not in path.name]
        last = max(self.meta.written["db.t"])
        suffix = ""
        if visibility:
            self.meta.high_watermark += 1
            suffix = f"_v{self.meta.high_watermark:07}"
            if not commit:
                self.meta.open.add(self.meta.high_watermark)
        self.write_directory(at, f"base_{last:07}{suffix}", last, *rows)
        return old

    def lists(self) -> SnapshotResolver:
        assert self.server
        return SnapshotResolver(warehouse=Warehouse(self.server.client()))

    def open(self) -> Table:
        return table_at("hive:db.t", None, self.lists())


@pytest.fixture
def lived(tmp_path: Path) -> Iterator[Callable[..., Lived]]:
    opened = []

    def made(*keys: str) -> Lived:
        one = Lived(tmp_path, *keys)
        server = fake_metastore(one.meta.answers())
        one.server = server.__enter__()
        opened.append(server)
        return one

    yield made
    for server in opened:
        server.__exit__(None, None, None)


def rows(table: Table) -> list[int]:
    return sorted(table.scan().to_table()["a"].to_pylist())


@pytest.mark.parametrize("visibility", [True, False], ids=["hive-4", "hive-3"])
def test_a_compaction_and_a_cleaning_after_the_lists_lose_no_row(lived: Callable[..., Lived], visibility: bool) -> None:
    one = lived()
    one.write(1)
    one.write(2)
    table = one.open()
    one.write(3)
    for path in one.compact(1, 2, 3, visibility=visibility):
        shutil.rmtree(path)
    one.write(4)
    scan = table.scan()
    assert sorted(scan.to_table()["a"].to_pylist()) == [1, 2, 3, 4]
    assert scan.snapshots[0].state.notes[0].value("how") == "again"


def test_a_compaction_that_is_not_done_changes_nothing(lived: Callable[..., Lived]) -> None:
    one = lived()
    one.write(1)
    table = one.open()
    one.write(2)
    one.compact(1, 2, commit=False)
    scan = table.scan()
    assert scan.to_table()["a"].to_pylist() == [1]
    assert scan.snapshots[0].state.notes[0].value("how") == "first"


def test_a_compaction_of_acidctl_takes_no_part_of_a_table_for_all_of_it(lived: Callable[..., Lived]) -> None:
    # The lists of a command over many tables may be hours old: Hive has compacted 1 and 2, and removed them.
    one = lived()
    one.write(1)
    one.write(2)
    one.write(3)
    one.write(4)
    walk = find(["hive:db.t"], {}, one.lists().opened())
    shutil.rmtree(one.root / "delta_0000003_0000003_0000")
    shutil.rmtree(one.root / "delta_0000004_0000004_0000")
    del one.meta.written["db.t"][3], one.meta.written["db.t"][4]
    old = one.compact(1, 2)
    for path in old:
        shutil.rmtree(path)
    one.write_directory(".", "delta_0000003_0000003_0000", 3, 3)
    one.write_directory(".", "delta_0000004_0000004_0000", 4, 4)
    one.meta.written["db.t"] |= {3: 3, 4: 4}
    (found,) = walk
    snapshot = found.snapshot(compactor=True)
    assert snapshot.state.base and snapshot.state.base.name.startswith("base_0000002_v")


def test_what_is_compacted_at_every_look_is_refused(lived: Callable[..., Lived]) -> None:
    one = lived()
    one.write(1)
    answers = one.server.answers if one.server else {}
    asked = answers["get_open_txns_req"]

    def and_compact(request: object) -> object:
        answer = asked(request)
        one.write(1)
        for path in one.compact(1):
            shutil.rmtree(path)
        return answer

    table = one.open()
    answers["get_open_txns_req"] = and_compact
    one.write(2)
    for path in one.compact(1, 2):
        shutil.rmtree(path)
    with pytest.raises(ConflictError, match="changes faster"):
        table.scan()


def test_a_transaction_over_a_new_partition_is_seen_whole_by_a_later_scan(lived: Callable[..., Lived]) -> None:
    one = lived("p")
    one.write(1, where="p=1")
    table = one.open()
    assert rows(table) == [1]
    one.write(2, where="p=1 p=2")
    assert rows(table) == [1, 2, 2]
    assert [location.partition for location in table.locations] == [{"p": "1"}, {"p": "2"}]
    del one.meta.partitions["db", "t"][("1",)]
    shutil.rmtree(one.root / "p=1")
    assert rows(table) == [2]


def test_files_that_go_between_listing_and_opening_are_looked_for_once_more(
    lived: Callable[..., Lived], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = lived()
    one.write(1)
    table = one.open()
    opened = tables.open_sources
    times = []

    def and_clean(*asked: Any) -> Any:
        if not times:
            for path in one.compact(1):
                shutil.rmtree(path)
        times.append(asked)
        return opened(*asked)

    monkeypatch.setattr(tables, "open_sources", and_clean)
    scan = table.scan()
    assert scan.to_table()["a"].to_pylist() == [1]
    assert scan.snapshots[0].state.notes[0].value("how") == "again"
    assert len(times) == 2


def test_a_table_that_is_dropped_before_it_is_read_says_so(lived: Callable[..., Lived]) -> None:
    one = lived()
    one.write(1)
    table = one.open()
    shutil.rmtree(one.root)
    one.meta.tables.clear()
    with pytest.raises(NotFoundError):
        table.scan()


def test_cat_says_that_the_metastore_was_asked_again(
    lived: Callable[..., Lived], acidctl: Callable[..., Result]
) -> None:
    one = lived()
    one.write(1)
    server = one.server
    assert server
    by_name = server.answers["get_table_req"]
    done = []

    def then_compact(request: object) -> object:
        if not done:
            done.append(1)
            for path in one.compact(1):
                shutil.rmtree(path)
        return by_name(request)

    server.answers["get_table_req"] = then_compact
    result = acidctl("cat", "--metastore", server.address, "hive:db.t")
    assert result.status == 0, result
    assert '"a":1' in result.out.replace(" ", "")
    assert "asked again" in result.err
    orders = [name for name in server.calls if name in ("get_open_txns_req", "get_table_req", "get_partition_names")]
    assert orders.index("get_open_txns_req") < orders.index("get_table_req")
