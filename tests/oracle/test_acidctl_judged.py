"""acidctl judged by Hive: random histories read and compacted, compared with Hive's reader and the model."""

from __future__ import annotations

import itertools
import shutil
import traceback
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from support.compacting import copy_table, run_compaction
from support.judge.checks import Answer, answer, assert_hive_reads, assert_same, hive_accepts
from support.judge.generate import random_history
from support.judge.hive import Hive, row_key
from support.judge.java_orc import java_orc_complaints
from support.judge.model import model_rows
from support.judge.normal import ACIDCTL
from support.judge.play import Played, play
from support.judge.txns import Txns
from support.tables import ids_in, read_rows

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.compaction_kind import Hive as ReadBy
from acidctl.acid.writeids import ValidWriteIds
from acidctl.compaction.merge import written
from acidctl.compaction.output_settings import Writing
from acidctl.orc.write import rle_columns

Event = tuple[int, int, int, int, int]


def events_of(table: Path, names: Iterable[str]) -> dict[str, list[Event]]:
    """The events of each file, in order, by kind of directory and name.

    A file without events does not count, nor do events of a row that the same write id deleted or updated afterwards:
    Hive 2.3's minor compaction keeps them, Hive 3's does not (format section 8.2).
    """
    found = {
        f"{name.split('_')[0]}/{file.name}": ids_in(file) for name in names for file in (table / name).glob("bucket_*")
    }
    latest: dict[tuple[int, ...], int] = {}
    for operation, *key in itertools.chain(*found.values()):
        latest[tuple(key)] = max(operation, latest.get(tuple(key), operation))
    kept = {name: [e for e in events if e[0] == latest[e[1:]]] for name, events in found.items()}
    return {name: events for name, events in kept.items() if events}


def comparable(events: Iterable[Event]) -> list[Event]:
    """Over both codecs of buckets."""
    return [(operation, *row_key(key), current) for operation, *key, current in events]  # type: ignore[misc]


def lists_of(txns: Txns) -> ValidWriteIds:
    return ValidWriteIds.parse(txns.write_ids())


def acidctl_answer(table: Path, schema: str, txns: Txns) -> Answer:
    return answer(read_rows(table, lists_of(txns)), schema, ACIDCTL)


def check_compaction(
    hive: Hive, played: Played, kind: CompactionKind, copy: Path, about: str, writing: Writing
) -> None:
    """A copy compacted by acidctl reads the same, to acidctl and to Hive, and Java ORC takes every file."""
    history, txns = played.plan.history, played.plan.txns
    shutil.copytree(played.table, copy)
    want = answer(model_rows(played.plan.changes, txns, history.version), history.schema)
    outcome = run_compaction(copy, kind, lists_of(txns), replace(writing, reader=ReadBy.HIVE2))
    assert_same(acidctl_answer(copy, history.schema, txns), want, about)
    if outcome is None:
        return
    files = [file for name in outcome.published for file in (copy / name).glob("bucket_*")]
    if history.hive_can_judge:
        assert hive_accepts(hive, copy, history.schema, txns, version=history.version, files=files) == [], about
        assert_hive_reads(hive, copy, history.schema, want, txns, version=history.version, buckets=history.buckets)
        same = shutil.copytree(played.table, copy.with_name(f"{copy.name}-hive"))
        made = hive.compact(same, history.schema, kind.value, txns, version=history.version, buckets=history.buckets)
        if made:
            mine, theirs = events_of(copy, outcome.published), events_of(same, made)
            if not list(played.table.glob("*_*/bucket_*")):  # nothing there tells how its version writes buckets
                mine, theirs = ({name: comparable(events) for name, events in one.items()} for one in (mine, theirs))
            assert mine == theirs, about
    else:
        assert hive_accepts(hive, copy, files=files, txns=txns, version=history.version) == [], about


@pytest.mark.spark
def test_random_histories_are_read_and_compacted_as_hive_does(
    hive: Hive, history_seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = []
    for seed in history_seeds:
        # The stripes of histories are tiny: in every second one they are copied all the same, clean or not at all.
        monkeypatch.setattr(written, "SMALL_STRIPE", 0 if seed % 2 else 1 << 20)
        # So few rows make short runs of ids: in every third one they are written as runs all the same.
        monkeypatch.setattr(rle_columns, "_ROWS_A_RUN", 64 if seed % 3 else 1)
        try:
            judge(hive, seed, tmp_path)
        except Exception:  # noqa: BLE001  (of thousands of histories, all that fail are wanted)
            failures.append(f"seed {seed}: {traceback.format_exc()}")
            print(failures[-1], flush=True)
        hive.close_left_open()
        for folder in tmp_path.iterdir():
            shutil.rmtree(folder)
    assert not failures, f"{len(failures)} of {len(history_seeds)} histories failed:\n" + "\n".join(failures[:5])


def judge(hive: Hive, seed: int, folder: Path) -> None:
    """Play one history; read it under up to six transaction lists; compact it both ways."""
    history = random_history(seed)
    played = play(history, hive, folder / str(seed))
    for txns in played.snapshots()[:6]:
        want = answer(model_rows(played.plan.changes, txns, history.version), history.schema)
        assert_same(acidctl_answer(played.table, history.schema, txns), want, f"seed {seed}, {txns}: {history}")
    # Of every four, one in as many segments as the keys allow.
    writing = Writing(task_bytes=1 if seed % 4 == 3 else 1 << 30)
    for kind in CompactionKind:
        about = f"seed {seed}, {kind.value}: {history}"
        check_compaction(hive, played, kind, folder / f"{seed}-{kind.value}", about, writing)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("kind", list(CompactionKind))
def test_java_reads_copied_stripes(
    hive: Hive, kind: CompactionKind, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five stripes of Java's, two of them dirty in a major compaction: whole, by seeks, and with a predicate."""
    monkeypatch.setattr(written, "SMALL_STRIPE", 0)
    table = copy_table(shared_data / "hive-written" / "nation-25k" / "table", tmp_path / "t")
    before = read_rows(table)
    outcome = run_compaction(table, kind)
    assert outcome
    assert read_rows(table) == before
    copied, _ = outcome.stripes
    assert copied >= 3
    files = [file for name in outcome.published for file in (table / name).glob("bucket_*")]
    assert java_orc_complaints(hive, files) == []
