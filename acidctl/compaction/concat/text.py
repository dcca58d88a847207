"""Files of insert-only tables in text put together, byte by byte: each line stays what it is, and where it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acidctl.compaction.proof.checksum import RowProof
from acidctl.compaction.proof.sent import SummedSink, Taken, mismatch, require_bytes, take
from acidctl.compaction.tasks import ConcatTask, OutputFile
from acidctl.errors import BadDataError, RefusedError
from acidctl.location.snapshot import Snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.rows.foreign.format import read_any_tail
from acidctl.rows.foreign.parquet_and_text import BYTE_ORDER_MARK, text_extension
from acidctl.rows.read.events import EventFile
from acidctl.storage.port import FileSystem

_LINE_FEED = b"\n"


def require_plain_lines(snapshot: Snapshot, sources: Sequence[EventFile]) -> None:
    """Refuse text files that cannot be concatenated.

    Raises:
        RefusedError: no metastore describes their lines, some lines are not rows, or a file is compressed.
    """
    what, hint = f"cannot compact {snapshot.fs.display(snapshot.path)}", "let Hive compact it"
    layout = snapshot.declared.text if snapshot.declared else None
    if layout is None:
        raise RefusedError(
            what,
            f"{snapshot.display(sources[0].file.path)} is text",
            "which of its lines are rows is known to the metastore alone: give `metastore`, or let Hive compact it",
        )
    if layout.header or layout.footer:
        lines = f"{layout.header} at the top and {layout.footer} at the end"
        raise RefusedError(what, f"some lines of each of its files are no rows: {lines}", hint)
    for source in sources:
        if extension := text_extension(source.path):
            why = f"{snapshot.display(source.file.path)} is compressed text ({extension})"
            raise RefusedError(what, why, f"acidctl puts plain text together; {hint}")


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
