"""Hive's lists as users give them: whole, of the right table, with transactions, or assumed."""

from __future__ import annotations

import pytest

from acidctl.acid.assumed_commits import Assumption
from acidctl.acid.listing import Entry, Listing
from acidctl.acid.writeids import ValidTxns, ValidWriteIds, WriteIdListError
from acidctl.base.errors import RefusedError, UsageProblem
from acidctl.location.snapshot import DirectoryListing
from acidctl.location.snapshot_resolver import ResolvedSnapshot, SnapshotResolver, SnapshotSpec

ORDERS = "sales.orders:12:9:9:7"
ITEMS = "sales.items:3:9223372036854775807::"
OTHER = "old.orders:2:9223372036854775807::"
TXNS = "txns=9:9223372036854775807::"


@pytest.mark.parametrize(
    ("table", "listed"),
    [
        ("sales.orders", "sales.orders"), ("orders", "sales.orders"), ("Sales.Orders", "sales.orders"),
        ("sales.orders", "SALES.ORDERS"), ("orders", "orders"), ("sales.orders", "orders"),
    ],
)  # fmt: skip
def test_names_that_are_one_table(table: str, listed: str) -> None:
    found = SnapshotSpec.parse(f"{listed}:12:9:9:7").write_ids_for(table)
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
        SnapshotSpec.parse(f"{listed}:12:9:9:7").write_ids_for(table)
    assert f"write {table} in it" in caught.value.hint


def test_several_lists_by_their_names() -> None:
    lists = SnapshotSpec.parse(f"42${ORDERS}${ITEMS}${OTHER}")
    for table, highest in (("sales.orders", 12), ("sales.items", 3), ("old.orders", 2), ("items", 3)):
        found = lists.write_ids_for(table)
        assert found is not None and found.high_watermark == highest
    with pytest.raises(RefusedError, match="several write-id lists"):
        lists.write_ids_for("orders")  # of which database?
    with pytest.raises(RefusedError, match=r"no write-id list is for the table sales\.none"):
        lists.write_ids_for("sales.none")
    lists.require_one_table(["sales.orders", "sales.items"], "/w/items")


@pytest.mark.parametrize("text", [ORDERS, f"42${ORDERS}"])
def test_one_list_serves_one_table(text: str) -> None:
    lists = SnapshotSpec.parse(text)
    lists.require_one_table(["sales.orders"], "/w/orders")
    with pytest.raises(RefusedError):
        lists.require_one_table(["sales.orders", "sales.items"], "/w/items")


def test_a_list_without_a_database_serves_no_two_tables_of_its_name() -> None:
    lists = SnapshotSpec.parse(f"orders:5:9:9:\n{ITEMS}")
    lists.require_one_table(["sales.orders", "sales.items"], "/w/items")
    with pytest.raises(RefusedError, match="it is not clear which table the write-id list for"):
        lists.require_one_table(["sales.orders", "old.orders"], "/w/old.db/orders")


@pytest.mark.parametrize(
    "text",
    [
        f"{ORDERS}\n{ITEMS}\n{TXNS}\n", f"# taken at noon\n\n  {ORDERS}  \r\n{TXNS}\n{ITEMS}",
        f"42${ORDERS}${ITEMS}\n{TXNS}", f"{TXNS}\n42${ORDERS}\n{ITEMS}\n", f"42${ORDERS}${ITEMS}${TXNS}",
        f"{ORDERS}${ITEMS}${TXNS}",
    ],
)  # fmt: skip
def test_lists_and_transactions_in_every_form_of_text(text: str) -> None:
    spec = SnapshotSpec.parse(text)
    found = {table: spec.write_ids_for(table) for table in ("sales.orders", "items")}
    assert {table: ids and ids.high_watermark for table, ids in found.items()} == {"sales.orders": 12, "items": 3}
    assert spec.txns == ValidTxns(9)


@pytest.mark.parametrize(
    "text",
    [
        "", "# nothing\n", "12:9:9:7\n", "12:9:9:7:", "12$", "12", f"{ORDERS}\n{ORDERS}\n", f"{TXNS}\n{TXNS}", "\x00",
        "a,b\n1,2\n", "txns=9", "sales.orders:12:9:9", f"12:9:9:7${ITEMS}", f"1$2${ORDERS}",
    ],
)  # fmt: skip
def test_malformed_lists_are_refused(text: str) -> None:
    with pytest.raises(WriteIdListError):
        SnapshotSpec.parse(text)


def test_arguments_of_python() -> None:
    ids = ValidWriteIds.parse(ORDERS)
    spec = SnapshotSpec.of(ids)
    assert spec.write_ids_for("orders") == ids and SnapshotSpec.of(spec) is spec
    with pytest.raises(RefusedError):
        spec.write_ids_for("items")
    of_any = ValidWriteIds(5)
    assert SnapshotSpec.of(of_any).write_ids_for("anything") == of_any
    assert not SnapshotSpec.of(None).has_write_ids
    with pytest.raises(UsageProblem):
        SnapshotSpec.of(5)  # type: ignore[arg-type]


def test_what_decides_and_what_is_assumed() -> None:
    assumption = Assumption(50)
    assert not SnapshotResolver().decides
    assert not SnapshotResolver(SnapshotSpec.parse(TXNS)).decides, "which write ids count is still not known"
    assert SnapshotResolver(SnapshotSpec.parse(ORDERS)).decides
    assert SnapshotResolver(SnapshotSpec(assumption=assumption)).decides
    entries = (Entry("delta_1_1/bucket_00000", 1, 5.0, False), Entry("base_1_v9/bucket_00000", 1, 95.0, False))
    look = DirectoryListing(Listing("t", entries), {}, {})

    def resolve(text: str = "", assumption: Assumption | None = assumption) -> ResolvedSnapshot:
        spec = SnapshotSpec.parse(text) if text else SnapshotSpec()
        resolver = SnapshotResolver(spec)
        return (resolver.assuming(assumption) if assumption else resolver).resolve(look, "t", 100.0)

    listed = resolve("db.t:5:9223372036854775807::")
    assert listed.write_ids is not None and listed.write_ids.high_watermark == 5, "the list counts, whatever is assumed"
    assert listed.txns is not None and not listed.txns.is_valid(9)
    assert listed.assumed is not None and not listed.assumed.of_write_ids
    given = resolve(f"db.t:5:9223372036854775807::\n{TXNS}")
    assert (given.txns, given.assumed) == (ValidTxns(9), None)
    assumed = resolve()
    assert assumed.write_ids is not None and assumed.write_ids.high_watermark == 0
    assert resolve(assumption=None).write_ids is None
