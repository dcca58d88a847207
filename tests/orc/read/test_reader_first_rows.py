"""The first rows of a file without the rest of its stripe: the same rows, few bytes; or none, where that cannot be."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc
from support.files.acid_files import acid_batch, acid_file, struct
from support.files.orc_bytes import Remote
from support.made.random_values import everything, random_array
from support.paths import DATA

from acidctl.orc.read.reader import open_orc
from acidctl.orc.types import OrcType
from acidctl.orc.write.writer_settings import CODECS, WriterSettings
from acidctl.storage.local.filesystem import LocalFileSystem

FS = LocalFileSystem()
FOREIGN = {"map", "uniontype"}


def plain_types() -> OrcType:
    return struct(**{name: kind for name, kind in everything(False).fields() if kind.kind not in FOREIGN})


@pytest.mark.parametrize("compression", CODECS)
def test_first_rows_are_those_of_the_whole_stripe(compression: str, tmp_path: Path) -> None:
    row = plain_types()
    data, _ = acid_file(row, [acid_batch(random_array(row, 4000, random.Random(1)))], WriterSettings(compression))
    path = tmp_path / "bucket_00000"
    path.write_bytes(data)
    with open_orc(FS, str(path)) as near, open_orc(Remote(f=data), "f") as far:
        whole = near.read_stripe(0)
        for count in (1, 10, 500):
            for file in (near, far):
                assert file.read_first(count) == whole.slice(0, count)
        assert near.read_first(501) is None
        assert near.read_first(0) is None


def test_first_rows_of_other_writers_are_those_of_the_whole_stripe() -> None:
    seen = 0
    for path in sorted([*DATA.rglob("bucket_*[0-9]"), *DATA.rglob("0*_0"), *DATA.rglob("*.orc")]):
        with open_orc(FS, str(path)) as file:
            for count in (1, 3):
                first = file.read_first(count)
                if first is not None:
                    assert first == file.read_stripe(0).slice(0, count), path
                    seen += 1
    assert seen > 3


@pytest.mark.parametrize("kind", sorted(FOREIGN))
def test_types_that_take_a_look_at_the_whole_stripe(kind: str) -> None:
    column = next(child for child in everything().children if child.kind == kind)
    row = struct(a=OrcType("int"), x=column)
    data, _ = acid_file(row, [acid_batch(random_array(row, 1000, random.Random(1)))])
    with open_orc(Remote(f=data), "f") as file:
        assert file.read_first(3) is None


def test_times_that_arrow_cannot_hold(tmp_path: Path) -> None:
    """Where they are among the first rows, the stripe is asked; further down they do not matter."""
    row = struct(t=OrcType("timestamp"))
    for place, expected in ((2, False), (3999, True)):
        micros = np.zeros(4000, np.int64)
        micros[place] = 250_000_000_000_000_000  # in the year 9892
        rows = pa.StructArray.from_arrays([pa.array(micros, pa.timestamp("us"))], names=["t"])
        path = tmp_path / f"{place}"
        path.write_bytes(acid_file(row, [acid_batch(rows)], WriterSettings("zlib"))[0])
        with open_orc(FS, str(path)) as file:
            found = file.read_first(10)
            assert (found is not None) is expected
            if found is not None:
                assert found.column("row").to_pylist() == rows.slice(0, 10).to_pylist()


@pytest.mark.parametrize(
    "names", [("a.b", "a"), ("a", "a.b"), ("a.b", "c"), ("__filename", "c"), ("a", "a"), ("", "A")]
)
def test_columns_with_dots_are_told_from_fields(names: tuple[str, str], tmp_path: Path) -> None:
    """The columns of files without ids may go by any; `a.b` is a column, or a field of a struct."""
    count = 100
    columns = [pa.array(range(count)), pa.array([{"b": f"{i}"} for i in range(count)])]
    if names[0] == "a":
        columns.reverse()
    orc.write_table(pa.table(columns, names=list(names)), tmp_path / "000000_0")
    with open_orc(FS, str(tmp_path / "000000_0")) as file:
        first = file.read_first(3)
        assert first is None or first == file.read_stripe(0).slice(0, 3)


def test_few_bytes_of_a_large_stripe() -> None:
    rng = np.random.default_rng(1)
    count = 1_000_000
    row = struct(a=OrcType("bigint"), b=OrcType("double"), c=OrcType("bigint"))
    columns = [rng.integers(0, 1 << 62, count), rng.random(count), rng.integers(0, 1 << 62, count)]
    rows = pa.StructArray.from_arrays([pa.array(column) for column in columns], names=["a", "b", "c"])
    data, _ = acid_file(row, [acid_batch(rows)], WriterSettings("zstd"))
    files = Remote(f=data)
    with open_orc(files, "f") as file:
        first = file.read_first(10)
        assert first is not None
        assert first.column("row").to_pylist() == rows.slice(0, 10).to_pylist()
    assert len(data) > 20_000_000
    assert sum(length or 0 for _, length in files.reads) < 2_000_000
    assert len(files.reads) < 10


def test_no_thread_holds_the_file_afterwards() -> None:
    """One that let go of it while the interpreter ends would abort the process."""
    row = plain_types()
    data, _ = acid_file(row, [acid_batch(random_array(row, 4000, random.Random(1)))])
    for _ in range(10):
        with open_orc(Remote(f=data), "f") as file:
            holders = sys.getrefcount(file._window)
            first = file.read_first(3)
            left = sys.getrefcount(file._window)
            assert first is not None
            assert left == holders


def test_a_damaged_file_is_left_to_the_reader_of_stripes() -> None:
    row = plain_types()
    data = bytearray(acid_file(row, [acid_batch(random_array(row, 4000, random.Random(1)))])[0])
    data[3:-4000] = b"\xff" * (len(data) - 4003)
    with open_orc(Remote(f=bytes(data)), "f") as file:
        assert file.read_first(5) is None
