from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from support.files.orc_bytes import ACID_SCHEMA, Remote, acid_rows, retailed, written
from support.paths import TESTS

from acidctl.base.errors import BadDataError, NotFoundError, UsageProblem
from acidctl.orc import orc_pb2 as pb
from acidctl.orc.read.reader import OrcFile, open_orc
from acidctl.orc.types import ACID_COLUMNS, OrcType
from acidctl.storage.local.filesystem import LocalFileSystem


def open_local(path: Path, length: int | None = None) -> OrcFile:
    return open_orc(LocalFileSystem(), str(path), length)


def open_remote(data: bytes) -> OrcFile:
    return open_orc(Remote(file=data), "file")


def whole(file: OrcFile, columns: list[str] | None = None) -> pa.Table:
    return pa.Table.from_batches([file.read_stripe(i, columns) for i in range(file.stripe_count)])


NESTED = written(
    "struct<a:int,s:struct<b:int,c:string,t:struct<d:int>>,l:array<struct<e:int>>>",
    [(i, (i, str(i), (i,)), [(i,)]) for i in range(10)],
)


class TestColumns:
    def test_without_names_all_columns_are_read(self) -> None:
        with open_remote(NESTED) as file:
            batch = file.read_stripe(0)
            assert batch.schema == file.schema
            assert batch.num_rows == file.tail.stripes[0].numberOfRows == 10

    def test_top_level_and_dotted_columns_are_read(self) -> None:
        with open_remote(NESTED) as file:
            assert file.read_stripe(0, ["l", "a"]).schema.names == ["a", "l"]
            assert file.read_stripe(0, ["s.t.d"]).schema.field("s").type == pa.struct(
                [("t", pa.struct([("d", pa.int32())]))]
            )
            assert file.read_stripe(0, ["s", "s.b"]).schema.field("s") == file.schema.field("s")

    def test_none_wanted_still_counts_rows(self) -> None:
        with open_remote(NESTED) as file:
            batch = file.read_stripe(0, [])
            assert (batch.num_rows, batch.num_columns) == (10, 0)

    @pytest.mark.parametrize("name", ["x", "A", "s.x", "l.e", "", "s.", ".a"])
    def test_unknown_column_is_refused(self, name: str) -> None:
        with open_remote(NESTED) as file, pytest.raises(UsageProblem, match="file"):
            file.read_stripe(0, [name])

    def test_columns_whose_paths_collide_are_told_apart(self) -> None:
        data = retailed(
            written("struct<a:int,b:struct<c:int>>", [(1, (2,))]),
            lambda footer, postscript: footer.types[0].fieldNames.__setitem__(0, "b.c"),
        )
        with open_remote(data) as file:
            assert file.read_stripe(0).to_pylist() == [{"b.c": 1, "b": {"c": 2}}]
            with pytest.raises(UsageProblem, match=r"b\.c"):
                file.read_stripe(0, ["b.c"])

    def test_a_field_in_a_list_takes_no_name_away_silently(self) -> None:
        data = retailed(
            written("struct<a:int,b:array<struct<c:int>>>", [(1, [(2,)])]),
            lambda footer, postscript: footer.types[0].fieldNames.__setitem__(0, "b.c"),
        )
        with open_remote(data) as file, pytest.raises(UsageProblem, match="several columns"):
            file.read_stripe(0, ["b.c"])

    def test_empty_stripe_has_the_schema_and_no_rows(self) -> None:
        def change(footer: pb.Footer, postscript: pb.PostScript) -> None:
            footer.stripes[0].numberOfRows = 0

        with open_remote(retailed(NESTED, change)) as file:
            assert file.read_stripe(0).schema == file.schema
            assert file.read_stripe(0, ["s.b"]).num_rows == 0

    def test_file_without_rows_has_no_stripes(self) -> None:
        with open_remote(written("struct<a:int,s:struct<b:int>>", [])) as file:
            assert file.stripe_count == 0


class TestAcid:
    def test_lower_case_names_of_ids_become_canonical(self) -> None:
        def lower(footer: pb.Footer, postscript: pb.PostScript) -> None:
            names = [name.lower() for name in footer.types[0].fieldNames]
            footer.types[0].fieldNames[:] = names

        data = retailed(written(ACID_SCHEMA, acid_rows(5)), lower)
        with open_remote(data) as file:
            assert file.is_acid
            assert file.schema.names == list(ACID_COLUMNS)
            assert file.row_type.names == ("a", "b")
            assert file.read_stripe(0).schema == file.schema
            assert file.read_stripe(0, ["rowId", "originalTransaction"]).schema.names == [
                "originalTransaction",
                "rowId",
            ]
            assert file.read_stripe(0, ["rowid"]).schema.names == ["rowId"]
            assert file.read_stripe(0, ["row.b"]).column("row").to_pylist()[4] == {"b": "row 4"}

    def test_file_of_hive_is_read_with_its_ids(self, shared_data: Path) -> None:
        with open_local(shared_data / "hive-written" / "acid5k" / "acid5k.orc") as file:
            batch = file.read_stripe(0)
            assert file.is_acid
            assert batch.num_rows == 5000
            assert batch.column("rowId").to_pylist() == list(range(5000))
            assert isinstance(file.row_type, OrcType)

    def test_every_file_that_hive_wrote_is_read(self, shared_data: Path, own_data: Path) -> None:
        files = [
            path
            for root in (shared_data / "hive-written", own_data / "hive23-written")
            for path in sorted(root.rglob("bucket_*"))
            if path.is_file() and not path.name.endswith("_flush_length")
        ]
        assert len(files) > 50
        for path in files:
            with open_local(path) as file:
                rows = sum(file.read_stripe(i, list(ACID_COLUMNS[:5])).num_rows for i in range(file.stripe_count))
                assert file.is_acid, path
                assert rows == file.tail.rows, path


class TestLogicalLength:
    def test_local_and_remote_files_read_alike(self, tmp_path: Path) -> None:
        data = written(ACID_SCHEMA, acid_rows(50))
        path = tmp_path / "bucket_00000"
        path.write_bytes(data + b"half a stripe")
        with open_local(path, len(data)) as file, open_remote(data) as same:
            assert whole(file) == whole(same)
        with pytest.raises(BadDataError):
            open_local(path)
        with pytest.raises(BadDataError, match="bucket_00000"):
            open_local(path, len(data) + 1000)


class TestRemote:
    def test_a_small_file_takes_one_read(self) -> None:
        remote = Remote(file=written(ACID_SCHEMA, acid_rows(100)))
        with open_orc(remote, "file") as file:
            assert file.read_stripe(0).num_rows == 100
        assert len(remote.reads) == 1

    def test_a_narrow_column_of_a_large_stripe(self) -> None:
        schema = "struct<wide:string,narrow:int,also_wide:string>"
        rows = [(f"{i * 7919:040d}", i, f"{i * 104729:040d}") for i in range(40_000)]
        remote = Remote(file=written(schema, rows, compression=pyorc.CompressionKind.NONE))
        with open_orc(remote, "file") as file:
            assert file.read_stripe(0, ["narrow"]).column(0).to_pylist() == list(range(40_000))
            assert sum(length or 0 for _, length in remote.reads) < 400_000
            assert len(remote.reads) <= 4
            everything = file.read_stripe(0)
            assert everything.column("wide")[39_999].as_py() == rows[-1][0]


class TestRefused:
    def test_encrypted_and_lzo_files_are_refused_by_name(self, shared_data: Path) -> None:
        corpus = shared_data / "orc-corpus" / "apache-orc"
        for name, words in [
            ("encrypted/sample1.orc", "encrypted"),
            ("encrypted/sample2.orc", "encrypted"),
            ("TestVectorOrcFile.testLzo.orc", "LZO"),
            ("TestOrcFile.testTimestamp.orc", "single values of type timestamp"),
            ("zero.orc", "empty"),
        ]:
            with pytest.raises(BadDataError, match=words) as caught:
                open_local(corpus / name)
            assert name in caught.value.what

    def test_missing_file_is_not_found(self, tmp_path: Path) -> None:
        with pytest.raises(NotFoundError):
            open_local(tmp_path / "nothing")

    def test_corrupt_stripe_is_named_in_the_error(self, shared_data: Path) -> None:
        found = sorted((shared_data / "orc-corpus" / "apache-orc" / "corrupt").glob("*.orc"))
        assert len(found) == 4
        for path in found:
            with open_local(path) as file, pytest.raises(BadDataError, match="stripe 0") as caught:
                file.read_stripe(0)
            assert path.name in caught.value.what

    @pytest.mark.parametrize("rows", [1 << 40, (1 << 63) - 1, 1 << 31])
    def test_more_rows_than_the_bytes_can_hold(self, rows: int) -> None:
        def change(footer: pb.Footer, postscript: pb.PostScript) -> None:
            footer.stripes[0].numberOfRows = rows

        with open_remote(retailed(NESTED, change)) as file, pytest.raises(BadDataError, match="file"):
            file.read_stripe(0)

    def test_a_file_cut_while_it_is_open(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        path.write_bytes(written("struct<a:string>", [(f"{i * 7919:030d}",) for i in range(50_000)]))
        with open_local(path) as file:
            path.write_bytes(path.read_bytes()[:5000])
            with pytest.raises(BadDataError, match="stripe 0 of"):
                file.read_stripe(0)


def listed(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows; timestamps as text, since Python's have no nanoseconds."""
    columns = [column.cast(pa.string()) if pa.types.is_timestamp(column.type) else column for column in batch.columns]
    rows: list[dict[str, Any]] = pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
    return rows


def alike(got: Any, want: Any, kind: OrcType) -> bool:
    if got is None or want is None:
        # A null union and a union of a null are one and the same in Arrow.
        return got is None and (want is None or (kind.kind == "uniontype" and want["value"] is None))
    if kind.kind == "struct":
        return all(alike(got[name], want[name], child) for name, child in kind.fields())
    if kind.kind == "array":
        return len(got) == len(want) and all(alike(a, b, kind.children[0]) for a, b in zip(got, want, strict=True))
    if kind.kind == "map":
        pairs = sorted((pair["key"], pair["value"]) for pair in want) if kind.children[0].kind == "string" else want
        ours = sorted(got)
        return all(
            alike(a, k, kind.children[0]) and alike(b, v, kind.children[1])
            for (a, b), (k, v) in zip(ours, pairs, strict=True)
        )
    if kind.kind == "uniontype":
        return alike(got, want["value"], kind.children[want["tag"]])
    if kind.kind == "binary":
        return bool(list(got) == want)
    if kind.kind in ("float", "double"):
        return math.isclose(got, float(want), rel_tol=1e-6)
    if kind.kind == "decimal":
        return Decimal(got) == Decimal(want)
    if kind.kind in ("timestamp", "date"):
        return str(got).rstrip("0").rstrip(".") == str(want).rstrip("0").rstrip(".")
    return bool(got == want)


@pytest.mark.parametrize(
    "name",
    [
        "TestOrcFile.emptyFile",
        "TestOrcFile.metaData",
        "TestOrcFile.test1",
        "TestOrcFile.testMemoryManagementV11",
        "TestOrcFile.testMemoryManagementV12",
        "TestOrcFile.testPredicatePushdown",
        "TestOrcFile.testStringAndBinaryStatistics",
        "TestOrcFile.testUnionAndTimestamp",
        "over1k_bloom",
    ],
)
def test_published_files_have_their_published_rows(name: str, shared_data: Path) -> None:
    corpus = shared_data / "orc-corpus" / "apache-orc"
    lines = gzip.decompress((corpus / "expected" / f"{name}.jsn.gz").read_bytes()).decode().splitlines()
    want = [json.loads(line, parse_float=Decimal) for line in lines]
    with open_local(corpus / f"{name}.orc") as file:
        got = [row for i in range(file.stripe_count) for row in listed(file.read_stripe(i))]
        assert len(got) == len(want)
        for mine, theirs in zip(got, want, strict=True):
            assert alike(mine, theirs, file.row_type), (mine, theirs)


def test_flipped_stripe_bytes_never_hang(shared_data: Path) -> None:
    """The native reader may die of damage in a stripe, so this runs in a process of its own; most of it is found."""
    path = shared_data / "hive-written" / "acid5k" / "acid5k.orc"
    program = """
import random, sys
from acidctl.base.errors import AcidctlError
from acidctl.orc.read.reader import open_orc
from support.files.orc_bytes import Remote
data = open(sys.argv[1], 'rb').read()
draw = random.Random(1)
found = 0
for _ in range(100):
    broken = bytearray(data)
    broken[draw.randrange(3, len(data) - 600)] ^= 1 << draw.randrange(8)
    try:
        with open_orc(Remote(file=bytes(broken)), 'file') as file:
            file.read_stripe(0)
    except AcidctlError:
        found += 1
print(found)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60, cwd=TESTS, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
