"""Compacting tables that real Hive wrote, against what Hive's own compactor made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.compacting import copy_table, run_compaction
from support.engines.written_by_hive import HIVE23, hive23_cases
from support.judge.normal import ACIDCTL, EXPECTED, normalise_row
from support.judge.txns import Txns
from support.tables import read_rows, snapshot_of

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.writeids import ValidWriteIds
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.proof.checksum import Verify
from acidctl.rows.read.events import open_event_files

WRITINGS = {
    "copied": Writing(reader="hive2"), "encoded": Writing({"compression": "zstd"}, verify=Verify.FULL, reader="hive2"),
}  # fmt: skip


@pytest.mark.sampled(7)
@pytest.mark.parametrize("writing", WRITINGS.values(), ids=WRITINGS)
@pytest.mark.parametrize("kind", list(CompactionKind))
@pytest.mark.parametrize(("name", "number", "text"), hive23_cases())
def test_compacted_tables_of_hive_2_are_what_hive_made_of_them(
    name: str, number: int, text: str, kind: CompactionKind, writing: Writing, tmp_path: Path
) -> None:
    folder = HIVE23 / name
    table = copy_table(folder / "table", tmp_path / "t")
    schema = json.loads((folder / "scenario.json").read_text())["schema"]
    write_ids = ValidWriteIds.parse(Txns.of_scenario(text).write_ids())
    before = read_rows(table, write_ids)
    listed = {path.relative_to(table): path.read_bytes() for path in table.rglob("*") if path.is_file()}

    outcome = run_compaction(table, kind, write_ids, writing=writing)

    assert all((table / path).read_bytes() == content for path, content in listed.items())
    assert not list(table.glob("_tmp_*"))
    assert read_rows(table, write_ids) == before
    if outcome is None:
        return
    made = json.loads((folder / "expected" / f"{number}.{kind.value}.json").read_text())
    # Hive 2.3 numbers by the aborted directories too, which Hive 3 leaves to the cleaner; and a minor compaction of
    # its makes a delete delta even where there are no deletes (section 8.2, HIVE-26510).
    if kind is CompactionKind.MAJOR and "invalid" not in text:
        assert list(outcome.published) == made["created"]
    path = folder / "expected" / f"{number}.{kind.value}.rows.jsonl"
    expected = [json.loads(line) for line in path.read_text().splitlines()]
    wanted = sorted((tuple(row["id"]), normalise_row(row["row"], schema, EXPECTED)) for row in expected)
    found = [(key, normalise_row(row, schema, ACIDCTL)) for key, row in read_rows(table, write_ids)]
    assert found == wanted


@pytest.mark.parametrize("kind", list(CompactionKind))
@pytest.mark.parametrize("name", ["nation-25k", "originals-with-copies", "streaming-two-txns"])
def test_compacted_tables_of_hive_3_keep_their_rows(
    name: str, kind: CompactionKind, shared_data: Path, tmp_path: Path
) -> None:
    table = copy_table(shared_data / "hive-written" / name / "table", tmp_path / "t")
    before = read_rows(table)
    outcome = run_compaction(table, kind)
    assert read_rows(table) == before
    if name == "nation-25k":
        assert outcome
        assert outcome.rows == (23_000 if kind is CompactionKind.MAJOR else 27_000)


@pytest.mark.parametrize("kind", list(CompactionKind))
def test_every_output_file_is_sorted_indexed_and_typed_as_its_input(kind: CompactionKind, tmp_path: Path) -> None:
    table = copy_table(HIVE23 / "alltypes_random" / "table", tmp_path / "t")
    types = {file.row_type for file in open_event_files(snapshot_of(table), snapshot_of(table).files())}
    outcome = run_compaction(table, kind)
    assert outcome
    after = snapshot_of(table)
    names = {verdict.name for verdict in (after.state.base, *after.state.deltas) if verdict}
    assert names == set(outcome.published)
    for file in open_event_files(after, after.files()):
        assert {repr(file.row_type)} == {repr(row) for row in types}
        assert file.tail.acid_version == 2
        assert len(file.tail.key_index() or []) == len(file.tail.stripes)
        stats = file.tail.acid_stats()
        assert stats
        assert sum(stats) == file.rows
    assert all((table / name / "_orc_acid_version").read_bytes() == b"2" for name in outcome.published)
    assert (table / outcome.published[0] / "_metadata_acid").exists() is (kind is CompactionKind.MAJOR)
