"""Files read in another process: the same rows, and a crash or a hang is a damaged file."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.files.orc_bytes import written

from acidctl.base import parallel, worker_pool
from acidctl.base.errors import BadDataError, EnvironmentProblem, UsageProblem
from acidctl.base.guardian import NOTES
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.read.reader import OrcFile, open_orc
from acidctl.rows.foreign.format import Format, open_foreign, read_any_tail
from acidctl.storage.local.filesystem import LocalFileSystem

FS = LocalFileSystem()
KINDS = "struct<a:int,t:timestamp,d:decimal(9,2),u:uniontype<int,string>,m:map<string,array<date>>,s:struct<b:binary>>"


@pytest.fixture
def path(tmp_path: Path) -> str:
    found = tmp_path / "file"
    nothing = (None,) * 6
    found.write_bytes(written(KINDS, [nothing, *((i, None, None, None, None, (b"x",)) for i in range(500))]))
    return str(found)


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker_pool, "_FORKS", 10**9)  # however many files other tests have read in this process
    with NOTES.isolated():
        yield


def test_the_rows_are_those_that_this_process_reads(path: str) -> None:
    NOTES.isolates = False
    with open_orc(FS, path) as file:
        here = file.read_stripe(0), file.read_stripe(0, ["s.b", "a"]), file.read_stripe(0, [])
    NOTES.isolates = True
    with open_orc(FS, path) as file:
        there = file.read_stripe(0), file.read_stripe(0, ["s.b", "a"]), file.read_stripe(0, [])
        assert file._orc is None
        with pytest.raises(UsageProblem):
            file.read_stripe(0, ["none"])
    for one, other in zip(here, there, strict=True):
        assert one.schema == other.schema
        assert one.num_rows == other.num_rows
        assert one.equals(other)


def test_parquet_is_read_there_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "file")
    source = ByteSource(FS, str(tmp_path / "file"))
    reader = open_foreign(source, Format.PARQUET, read_any_tail(source).tail)
    assert isinstance(reader, worker_pool.Elsewhere)
    assert reader.stripe_count == 1
    assert reader.read_stripe(0).column(0).to_pylist() == [1, 2]
    reader.close()


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGSEGV, BadDataError), (signal.SIGKILL, EnvironmentProblem)])
def test_a_crash_is_an_error_of_the_file(
    path: str, number: int, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    native, good = OrcFile._native, path + "2"
    Path(good).write_bytes(Path(path).read_bytes())

    def crash(file: OrcFile) -> object:
        if file.tail.path == path:
            os.kill(os.getpid(), number)
        return native(file)

    monkeypatch.setattr(OrcFile, "_native", crash)
    with open_orc(FS, path) as file, pytest.raises(kind):
        file.read_stripe(0)
    with open_orc(FS, good) as file:
        assert file.read_stripe(0, ["a"]).num_rows == 501
    assert not [one for one in worker_pool._SPARE if isinstance(one.process, worker_pool._Fork)]


def test_a_hang_is_an_error_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "SILENT_SECONDS", 0.5)
    reader = worker_pool.Elsewhere("file", partial(time.sleep, 60), 1, forks=True)
    with pytest.raises(BadDataError, match=r"no sign of life for 0\.5 seconds"):
        reader.read_stripe(0)
    reader.close()


def test_what_hangs_in_a_fork_only_is_read_by_another_python(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "FORK_SECONDS", 0.5)
    monkeypatch.setattr(OrcFile, "_native", lambda _: time.sleep(60))
    with open_orc(FS, path) as file:
        assert file.read_stripe(0, ["a"]).num_rows == 501


def test_another_thread_starts_no_fork(path: str) -> None:
    """A lock that the main thread holds would never be released in it."""
    kinds: list[bool] = []

    def read() -> None:
        with open_orc(FS, path) as file:
            assert file._elsewhere
            kinds.append(file._elsewhere._pool.forks)

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert kinds == [False]


@pytest.mark.parametrize(("in_threads", "expected"), [(False, {"fork": 2, "start": 1}), (True, {"start": 4})])
def test_many_files_need_few_processes(
    path: str, in_threads: bool, expected: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: Counter[str] = Counter()

    def counted(name: str) -> None:
        real = getattr(worker_pool, f"_{name}")
        monkeypatch.setattr(worker_pool, f"_{name}", lambda *a, **k: started.update([name]) or real(*a, **k))

    counted("fork")
    counted("start")
    for name, value in (("_numbers", itertools.count(10**6)), ("_SPARE", []), ("_FORKS", 10**6 + 2)):
        monkeypatch.setattr(worker_pool, name, value)
    meeting = threading.Barrier(4 if in_threads else 1)

    def read(_: int) -> int:
        with open_orc(FS, path) as file:
            meeting.wait(60)  # all are open at the same time
            return file.read_stripe(0, ["a"]).num_rows

    for _ in range(2):
        counts = parallel.results(read, range(4), 4) if in_threads else map(read, range(4))
        assert list(counts) == [501] * 4
    assert started == expected
    for worker in worker_pool._SPARE:
        worker.end()


def test_a_process_that_is_kept_keeps_no_closed_file_open(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The space of a deleted file would not be free until a service ends."""
    for name, value in (("_SPARE", []), ("_FORKS", 0)):
        monkeypatch.setattr(worker_pool, name, value)
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "p")
    source = ByteSource(FS, str(tmp_path / "p"))
    for file in (open_orc(FS, path), open_foreign(source, Format.PARQUET, read_any_tail(source).tail)):
        assert file.read_stripe(0).num_rows
        file.close()
        (worker,) = worker_pool._SPARE
        links = {str(link.readlink()) for link in Path(f"/proc/{worker.process.pid}/fd").iterdir()}
        assert not [link for link in links if link.startswith(str(tmp_path))]
    worker.end()
