"""Hive's lists as users give them: whole, of the right table, from a file, or assumed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from acidctl.acid.assumed_commits import Assumption
from acidctl.acid.listing import Entry, Listing
from acidctl.acid.writeids import Form, ValidTxns, WriteIdListError
from acidctl.base.errors import AccessError, NotFoundError, RefusedError, UsageProblem
from acidctl.location.snapshot import DirectoryListing
from acidctl.location.snapshot_spec import read_lists

ORDERS = "sales.orders:12:9:9:7"
ITEMS = "sales.items:3:9223372036854775807::"
OTHER = "old.orders:2:9223372036854775807::"


@pytest.mark.parametrize(
    ("table", "listed"),
    [
        ("sales.orders", "sales.orders"), ("orders", "sales.orders"), ("Sales.Orders", "sales.orders"),
        ("sales.orders", "SALES.ORDERS"), ("orders", "orders"), ("sales.orders", "orders"),
    ],
)  # fmt: skip
def test_names_that_are_one_table(table: str, listed: str) -> None:
    found = read_lists(f"{listed}:12:9:9:7").write_ids_of(table)
    assert found is not None
    assert (found.high_watermark, found.open, found.aborted) == (12, (9,), (7,))


@pytest.mark.parametrize(
    ("table", "listed"),
    [
        ("sales.orders", "old.orders"), ("sales.orders", "sales.items"), ("orders", "sales.items"),
        ("orders_v2", "sales.orders"), ("sales.orders", "null"), ("orders", "null"),
    ],
)  # fmt: skip
def test_a_list_of_another_table_is_refused(table: str, listed: str) -> None:
    with pytest.raises(RefusedError, match="no write-id list is for the table") as caught:
        read_lists(f"{listed}:12:9:9:7").write_ids_of(table)
    assert "`table='db.table'`" in caught.value.hint


def test_lists_of_another_table_count_only_when_it_is_named() -> None:
    for name in ("sales.orders", "orders"):
        found = read_lists(ORDERS, table=name).write_ids_of("orders_v2")
        assert found is not None and found.high_watermark == 12
    with pytest.raises(RefusedError):
        read_lists(ORDERS, table="sales.items").write_ids_of("sales.orders")
    with pytest.raises(UsageProblem):
        read_lists(table="sales.orders")
    null = read_lists("null:12:9:9:7", table="null").write_ids_of("anything")
    assert null is not None and null.table is None


def test_several_lists_by_their_names() -> None:
    lists = read_lists(f"42${ORDERS}${ITEMS}${OTHER}")
    for table, highest in (("sales.orders", 12), ("sales.items", 3), ("old.orders", 2), ("items", 3)):
        found = lists.write_ids_of(table)
        assert found is not None and found.high_watermark == highest
    with pytest.raises(RefusedError, match="cannot be told"):
        lists.write_ids_of("orders")  # of which database?
    with pytest.raises(RefusedError, match=r"no write-id list is for the table sales\.none"):
        lists.write_ids_of("sales.none")
    lists.require_one_table(["sales.orders", "sales.items"], "/w/items")


def test_one_list_serves_one_table() -> None:
    for lists in (
        read_lists(ORDERS),
        read_lists(f"42${ORDERS}"),
        read_lists(f"42${ORDERS}${ITEMS}", table="sales.items"),
    ):
        lists.require_one_table(["sales.orders"], "/w/orders")
        with pytest.raises(RefusedError):
            lists.require_one_table(["sales.orders", "sales.items"], "/w/items")


def test_the_old_forms_are_of_all_tables() -> None:
    lists = read_lists("100:4:4", form=Form.HIVE2)
    for table in ("a.b", "c"):
        found = lists.write_ids_of(table)
        assert found is not None and found.open == (4,)
    lists.require_one_table(["a.b", "c"], "/c")
    with pytest.raises(UsageProblem):
        read_lists(form=Form.HIVE2)


@pytest.mark.parametrize(
    "content",
    [
        f"{ORDERS}\n{ITEMS}\n", f"# taken at noon\n\n  {ORDERS}  \r\n{ITEMS}", f"42${ORDERS}${ITEMS}",
        f"42${ORDERS}\n{ITEMS}\n",
    ],
)  # fmt: skip
def test_file_with_a_list_in_each_line_serves_several_tables(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lists").write_text(content)
    monkeypatch.setattr("sys.stdin", io.StringIO(content))
    for source in (str(tmp_path / "lists"), "-"):
        lists = read_lists(write_ids_from=source)
        assert {table: lists.write_ids_of(table).high_watermark for table in ("sales.orders", "items")} == {  # type: ignore[union-attr]
            "sales.orders": 12,
            "items": 3,
        }


@pytest.mark.parametrize("content", ["", "# nothing\n", "12:9:9:7\n", f"{ORDERS}\n{ORDERS}\n", "\x00", "a,b\n1,2\n"])
def test_malformed_file_of_lists_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "lists").write_text(content)
    with pytest.raises(WriteIdListError):
        read_lists(write_ids_from=str(tmp_path / "lists"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WriteIdListError, match="cannot use"):
        read_lists(write_ids_from=str(tmp_path / "bytes"))
    with pytest.raises(NotFoundError):
        read_lists(write_ids_from=str(tmp_path / "none"))
    with pytest.raises((NotFoundError, AccessError)):
        read_lists(write_ids_from=str(tmp_path))
    with pytest.raises(UsageProblem, match="twice"):
        read_lists(ORDERS, write_ids_from="-")


def test_what_is_told_and_what_is_assumed() -> None:
    assert not read_lists().is_told
    assert not read_lists(valid_txns="9:9223372036854775807::").is_told, "which write ids count is still not known"
    assert read_lists(ORDERS).is_told
    assert read_lists(assumption=Assumption()).is_told
    entries = (Entry("delta_1_1/bucket_00000", 1, 5.0, False), Entry("base_1_v9/bucket_00000", 1, 95.0, False))
    look = DirectoryListing(Listing("t", entries), {}, {})
    listed = read_lists("db.t:5:9223372036854775807::", assumption=Assumption(50)).of(look, "t", 100.0)
    assert listed.write_ids is not None and listed.write_ids.high_watermark == 5, "the list counts, whatever is assumed"
    assert listed.txns is not None and not listed.txns.is_valid(9)
    assert listed.assumed is not None and not listed.assumed.of_write_ids
    txns = ValidTxns(9)
    given = read_lists("db.t:5:9223372036854775807::", valid_txns=str(txns), assumption=Assumption(50)).of(
        look, "t", 100.0
    )
    assert (given.txns, given.assumed) == (txns, None)
    assumed = read_lists(assumption=Assumption(50)).of(look, "t", 100.0)
    assert assumed.write_ids is not None and assumed.write_ids.high_watermark == 0
    assert read_lists().of(look, "t", 100.0).write_ids is None
