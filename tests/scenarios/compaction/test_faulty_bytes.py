"""Bits that change on their way to the store and back: nothing is shown that has not passed its level of proof."""

from __future__ import annotations

import io
import json
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from support.compacting import plan_compaction
from support.files.acid_files import batch_of, struct, write_deletes, write_delta, write_plain
from support.tables import json_rows, snapshot_of
from support.trouble.faults import Faults, FaultyFileSystem

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.acid.listing import TableType
from acidctl.base.errors import AcidctlError, BadDataError, StorageError, VerifyError
from acidctl.compaction.merge import written
from acidctl.compaction.output_settings import Writing
from acidctl.compaction.proof.checksum import Verify
from acidctl.compaction.run import compact
from acidctl.orc.types import OrcType
from acidctl.orc.write.writer_settings import WriterSettings
from acidctl.rows.read.events import read_ids
from acidctl.rows.scan.scan import Scan
from acidctl.storage import registry
from acidctl.storage.port import FileSystem, join
from acidctl.storage.registry import open_location

ROW = struct(i=OrcType("int"), s=OrcType("string"))
ROUNDS = 12


def some(count: int, first: int) -> pa.RecordBatch:
    return batch_of(ROW, *({"i": i, "s": f"text {i}"} for i in range(first, first + count)))


def write_full_acid(table: Path) -> None:
    for write_id in (1, 2, 3):
        write_delta(table, write_id, some(300, write_id * 1000), some(200, write_id * 1000 + 300), row=ROW)
    write_deletes(table, 4, 2, [5, 6], row=ROW)


def write_insert_only(table: Path) -> None:
    for write_id in (1, 2):
        path = table / f"delta_000000{write_id}_000000{write_id}_0000" / "000000_0"
        write_plain(path, some(300, write_id * 1000), row=ROW, settings=WriterSettings(compression="none"))


def write_parquet(table: Path) -> None:
    for write_id in (1, 2):
        path = table / f"delta_000000{write_id}_000000{write_id}_0000" / "000000_0"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.Table.from_batches([some(300, write_id * 1000)]), path)


MAKERS: dict[str, tuple[Callable[[Path], None], TableType]] = {
    "acid": (write_full_acid, TableType.FULL_ACID),
    "insert-only": (write_insert_only, TableType.INSERT_ONLY),
    "parquet": (write_parquet, TableType.INSERT_ONLY),
}


@pytest.fixture(params=list(MAKERS))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, TableType]:
    make, table_type = MAKERS[request.param]
    make(tmp_path)
    return tmp_path, table_type


@pytest.fixture(params=[0, 1 << 20], ids=["copied", "encoded"], autouse=True)
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "SMALL_STRIPE", request.param)


@dataclass
class Liar:
    """Spoils what passes once.

    Attributes:
        how: ``flip`` (a bit), ``zeros`` (up to 512 of them), ``cut``; the store says that all is well.
        place: which passage it is.
        at: which byte; any where it is None.
        met: how many there were.
    """

    way: str
    how: str
    place: int
    chance: random.Random
    at: int | None = None
    met: int = 0

    def spoil(self, way: str, data: bytes) -> bytes:
        if way != self.way or not data:
            return data
        self.met += 1
        return self._spoiled(bytes(data)) if self.met - 1 == self.place else data

    def _spoiled(self, data: bytes) -> bytes:
        at = self.chance.randrange(len(data)) if self.at is None else self.at % len(data)
        if self.how == "cut":
            return data[:at]
        if self.how == "zeros":
            return data[:at] + bytes(len(data[at : at + 512])) + data[at + 512 :]
        return data[:at] + bytes([data[at] ^ 1 << self.chance.randrange(8)]) + data[at + 1 :]


class Spoiling(FaultyFileSystem):
    """A store whose bytes pass through a liar."""

    def __init__(self, inner: FileSystem, liar: Liar) -> None:
        super().__init__(inner, Faults())
        self._liar = liar

    def open_output(self, path: str, *, private: bool = False) -> Any:
        return _Output(self._inner.open_output(path, private=private), self._liar)

    def open_input(self, path: str) -> Any:
        return _Input(self._inner.open_input(path).read(), self._liar)

    def read_bytes(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._liar.spoil("read", self._inner.read_bytes(path, offset, length))

    def write_bytes(self, path: str, data: bytes) -> None:
        self._inner.write_bytes(path, self._liar.spoil("write", data))


class _Output(io.BytesIO):
    def __init__(self, file: Any, liar: Liar) -> None:
        super().__init__()
        self._file, self._liar = file, liar

    def close(self) -> None:
        if not self.closed:
            self._file.write(self._liar.spoil("write", self.getvalue()))
            self._file.close()
            super().close()


class _Input(io.BytesIO):
    def __init__(self, data: bytes, liar: Liar) -> None:
        super().__init__(data)
        self._liar = liar

    def read(self, size: int | None = -1) -> bytes:
        return self._liar.spoil("read", super().read(size))

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def in_memory(table: Path) -> str:
    url = f"memory://spoiled-{uuid.uuid4().hex}/t"
    fs, root = open_location(url)
    for path in sorted(table.rglob("*")):
        target = join(root, str(path.relative_to(table)))
        fs.make_dirs(target) if path.is_dir() else fs.write_bytes(target, path.read_bytes())
    return url


def files_of(url: str) -> dict[str, bytes]:
    """All that readers may see."""
    fs, root = open_location(url)
    entries = [entry for entry in fs.list_tree(root).entries if not entry.is_dir and not entry.path.startswith("_")]
    return {entry.path: fs.read_bytes(join(root, entry.path)) for entry in entries}


def rows_of(url: str) -> list[str]:
    return sorted(json.dumps(row) for row in json_rows(Scan(snapshot_of(url))))


def run(url: str, table_type: TableType, verify: Verify, kind: CompactionKind, liar: Liar) -> AcidctlError | None:
    """A compaction over the liar's store; its error."""
    real = registry.open_file_system
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "open_file_system", lambda spec: Spoiling(real(spec), liar))
        try:
            writing = Writing(verify=verify)
            plan = plan_compaction(snapshot_of(url), kind, f"_tmp_{uuid.uuid4()}", writing, table_type=table_type)
            (outcome,) = compact([plan], offline=True)
        except AcidctlError as error:
            return error
    return outcome.error


def liars(way: str, table: tuple[Path, TableType], verify: Verify, kind: CompactionKind, rounds: int) -> list[Liar]:
    """Those of a compaction that goes well without them; bits more often than the rest."""
    honest = Liar(way, "", -1, random.Random())
    assert run(in_memory(table[0]), table[1], verify, kind, honest) is None
    chance = random.Random(f"{way} {table[1]} {verify} {kind}")
    hows = ("flip", "flip", "flip", "cut", "zeros")
    return [
        Liar(way, hows[number % len(hows)], chance.randrange(honest.met), random.Random(number))
        for number in range(rounds)
    ]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("verify", [Verify.BYTES, Verify.FULL])
@pytest.mark.parametrize("kind", list(CompactionKind))
def test_what_the_store_keeps_is_what_it_was_given(
    table: tuple[Path, TableType], verify: Verify, kind: CompactionKind
) -> None:
    """Statistics, indexes and footers included, which no row depends on that is compared."""
    for liar in liars("write", table, verify, kind, ROUNDS):
        url = in_memory(table[0])
        before = files_of(url)
        assert isinstance(run(url, table[1], verify, kind, liar), VerifyError | BadDataError | StorageError), liar
        assert liar.met > liar.place
        assert files_of(url) == before, liar


@pytest.mark.sampled(7)
@pytest.mark.parametrize("verify", list(Verify))
def test_the_ends_of_files_too(table: tuple[Path, TableType], verify: Verify) -> None:
    """Footers, in which a wrong bound hides rows from whoever filters by it."""
    if table[1] is TableType.FULL_ACID and verify is Verify.KEYS:
        pytest.skip("ids alone are less")
    for at in range(-420, 0, 13):
        url = in_memory(table[0])
        before = files_of(url)
        liar = Liar("write", "flip", 1, random.Random(at), at)  # the first is the note of its owner
        assert isinstance(run(url, table[1], verify, CompactionKind.MAJOR, liar), VerifyError | BadDataError), at
        assert files_of(url) == before


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", list(CompactionKind))
def test_full_notices_what_is_read_wrong_once(table: tuple[Path, TableType], kind: CompactionKind) -> None:
    """What is written is read apart from what it is compared with; and pyorc's errors are ours."""
    url = in_memory(table[0])
    model = rows_of(url)
    assert run(url, table[1], Verify.FULL, kind, Liar("", "", 0, random.Random())) is None
    right = files_of(url)
    assert rows_of(url) == model
    for liar in liars("read", table, Verify.FULL, kind, 2 * ROUNDS):
        url = in_memory(table[0])
        before = files_of(url)
        error = run(url, table[1], Verify.FULL, kind, liar)
        assert files_of(url) == (before if error else right), liar


@pytest.mark.slow
def test_ids_alone_are_less(tmp_path: Path) -> None:
    """The weakest level lets values pass that the next one stops: the message says no more than that."""
    write_full_acid(tmp_path)
    table = tmp_path, TableType.FULL_ACID
    shown = 0
    for number, liar in enumerate(liars("write", table, Verify.KEYS, CompactionKind.MAJOR, 40)):
        shown += run(in_memory(tmp_path), table[1], Verify.KEYS, CompactionKind.MAJOR, liar) is None
        again = Liar("write", liar.how, liar.place, random.Random(number))
        assert run(in_memory(tmp_path), table[1], Verify.BYTES, CompactionKind.MAJOR, again), again
    assert shown


def test_ids_that_are_not_there() -> None:
    with pytest.raises(BadDataError, match="not a valid ACID file"):
        read_ids(pa.RecordBatch.from_pydict({"operation": [0]}), "bucket_00000")
