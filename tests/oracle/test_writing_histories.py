"""Tables that Hive and acidctl write in turn: after each round both read the rows of a model in plain Python.

Many more of them, three tables each, of about half a minute:

    export ACIDCTL_WRITING_HISTORIES=334 ACIDCTL_WRITING_SEED=1000
    python -m pytest -m server tests/oracle/test_writing_histories.py
"""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from support.histories.history import WritingHistory
from support.servers.hive_server import HiveServer

from acidctl.metastore import interface
from acidctl.metastore.client import Metastore
from acidctl.metastore.lossless import RawStruct
from acidctl.metastore.settings import find_settings
from acidctl.metastore.tables import get_table
from acidctl.writing.change import Change
from acidctl.writing.insert import Insert
from acidctl.writing.merge import Merge
from acidctl.writing.transaction import raw_table

COUNT = int(os.environ.get("ACIDCTL_WRITING_HISTORIES", "1"))
FIRST = int(os.environ.get("ACIDCTL_WRITING_SEED", "1"))

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.in_turn("real_hive")]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_rows_that_both_wrote_are_read_alike(real_hive: HiveServer, seed: int) -> None:
    WritingHistory(real_hive, seed).live(4)


@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
def test_the_metastore_keeps_all_it_holds_of_a_table(real_hive: HiveServer, partitioned: bool) -> None:
    name = f"kept_{partitioned}".lower()
    by, part = (" partitioned by (p int comment 'of ü')", " partition (p=1)") if partitioned else ("", "")
    for setting in ("hive.stats.autogather", "hive.stats.column.autogather"):
        real_hive.set(setting, "true")
    real_hive.sql(
        f"create table {name} (id int comment 'the key', name string comment 'é; = \\t') comment 'of €'{by}"
        " stored as orc tblproperties('transactional'='true', 'orc.compress'='SNAPPY', 'a b'='=ü;', 'empty'='')",
        f"alter table {name} set serdeproperties ('x.y'='z ü')",
        f"alter table {name} set owner user alice",
        f"grant select on table {name} to user bob",
        f"insert into {name}{part} values (1, 'a'), (2, 'b')",
    )
    settings = find_settings({"uris": real_hive.metastore})
    assert settings
    metastore = Metastore(settings)
    table = get_table(metastore, "default", name)
    before, granted = kept(metastore, name, partitioned), real_hive.sql(f"show grant user root on table {name}")
    assert granted
    key = {"p": [1]} if partitioned else {}
    for statement in (
        Insert(metastore, table, pa.table({"id": [3], "name": ["c"], **key}).to_reader()),
        Change(metastore, table, "id = 1", "name = 'x'"),
        Change(metastore, table, "id = 2"),
        Merge(metastore, table, pa.table({"id": [3], "name": ["d"], **key}), ["id"]),
    ):
        statement.run()
        assert kept(metastore, name, partitioned) == before
        assert real_hive.sql(f"show grant user root on table {name}") == granted
    assert real_hive.sql(f"select count(*), min(id), max(id), count(name) from {name}") == [["2", "1", "3", "2"]]
    metastore.close()


def kept(metastore: Metastore, name: str, partitioned: bool) -> list[object]:
    """All fields of a table and of its partition but those that a writer has to change."""
    structs = [(raw_table(metastore, get_table(metastore, "default", name)), interface.TABLE_PARAMETERS)]
    changing = {interface.TABLE_WRITE_ID, interface.PARTITION_WRITE_ID}
    if partitioned:
        (found,) = metastore.call(interface.GET_RAW_PARTITIONS, "default", name, ("p=1",))
        structs.append((found, interface.PARTITION_PARAMETERS))
    fields: list[object] = []
    for struct, parameters in structs:
        texts = struct.texts(parameters)
        for name_of_count in ("COLUMN_STATS_ACCURATE", "numRows", "rawDataSize", "numFiles", "totalSize"):
            texts.pop(name_of_count, None)
        rest = {number: value for number, value in struct.fields.items() if number not in (parameters, *changing)}
        fields += [texts, plain(RawStruct(rest))]
    return fields


def plain(value: object) -> object:
    """A struct as a value that can be compared."""
    if isinstance(value, RawStruct):
        return {number: plain(tuple(found)) for number, found in value.fields.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
