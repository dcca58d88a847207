"""Compaction of insert-only tables (format sections 8.5 and 11): files of the same bucket are concatenated.

There are no synthetic columns and no deletes: all rows of a file count if its directory is current, so a compaction
only concatenates. Its directories get no ``_orc_acid_version``. A base without a visibility id does get
``_metadata_acid``: the rules that choose a base (section 6.2) are the same for all tables, and without the marker the
base would be an INSERT OVERWRITE: valid although older write ids are open, and silently absent for readers whose
snapshot does not include its write id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acidctl.base.errors import BadDataError
from acidctl.compaction.concat.orc import write_orc
from acidctl.compaction.concat.parquet import write_parquet
from acidctl.compaction.proof.checksum import RowProof
from acidctl.compaction.proof.sent import SummedSink, Taken, mismatch, require_bytes, take
from acidctl.compaction.tasks import BucketResult, ConcatTask, Input, OutputFile
from acidctl.location.metastore_schema import Declared
from acidctl.orc.byte_source import ByteSource
from acidctl.rows.foreign.format import Format, read_any_tail
from acidctl.rows.foreign.parquet_and_text import BYTE_ORDER_MARK
from acidctl.rows.read.events import EventFile
from acidctl.storage import registry
from acidctl.storage.port import FileSystem


def run_concat(task: ConcatTask) -> BucketResult:
    """Write the rows of one bucket to one file, and prove it; without rows there is no file.

    Raises:
        BadDataError: an input cannot be read.
        RefusedError: the inputs cannot be put into one file without a change of meaning.
        VerifyError: the written file differs from the inputs.
    """
    fs = registry.open_file_system(task.storage)
    sources = [source for source in (_reopen(fs, item, task.declared) for item in task.sources) if source.rows]
    if not sources:
        return BucketResult(task.bucket)
    if task.format is Format.PARQUET:
        newest = max(range(len(sources)), key=lambda i: (sources[i].file.max_write_id, i))
        written = write_parquet(fs, sources, task, newest)
    elif task.format is Format.TEXT:
        written = write_text(fs, sources, task)
    else:
        written = write_orc(fs, sources, task)
    return BucketResult(task.bucket, written, rows_read=sum(source.rows for source in sources))


def _reopen(fs: FileSystem, item: Input, declared: Declared | None) -> EventFile:
    read = read_any_tail(ByteSource(fs, item.path, item.length), declared)
    return EventFile(fs, item.file, item.path, item.length, read.tail, item.synthetic, read.format, declared)


_LINE_FEED = b"\n"


def write_text(fs: FileSystem, sources: Sequence[EventFile], task: ConcatTask) -> OutputFile:
    """Write the bytes of all sources to one new file, in their order, and read it again.

    A line feed is added between files if the first does not end with one. A byte order mark is left out: Hadoop skips
    it at the beginning of a file, but not in the middle.

    Args:
        sources: in read order, each with rows.

    Raises:
        BadDataError: an input has become shorter.
        VerifyError: the file differs from what was written, or has another number of lines.
    """
    path = task.new_attempt(task.name)
    taken: list[Taken] = []
    with fs.open_output(path, private=True) as file:
        sink = SummedSink(file)
        last = _LINE_FEED

        def append(chunks: Iterator[bytes]) -> None:
            nonlocal last
            for chunk in chunks:
                sink.write(chunk)
                last = chunk[-1:]

        for source in sources:
            if last != _LINE_FEED:
                sink.write(_LINE_FEED)
            text = source.tail.source
            head = text.read(0, min(len(BYTE_ORDER_MARK), text.size))
            start = len(head) if head == BYTE_ORDER_MARK else 0
            begun = sink.count
            twice = task.verify.compares_values
            part = take(fs, source.path, start, text.size - start, sink=sink, append=append, twice=twice)
            if part.start != begun:
                raise BadDataError(
                    f"{source.path} became shorter while it was read", "", "nothing writes there; run it again"
                )
            taken.append(part)
    require_bytes(fs, path, sink, taken)
    rows = sum(source.rows for source in sources)
    lines = read_any_tail(ByteSource(fs, path), task.declared).tail.rows
    if lines != rows:
        raise mismatch(fs.display(path), f"{rows:,} lines were to be written, and it has {lines:,}")
    return OutputFile(path, task.name, sink.count, 1, 0, RowProof(rows), RowProof(lines), (rows, 0, 0))
