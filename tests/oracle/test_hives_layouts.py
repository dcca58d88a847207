"""What is recorded of odd layouts is what Hive 3.1.3 and 4.0.1 read of them: few queries, each of many partitions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from support.made.layouts import FORMATS, LayoutCase, layout_cases
from support.servers.hive_server import HiveError, HiveServer

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]

_STORED = {"orc": "orc", "parquet": "parquet", "text": "textfile"}
_WRITE_IDS = 5


@pytest.mark.parametrize("table", sorted({case.table for case in layout_cases()}))
def test_what_is_recorded_of_layouts_is_what_hive_reads(real_hive: HiveServer, table: str) -> None:
    cases = [case for case in layout_cases() if case.table == table]
    properties = "'transactional'='true'" + ("" if table == "acid" else ", 'transactional_properties'='insert_only'")
    real_hive.sql(
        f"create table {table} (a int) partitioned by (c string) stored as {_STORED[FORMATS[table]]}"
        f" tblproperties({properties})"
    )
    for _ in range(_WRITE_IDS):
        transaction = real_hive.open_transaction()
        real_hive.allocate_write_id(transaction, table)
        real_hive.end_transaction(transaction, commit=True)
    real_hive.sql(f"alter table {table} add " + " ".join(f"partition (c='{i}')" for i in range(len(cases))))
    for i, case in enumerate(cases):
        case.build(real_hive.warehouse / table / f"c={i}")
    wanted = {i: _recorded(case, real_hive) for i, case in enumerate(cases)}
    fails = [i for i, rows in wanted.items() if rows == "error"]
    found = dict(_read(real_hive, table, [i for i in wanted if i not in fails]))
    for i in fails:
        found |= dict(_read(real_hive, table, [i]))
    differing = {cases[i].name: (found[i], rows) for i, rows in wanted.items() if found[i] != rows}
    assert not differing


def _recorded(case: LayoutCase, hive: HiveServer) -> str:
    return case.hive3 if hive.version == 3 else case.hive4


def _read(hive: HiveServer, table: str, ids: list[int]) -> Iterator[tuple[int, str]]:
    """The rows of some partitions; those on which Hive fails are found by halves, or by the path that it names."""
    if not ids:
        return
    try:
        rows = hive.sql(f"select c, a from {table} where c in ({', '.join(repr(str(i)) for i in ids)})")
    except HiveError as error:
        if len(ids) == 1:
            yield ids[0], "error"
            return
        named = {int(found) for found in re.findall(r"/c=(\d+)", str(error))} & set(ids)
        first = [min(named)] if len(named) == 1 else ids[: len(ids) // 2]
        yield from _read(hive, table, first)
        yield from _read(hive, table, [i for i in ids if i not in first])
        return
    for i in ids:
        yield i, " ".join(sorted(a for c, a in rows if c == str(i)))
