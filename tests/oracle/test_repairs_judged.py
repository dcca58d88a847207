"""Repaired files as Java ORC and Hive's own ACID reader see them."""

from __future__ import annotations

import random
import string
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import insert, write_by_pyorc
from support.judge.checks import answer, assert_same, hive_answer
from support.judge.hive import DELETE, INSERT, Event, Hive, StoredEvent
from support.judge.java_orc import JavaOrc
from support.judge.normal import ACIDCTL
from support.judge.txns import Txns
from support.repairing import CODECS, many_stripes, repair, rules, wide
from support.tables import read_rows

from acidctl.orc.tail import KEY_INDEX
from acidctl.repair.plan import RepairKind

pytestmark = pytest.mark.spark
SCHEMA = "struct<a:int,b:string>"


def valid(hive: Hive, file: Path) -> bool:
    """What Hive's FixAcidKeyIndex checks: one entry per stripe, and each is the key of the stripe's last row."""
    java = JavaOrc(hive, file)
    entries = [
        (key.getTransactionId(), key.getBucketId(), key.getRowId())
        for key in hive._reflect("OrcRecordUpdater", "parseKeyIndex").invoke(None, hive._objects(java.reader))
        if key is not None
    ]
    rows, keys, end = java.rows(), [], 0
    for count in java.facts().stripes:
        end += count
        row = rows[end - 1]
        keys.append((row["originalTransaction"], row["bucket"], row["rowId"]))
    return entries == keys and java.facts().user_metadata[KEY_INDEX].endswith(";")


@pytest.mark.sampled
@pytest.mark.parametrize("codec", CODECS)
def test_a_key_index_made_anew(codec: str, hive: Hive, tmp_path: Path) -> None:
    file = many_stripes(tmp_path / "delta_0000001_0000001_0000", wide(1, 600, bucket=0), codec=codec)
    before = JavaOrc(hive, file)
    rows, facts = before.images, before.facts()
    assert not valid(hive, file)
    assert repair(tmp_path, RepairKind.KEY_INDEX)
    after = JavaOrc(hive, file)
    assert valid(hive, file)
    assert after.images == rows
    for name in ("schema", "rows", "stripes", "compression", "row_index_stride"):
        assert getattr(after.facts(), name) == getattr(facts, name)
    assert {**after.facts().user_metadata, KEY_INDEX: ""} == {**facts.user_metadata, KEY_INDEX: ""}
    assert_same(answer(read_rows(tmp_path), SCHEMA, ACIDCTL), hive_answer(hive, tmp_path, SCHEMA, Txns(1)), codec)


def test_a_file_that_hive_took_for_one_without_ids(hive: Hive, tmp_path: Path) -> None:
    """Hive up to 3.1 knows an ACID file by its index; so its delete events did not apply."""
    file = write_by_pyorc(
        tmp_path / "delta_0000001_0000001_0000",
        [insert(1, row, bucket=0) for row in range(5)],
        metadata={KEY_INDEX: None},
    )
    hive.write_delta(tmp_path, SCHEMA, 2, [Event(DELETE, None, (1, 0, 3))])
    assert repair(tmp_path, RepairKind.KEY_INDEX)
    assert valid(hive, file)
    want = hive_answer(hive, tmp_path, SCHEMA, Txns(2))
    assert_same(answer(read_rows(tmp_path), SCHEMA, ACIDCTL), want, "repaired")
    assert len(read_rows(tmp_path)) == 4


def test_the_entry_that_hive_2_loses(hive: Hive, tmp_path: Path) -> None:
    """Its callback runs before the last stripe is there (section 3.4)."""
    letters = random.Random(5)
    events = [
        StoredEvent(0, 1, 0, row, 1, {"a": row, "b": "".join(letters.choices(string.ascii_letters, k=400))})
        for row in range(300)
    ]
    hive.write_events(tmp_path, SCHEMA, (1, 1), events, kind="base")
    (file,) = tmp_path.glob("base_*/bucket_00000")
    wanted = hive_answer(hive, tmp_path, SCHEMA, Txns(1))
    assert not valid(hive, file)
    assert repair(tmp_path, RepairKind.KEY_INDEX)
    assert valid(hive, file)
    assert not {rule for rule in rules(tmp_path) if rule.startswith("V30")}
    assert_same(hive_answer(hive, tmp_path, SCHEMA, Txns(1)), wanted, "Hive after the repair")


def test_the_file_of_a_dead_streaming_writer(hive: Hive, tmp_path: Path) -> None:
    some: list[Any] = [
        (txn, [Event(INSERT, {"a": txn * 10 + i, "b": "x" * 50}) for i in range(5)]) for txn in (1, 2, 3)
    ]
    hive.write_streaming(tmp_path, SCHEMA, 1, 3, some[:2], leave_open=True, unflushed=some[2])
    (file,) = tmp_path.glob("delta_*/bucket_00000")
    with file.open("ab") as out:
        out.write(b"what reached the disk of a transaction that never ended")
    wanted = answer(read_rows(tmp_path), SCHEMA, ACIDCTL)  # Hive 2.3 plans no split beside a side file
    assert repair(tmp_path, RepairKind.FLUSH_LENGTH)
    assert not file.with_name("bucket_00000_flush_length").exists()
    assert len(JavaOrc(hive, file).rows()) == 10
    assert_same(hive_answer(hive, tmp_path, SCHEMA, Txns(3)), wanted, "Hive after the repair")
    assert_same(answer(read_rows(tmp_path), SCHEMA, ACIDCTL), wanted, "acidctl after the repair")
    hive._left_open.clear()
