"""PyIceberg as the judge of a copy."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.files.acid_files import struct, write_deletes, write_delta
from support.made.random_values import everything, random_array
from support.migrating import copy, rows

from acidctl.base.errors import BadDataError, VerifyError
from acidctl.iceberg import target
from acidctl.iceberg.proofs import digests
from acidctl.iceberg.target import Target
from acidctl.orc.types import OrcType
from acidctl.outcome import Result

KINDS = struct(a=OrcType("int"), b=OrcType("string"), t=OrcType("timestamp"))


def table_of(path: Path, *times: str) -> Path:
    count = len(times)
    columns = [
        pa.array(range(count), pa.int32()),
        pa.array([None, *"bcdefg"][:count]),
        pa.array(times).cast(pa.timestamp("ns")),
    ]
    write_delta(path / "p=1", 1, pa.RecordBatch.from_arrays(columns, ["a", "b", "t"]), row=KINDS)
    write_deletes(path / "p=1", 2, 1, [1], row=KINDS)
    return path


def _read(change: Any) -> Any:
    real = Target.read

    def wrong(self: Any, names: Any) -> Any:
        for url, batch in real(self, names):
            yield url, change(batch)

    return wrong


def _other_number(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(0, "a", pc.add(batch.column("a"), pa.scalar(1, batch.column("a").type)))


def _no_nulls(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(1, "b", pc.fill_null(batch.column("b"), ""))


@pytest.mark.parametrize(("change", "column"), [(_other_number, "a"), (_no_nulls, "b")])
def test_another_value_in_a_column_stops_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, column: str
) -> None:
    table, to = table_of(tmp_path / "t", "2020-01-01", "2021-01-01", "2022-01-01"), tmp_path / "copy"
    with monkeypatch.context() as patch:
        patch.setattr(Target, "read", _read(change))
        with pytest.raises(VerifyError, match=f"other values in column {column}"):
            copy(table, to)
    assert (rows(to), list((to / "data").iterdir())) == ([], [])
    assert (copy(table, to).column_notes, len(rows(to))) == ({"t": "nanoseconds are cut to microseconds"}, 2)
    monkeypatch.setattr(Target, "read", _read(change))
    with pytest.raises(VerifyError, match=f"other values in column {column}"):
        copy(table, to, proof="full")


def test_values_in_other_rows_stop_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, to = table_of(tmp_path / "t", "2020-01-01", "2021-01-01", "2022-01-01"), tmp_path / "copy"
    backwards = pa.array([1, 0])
    monkeypatch.setattr(
        Target, "read", _read(lambda batch: batch.set_column(0, "a", batch.column("a").take(backwards)))
    )
    with pytest.raises(VerifyError, match="other rows"):
        copy(table, to)
    assert (rows(to), list((to / "data").iterdir())) == ([], [])


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", ["", "another file"])
def test_rows_that_the_copy_must_not_show_stop_the_commit(
    name: str, large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no ROW__ID there, and that is not a fault of the reader."""
    if large:
        monkeypatch.setattr(target, "_LARGE", 1)
    table, to, real = table_of(tmp_path / "t", "2020-01-01", "2021-01-01", "2022-01-01"), tmp_path / "copy", Target.read
    monkeypatch.setattr(
        Target,
        "read",
        lambda *given: [two for url, batch in real(*given) for two in ((url, batch), (name or url, batch))],
    )
    with pytest.raises(VerifyError, match="PyIceberg reads other values"):
        copy(table, to)
    assert (rows(to), list((to / "data").iterdir())) == ([], [])


@pytest.mark.parametrize(
    ("time", "large", "reads"),
    [("2020-01-01", False, 0), ("2020-01-01", True, 1), ("1960-01-01 00:00:00.0000001", False, 1)],
)
def test_acidctl_reads_only_files_of_which_pyiceberg_cannot_read_all_columns_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: str, large: bool, reads: int
) -> None:
    if large:
        monkeypatch.setattr(target, "_LARGE", 1)
    table, to, read = table_of(tmp_path / "t", time, "2021-01-01", "2022-01-01"), tmp_path / "copy", []
    real = digests._rows_of
    monkeypatch.setattr(digests, "_rows_of", lambda *args: read.append(args) or real(*args))
    assert copy(table, to).proof == "all values of 2 rows compared"
    assert len(read) == reads


def test_a_file_that_cannot_be_read_again_is_an_error_of_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was committed, and nobody need look for a snapshot."""
    table, to = table_of(tmp_path / "t", "1960-01-01 00:00:00.0000001"), tmp_path / "copy"

    def fails(*_: Any) -> Any:
        raise BadDataError("a file is damaged", "its end is missing")

    monkeypatch.setattr(digests, "_rows_of", fails)
    with pytest.raises(BadDataError, match="damaged"):
        copy(table, to)
    assert list((to / "data").iterdir()) == []


@pytest.mark.parametrize(
    ("time", "why"),
    [("1969-12-31 23:59:58.123456789", "nanoseconds before 1970"), ("1969-12-31 23:59:58.123456", "")],
)
def test_times_that_pyiceberg_reads_wrongly_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, time: str, why: str
) -> None:
    done = copy(table_of(tmp_path / "t", time, "2021-01-01", "2022-01-01"), tmp_path / "copy")
    assert (done.result, done.proof) == (Result.WRITTEN, "all values of 2 rows compared")
    assert [note for note in done.notes if "cannot judge" in note] == [
        f"PyIceberg cannot judge column t: it has {why}"
    ] * bool(why)
    assert not caplog.records, "PyIceberg warns of nanoseconds, batch by batch"


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_columns_of_every_type(seed: int, large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyIceberg reads all but times that have nanoseconds before 1970."""
    if large:  # files are read column by column
        monkeypatch.setattr(target, "_LARGE", 1)
    choice, row = (
        random.Random(seed),
        struct(**{name: kind for name, kind in everything(unions=False).fields() if name != "e"}),
    )
    batch = pa.RecordBatch.from_arrays([random_array(kind, 200, choice) for kind in row.children], list(row.names))
    for part in ("part=1.5", "part=__HIVE_DEFAULT_PARTITION__"):
        write_delta(tmp_path / "t" / part, 1, batch, row=row)
        write_deletes(tmp_path / "t" / part, 2, 1, range(0, 200, 7), row=row)
    done = copy(tmp_path / "t", tmp_path / "copy")
    judged = {note.partition(":")[0] for note in done.notes if "PyIceberg" in note}
    assert judged == {"PyIceberg cannot judge column t", "PyIceberg cannot judge column z"}


def test_a_reader_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Target, "read", _read(lambda _: 1 / 0))
    done = copy(table_of(tmp_path / "t", "2021-01-01", "2021-01-02"), tmp_path / "copy")
    assert any("PyIceberg cannot read the copy: ZeroDivisionError" in note for note in done.notes)
