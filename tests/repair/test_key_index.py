"""The key index made anew: every stripe as it was, every entry what the rows say, everything else in its place."""

from __future__ import annotations

from pathlib import Path

import pyorc
import pytest
from support.files.acid_files import delete, insert, write_by_pyorc, write_plain
from support.repairing import CODECS, FS, many_stripes, planned, repair, rows, rules, stripes_of, tail_of, wide
from support.tables import without_log

from acidctl.base.errors import VerifyError
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.tail import KEY_INDEX
from acidctl.repair import key_index
from acidctl.repair.backup import undo_last
from acidctl.repair.plan import RepairKind

DELTA = "delta_0000001_0000001_0000"


def last_keys_of(path: Path) -> list[tuple[int, int, int]]:
    """By another library than acidctl's reader."""
    with path.open("rb") as file:
        reader = pyorc.Reader(file)
        return [list(stripe)[-1][1:4] for stripe in reader.iter_stripes()]


def shape(path: Path) -> tuple[object, ...]:
    """All that a tail says but the index."""
    tail = tail_of(path)
    footer = pb.Footer()
    footer.CopyFrom(tail.footer)
    items = [(item.name, item.value) for item in footer.metadata if item.name != KEY_INDEX]
    del footer.metadata[:]
    return footer.SerializeToString(deterministic=True), items, tail.metadata, tail.compression, tail.block_size


@pytest.mark.parametrize("codec", CODECS)
def test_missing_entries_are_added_and_stripes_stay(codec: str, tmp_path: Path) -> None:
    file = many_stripes(tmp_path / "t" / DELTA, wide(1, 600), codec=codec)
    before, stripes, was = rows(tmp_path / "t"), stripes_of(file), shape(file)
    assert len(stripes) > 1
    assert "V30" in rules(tmp_path / "t")
    run = repair(tmp_path / "t", RepairKind.KEY_INDEX)
    assert run and run.paths == (f"{DELTA}/bucket_00000",)
    assert rules(tmp_path / "t") == set()
    assert (stripes_of(file), shape(file), rows(tmp_path / "t")) == (stripes, was, before)
    assert tail_of(file).key_index() == last_keys_of(file)
    with file.open("rb") as opened:
        assert len(pyorc.Reader(opened).read()) == 600
    assert repair(tmp_path / "t", RepairKind.KEY_INDEX) is None


LAST = "1,536870912,599;"
BROKEN = {
    "missing": None,
    "empty": "",
    "no-semicolon": "WRONG1,536870912,599",
    "wrong-key": "ok-but-last",
    "unknown": "unknown",
    "not-numbers": "a,b,c;",
    "too-many": "ok" + LAST,
    "huge": "9" * 19 + ",1,1;",
}


@pytest.mark.parametrize("case", sorted(BROKEN))
def test_every_kind_of_damage_is_repaired(case: str, tmp_path: Path) -> None:
    file = many_stripes(tmp_path / "t" / DELTA, wide(1, 600))
    right = [f"{w},{b},{r};" for w, b, r in last_keys_of(file)]
    index = BROKEN[case]
    if case == "no-semicolon":
        index = "".join(right)[:-1]
    elif case == "wrong-key":
        index = "".join([*right[:-1], "1,536870912,7;"])
    elif case == "unknown":
        index = "".join([";", *right[1:]])
    elif case == "too-many":
        index = "".join([*right, LAST])
    many_stripes(tmp_path / "t" / DELTA, wide(1, 600), metadata={KEY_INDEX: index})
    assert repair(tmp_path / "t", RepairKind.KEY_INDEX)
    assert tail_of(file).user_metadata[KEY_INDEX] == "".join(right).encode()
    assert rules(tmp_path / "t") == set()


def test_what_is_right_stays(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_by_pyorc(table / DELTA, [insert(1, 0)])
    write_by_pyorc(table / "delete_delta_0000002_0000002_0000", [delete(1, 0, 2)])
    write_by_pyorc(table / "delta_0000003_0000003_0000", [])
    write_by_pyorc(table / "delta_0000004_0000004_0000", [], metadata={KEY_INDEX: None})
    plan = planned(table, RepairKind.KEY_INDEX)
    assert (plan.fixes, plan.refused) == ((), ())


def test_no_rows_but_an_index(tmp_path: Path) -> None:
    file = write_by_pyorc(tmp_path / "t" / DELTA, [], metadata={KEY_INDEX: LAST})
    assert repair(tmp_path / "t", RepairKind.KEY_INDEX)
    assert tail_of(file).user_metadata[KEY_INDEX] == b""
    assert tail_of(file).rows == 0


def test_delete_deltas_and_version_1(tmp_path: Path) -> None:
    table = tmp_path / "t"
    write_by_pyorc(table / DELTA, [insert(1, row) for row in range(3)])
    deletes = write_by_pyorc(
        table / "delete_delta_0000002_0000002_0000", [delete(1, 0, 2), delete(1, 2, 2)], metadata={KEY_INDEX: None}
    )
    old = tmp_path / "old"
    metadata = {KEY_INDEX: "", "hive.acid.version": None}
    plain = write_by_pyorc(old / "delta_0000001_0000001", [insert(1, 4, bucket=0)], marker=None, metadata=metadata)
    for path in (table, old):
        assert repair(path, RepairKind.KEY_INDEX)
    assert tail_of(deletes).key_index() == [(1, 536870912, 2)]
    assert tail_of(plain).key_index() == [(1, 0, 4)]


def test_what_cannot_be_repaired_says_so(tmp_path: Path) -> None:
    table = tmp_path / "t"
    broken = {KEY_INDEX: None}
    write_by_pyorc(table / DELTA, [insert(1, 0)], metadata=broken)
    (table / DELTA / "bucket_00001").write_bytes(b"ORC")
    (table / DELTA / "bucket_00002").write_bytes(b"no ORC at all, but long enough to have a tail")
    write_by_pyorc(table / DELTA, [(0, 1, None, 0, 1, (1, "x"))], "bucket_00003", metadata={KEY_INDEX: None})
    stream = write_by_pyorc(table / "delta_0000002_0000009", [insert(2, 0)], metadata=broken)
    stream.with_name("bucket_00000_flush_length").write_bytes(bytes(8) + stream.stat().st_size.to_bytes(8, "big"))
    write_plain(table / "delta_0000010_0000010_0000" / "000000_0", (1, 2))
    plan = planned(table, RepairKind.KEY_INDEX)
    assert [fix.path for fix in plan.fixes] == [f"{DELTA}/bucket_00000"]
    why = {refused.path: refused.why for refused in plan.refused}
    assert set(why) == {f"{DELTA}/bucket_0000{i}" for i in (1, 2, 3)} | {"delta_0000002_0000009/bucket_00000"}
    assert "side file" in why["delta_0000002_0000009/bucket_00000"]
    assert "NULL" in why[f"{DELTA}/bucket_00003"]


def test_dead_space_and_unknown_fields_stay(tmp_path: Path) -> None:
    """Everything before the footer is copied, whatever it is; so are fields of the footer that nobody here knows."""
    file = write_by_pyorc(tmp_path / "t" / DELTA, [insert(1, row) for row in range(3)], metadata={KEY_INDEX: None})
    tail, content = tail_of(file), file.read_bytes()
    footer = tail.footer.SerializeToString() + bytes((0xFA, 0x3E, 3)) + b"xyz"  # field 1007
    from acidctl.orc.codecs import encode_section

    section = encode_section(footer, tail.compression, tail.block_size)
    postscript = pb.PostScript()
    postscript.CopyFrom(tail.postscript)
    postscript.footerLength = len(section)
    raw = postscript.SerializeToString()
    start = tail.metadata_start + tail.postscript.metadataLength
    file.write_bytes(content[:start] + section + raw + bytes((len(raw),)))
    repair(tmp_path / "t", RepairKind.KEY_INDEX)
    assert file.read_bytes()[:start] == content[:start]
    assert tail_of(file).footer.SerializeToString().count(bytes((0xFA, 0x3E, 3)) + b"xyz") == 1
    assert tail_of(file).key_index() == [(1, 536870912, 2)]


def test_undone_it_is_as_it_was(tmp_path: Path) -> None:
    table = tmp_path / "t"
    file = write_by_pyorc(table / DELTA, [insert(1, 0)], metadata={KEY_INDEX: None})
    before = file.read_bytes()
    repair(table, RepairKind.KEY_INDEX)
    assert file.read_bytes() != before
    undo_last(FS, str(table))
    assert file.read_bytes() == before
    assert without_log(path.name for path in table.iterdir()) == {DELTA}


def test_a_copy_that_differs_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "t"
    file = write_by_pyorc(table / DELTA, [insert(1, row) for row in range(3)], metadata={KEY_INDEX: None})
    before = file.read_bytes()
    real = key_index.with_index
    monkeypatch.setattr(key_index, "with_index", lambda tail, index: real(tail, b"1,1,1;"))
    with pytest.raises(VerifyError):
        repair(table, RepairKind.KEY_INDEX)
    assert file.read_bytes() == before
    assert not (table / ".acidctl-backup").exists()
