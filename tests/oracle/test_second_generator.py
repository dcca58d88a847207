"""acidctl's reader over the second generator's tables: rows, ROW__IDs, counts, what is deleted; Hive judges too."""

from __future__ import annotations

import os
import random
import shutil
import traceback
from pathlib import Path
from typing import Any

import pytest
from support.judge.hive import INSERT, Event, Hive, RowKey, row_key
from support.judge.hivetypes import HiveType, parse_type
from support.judge.normal import ACIDCTL, normalise
from support.judge.second_generator import Made, described, make_table
from support.judge.txns import Txns
from support.tables import json_rows, snapshot_of

from acidctl.acid.writeids import ValidWriteIds
from acidctl.base.errors import HistoryError
from acidctl.rows.scan.scan import Scan

Rows = list[tuple[RowKey, list[Any]]]


def plain(rows: Any, node: HiveType, form: str = "plain") -> Rows:
    """Rows as lists of normal values in the order of ROW__IDs: names are of no account, columns go by position."""
    return sorted(
        ((RowKey(*key), _values(list(row.values()), node, form)) for key, row in rows), key=lambda item: item[0]
    )


def _values(values: list[Any], node: HiveType, form: str) -> list[Any]:
    values = values + [None] * (len(node.children) - len(values))
    return [normalise(value, child, form) for value, child in zip(values, node.children, strict=True)]


def read(scan: Scan, node: HiveType) -> Rows:
    rows = []
    for row in json_rows(scan):
        key = row.pop("ROW__ID")
        rows.append(((key["writeid"], key["bucketid"], key["rowid"]), row))
    return plain(rows, node, ACIDCTL)


def differences(got: Rows, want: Rows) -> str:
    if got == want:
        return ""
    have, need = dict(got), dict(want)
    lines = [f"{len(got)} rows, expected {len(want)}"]
    lines += [f"missing {key}" for key in need if key not in have][:3]
    lines += [f"extra {key}" for key in have if key not in need][:3]
    lines += [f"differs {k}: {r} != {need[k]}" for k, r in got if k in need and r != need[k]][:3]
    return "\n".join(lines)


def check(made: Made, txns: Txns, hive: Hive | None) -> None:
    node = parse_type(made.schema)
    snapshot = snapshot_of(made.table, ValidWriteIds.parse(txns.write_ids()))
    try:
        want = plain(made.rows(txns, labels=True), node)
    except LookupError:
        with pytest.raises(HistoryError):
            Scan(snapshot)
        return
    scan = Scan(snapshot, row_id=True)
    assert not differences(read(scan, node), want), differences(read(scan, node), want)
    assert Scan(snapshot).count() == len(want)
    dead = Scan(snapshot, ["ROW__ID"], deleted=True)
    if made.version == 2:
        keys = {tuple(row["ROW__ID"].values()) for row in json_rows(dead)}
        assert keys == {tuple(key) for key in made.removed(txns)}
    for batch in scan.batches():
        batch.validate(full=True)
    if hive is not None and not made.unjudged:
        judged = sorted(hive.rows(made.table, made.schema, txns, version=made.version), key=lambda r: row_key(r[0]))
        stored = plain(made.rows(txns, labels=False), node)
        assert not differences(plain(judged, node), stored), "Hive: " + differences(plain(judged, node), stored)


def run(seed: int, folder: Path, hive: Hive | None) -> None:
    made = make_table(seed, folder / str(seed), hive)
    for txns in made.snapshots(random.Random(seed), 4):
        try:
            check(made, txns, hive)
        except Exception as error:
            raise AssertionError(f"seed {seed}, {txns}\n{described(made)}\n{error}") from error


def run_all(seeds: range, folder: Path, hive: Hive | None) -> None:
    failures = []
    for seed in seeds:
        try:
            run(seed, folder, hive)
        except Exception:  # noqa: BLE001  (all that fail are wanted)
            failures.append(traceback.format_exc())
            print(failures[-1], flush=True)
        if hive is not None:
            hive.close_left_open()
        if not os.environ.get("ACIDCTL_KEEP"):
            shutil.rmtree(folder / str(seed), ignore_errors=True)
    assert not failures, f"{len(failures)} of {len(seeds)} tables failed:\n" + "\n".join(failures[:5])


@pytest.mark.slow
@pytest.mark.spark
def test_tables_of_the_second_generator_are_read_as_hive_does(hive: Hive, tmp_path: Path) -> None:
    run_all(range(int(os.environ.get("ACIDCTL_TABLES", "10"))), tmp_path, hive)


@pytest.mark.slow
def test_tables_of_the_second_generator_are_read_as_it_says(tmp_path: Path) -> None:
    run_all(range(1000, 1006), tmp_path, None)


SHORTER = (
    ("varchar(20)", "varchar(5)", ["abcdefgh", "éééééééé", "ab", "abcde   "]),
    ("char(10)", "char(4)", ["abcdefgh", "ab  ef", "ab"]),
    ("string", "varchar(3)", ["abcdefgh", "a", "ab  "]),
    ("string", "char(3)", ["abcdefgh", "a", "a   bcd"]),
    ("char(6)", "varchar(4)", ["abcdef", "a"]),
    ("varchar(6)", "char(4)", ["abcdef", "a "]),
    ("char(6)", "string", ["abcdef", "a"]),
    ("char(3)", "char(6)", ["abc", "a"]),
    ("int", "varchar(3)", [12345, 7]),
    ("array<varchar(9)>", "array<varchar(2)>", [["abc", "d", None], None]),
    ("struct<x:char(5),y:int>", "struct<x:varchar(2),y:int>", [{"x": "abc", "y": 1}, {"x": "d", "y": 2}, None]),
    ("map<string,varchar(9)>", "map<string,varchar(2)>", [[("k", "abc")], None]),
)


@pytest.mark.spark
def test_shortened_text_is_read_as_hive_does(hive: Hive, tmp_path: Path) -> None:
    """CHAR and VARCHAR as the table's newer type holds them."""
    for number, (old, new, values) in enumerate(SHORTER):
        table, node = tmp_path / str(number), parse_type(f"struct<a:{new}>")
        hive.write_delta(table, f"struct<a:{old}>", 1, [Event(INSERT, {"a": one}) for one in values])
        hive.write_delta(table, str(node), 2, [Event(INSERT, {"a": None})])
        judged = plain(hive.rows(table, str(node), Txns(2)), node)
        found = read(Scan(snapshot_of(table), row_id=True), node)
        assert not differences(found, judged), f"{old} to {new}: {differences(found, judged)}"
