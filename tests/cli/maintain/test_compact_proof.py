"""What a compaction says of its proof, checks before it, and refuses already in its dry run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.files.acid_files import ids, write_deletes, write_delta

from acidctl.orc.byte_source import ByteSource
from acidctl.orc.tail import read_tail
from acidctl.storage.registry import open_location

Acidctl = Callable[..., Any]
COMPACT = ("compact", "--assume-committed=0s", "--engine", "local")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three rows, of which one is deleted."""
    table = tmp_path / "t"
    table.mkdir()
    write_delta(table, 1, ids(1, 2))
    write_delta(table, 2, ids(3))
    write_deletes(table, 3, 1, [0])
    return table


@pytest.mark.parametrize(("level", "told"), [("keys", "ids"), ("bytes", "bytes"), ("full", "values"), (None, "bytes")])
def test_the_level_is_told(acidctl: Acidctl, table: Path, level: str | None, told: str) -> None:
    option = ("--verify", level) if level else ()
    done = acidctl(*COMPACT, "--major", *option, table)
    assert done.status == 0, done.err
    assert f"{told} verified" in done.out


def test_json_tells_how_much_was_proven(acidctl: Acidctl, table: Path) -> None:
    planned = acidctl(*COMPACT, "--major", "--dry-run", "-o", "json", table).one()
    done = acidctl(*COMPACT, "--major", "--verify", "full", "-o", "json", table).one()
    assert done["verified"] == "full"
    size = sum(path.stat().st_size for path in table.glob("delta*/bucket*"))
    deletes = sum(path.stat().st_size for path in table.glob("delete*/bucket*"))
    for one in (planned, done):
        assert (one["inputRows"], one["deleteEvents"], one["inputBytes"]) == (3, 1, size + deletes)
    assert (done["rows"], done["rowsDropped"]) == (2, 1)


def test_the_budget_counts_delete_deltas(acidctl: Acidctl, table: Path) -> None:
    size = sum(path.stat().st_size for path in table.glob("delta*/bucket*"))
    assert "more than is left" in acidctl(*COMPACT, "--major", "--max-bytes", str(size), table).out


@pytest.mark.parametrize(
    "line",
    [
        ("--major", "--property", "orc.bloom.filter.columns=nope"),
        ("--major", "--property", "orc.bloom.filter.columns=id,id.x"),
        ("--minor",),
    ],
    ids=lambda line: " ".join(line[:2]),
)
def test_a_dry_run_refuses_what_the_run_refuses(acidctl: Acidctl, table: Path, line: tuple[str, ...]) -> None:
    dry = acidctl(*COMPACT, *line, "--dry-run", table)
    real = acidctl(*COMPACT, *line, table)
    assert dry.status == real.status
    assert dry.status in (2, 7), dry.err
    assert real.err.replace("\n", "") == dry.err.replace("\n", "")
    assert {path.name for path in table.glob("[bd]*")} == {
        "delta_0000001_0000001_0000", "delta_0000002_0000002_0000", "delete_delta_0000003_0000003_0000",
    }  # fmt: skip


class TestCheckInputs:
    """Damage that was there before."""

    def test_sound_inputs_pass_the_check(self, acidctl: Acidctl, table: Path) -> None:
        done = acidctl(*COMPACT, "--major", "--verify", "inputs", table)
        assert done.status == 0, done.err

    @pytest.mark.parametrize("dry", [(), ("--dry-run",)])
    def test_row_that_is_there_twice_is_refused(self, acidctl: Acidctl, table: Path, dry: tuple[str, ...]) -> None:
        write_delta(table / "x", 1, ids(1, 2))
        twin = table / "x" / "delta_0000001_0000001_0000"
        twin.rename(table / "delta_0000001_0000001_0001")
        (table / "x").rmdir()
        other = table.parent / "u"
        other.mkdir()
        for write_id in (1, 2):
            write_delta(other, write_id, ids(write_id))
        done = acidctl(*COMPACT, "--major", "--verify", "inputs", *dry, table, other)
        assert done.status == 4
        assert f"will not compact {table}" in done.err
        assert "validate --deep" in done.err
        assert not list(table.glob("base_*"))
        assert len(list(other.glob("base_*"))) == (0 if dry else 1)

    def test_damaged_stripe_is_refused(self, acidctl: Acidctl, table: Path) -> None:
        """Copied byte for byte, it would be damaged in the base as well."""
        big = table / "delta_0000004_0000004_0000" / "bucket_00000"
        write_delta(table, 4, ids(*range(5000)))
        data = bytearray(big.read_bytes())
        tail = read_tail(ByteSource(*open_location(str(big))))
        (info,) = tail.stripes
        at = info.offset + info.indexLength + info.dataLength - 40
        data[at : at + 30] = bytes(30)
        big.write_bytes(data)
        assert acidctl(*COMPACT, "--major", "--verify", "inputs", table).status == 4
        assert not list(table.glob("base_*"))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (("--major", "--property", "no_auto_compaction=true"), "has no effect with --major"),
        (("--auto", "--property", "no_auto_compactoin=true"), "no_auto_compactoin decides nothing"),
        (("--auto", "--property", "hive.compactor.nonsense=1"), "no threshold is called hive.compactor.nonsense"),
        (("--major", "--property", "orc.bloom.filter.columns= , "), "names no column"),
        (("--major", "--property", "orc.compres=ZLIB"), "changes nothing"),
        (("--major", "--engine", "spark", "--conf", "executor.memory=4g"), "give keys that begin with spark."),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_what_would_be_ignored_is_refused(
    acidctl: Acidctl, table: Path, line: tuple[str, ...], told: str, dry: tuple[str, ...]
) -> None:
    done = acidctl(*COMPACT, *line, *dry, table)
    assert done.status == 2
    assert told in " ".join(done.err.split())
    assert not list(table.glob("base_*"))


def test_a_setting_of_a_file_is_for_other_lines_too(
    acidctl: Acidctl, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACIDCTL_COMPACT_BUCKETS", "5")
    assert acidctl(*COMPACT, "--major", "--dry-run", table).status == 0
