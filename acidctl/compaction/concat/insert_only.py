"""Compaction of insert-only tables (format sections 8.5 and 11): files of the same bucket are concatenated.

There are no synthetic columns and no deletes: all rows of a file count if its directory is current, so a compaction
only concatenates. Its directories get no ``_orc_acid_version``. A base without a visibility id does get
``_metadata_acid``: the rules that choose a base (section 6.2) are the same for all tables, and without the marker the
base would be an INSERT OVERWRITE: valid although older write ids are open, and silently absent for readers whose
snapshot does not include its write id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.base.errors import BadDataError, RefusedError
from acidctl.compaction.concat.orc import write_orc
from acidctl.compaction.concat.parquet import write_parquet
from acidctl.compaction.merge.agreement import refuse_differing
from acidctl.compaction.merge.row_type import output_row_type
from acidctl.compaction.output_settings import Writing, calendar_of, inputs_of
from acidctl.compaction.proof.checksum import RowProof
from acidctl.compaction.proof.sent import SummedSink, Taken, mismatch, require_bytes, take
from acidctl.compaction.tasks import BucketResult, ConcatTask, Input, OutputFile
from acidctl.location.metastore_schema import Declared
from acidctl.location.snapshot import Snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.hive_types import row_type_of
from acidctl.orc.types import OrcType
from acidctl.orc.write.bloom import bloom_ids
from acidctl.rows.convert.matching import merge_row_types
from acidctl.rows.foreign.format import Format, read_any_tail
from acidctl.rows.foreign.parquet_and_text import BYTE_ORDER_MARK, text_extension
from acidctl.rows.read.events import EventFile
from acidctl.storage import registry
from acidctl.storage.port import FileSystem


def concat_tasks(
    snapshot: Snapshot,
    kind: CompactionKind,
    sources: Sequence[EventFile],
    attempts: str,
    writing: Writing,
) -> list[ConcatTask]:
    """Return the tasks of one location, one per bucket number.

    Args:
        kind: decides the size of stripes.
        sources: the files, in read order, none with ACID columns; a file without a number in its name goes to bucket 0.
        attempts: absolute path of the directory for outputs.
        writing: if it overrides settings of ORC, no stripe is copied.

    Raises:
        RefusedError: the files have several formats, or are text that cannot be concatenated; or settings of ORC are
            given for files of another format.
    """
    if not sources:
        return []
    format_ = _format_of(snapshot, sources)
    if format_ is Format.TEXT:
        require_plain_lines(snapshot, sources)
    by_age = sorted(sources, key=lambda source: source.file.max_write_id)
    # Hive also writes empty files without columns.
    types = [source.row_type for source in by_age if source.rows] or [by_age[-1].row_type]
    # Parquet and text have their own conversions, which refuse what they cannot convert.
    row = output_row_type(snapshot, types) if format_ is Format.ORC else merge_row_types(types)
    if format_ is Format.PARQUET:
        _require_known_widths(snapshot, types, row)
    refuse_differing(snapshot, sources, row, writing.reader)
    if writing.overrides and format_ is not Format.ORC:
        raise RefusedError(
            f"cannot compact {snapshot.fs.display(snapshot.path)} with these settings",
            f"its files are {format_}, and settings such as compression and stripe size are ORC's",
            "leave them out: the newest file's are taken",
        )
    settings = writing.settings_for(by_age[-1], kind)
    bloom_ids(settings.bloom_columns, row)
    tasks = []
    for bucket in sorted({_bucket(source) for source in sources}):
        files = [source for source in sources if _bucket(source) == bucket]
        filled = [source for source in files if source.rows]
        tasks.append(
            ConcatTask(
                storage=snapshot.fs.spec,
                bucket=bucket,
                sources=inputs_of(files),
                attempts=attempts,
                format=format_,
                row=row,
                settings=settings,
                calendar=calendar_of(filled),
                verify=writing.verify,
                reader=writing.reader,
                weight=sum(source.file.size for source in files),
                may_copy=not writing.overrides,
                declared=snapshot.declared if format_ is Format.TEXT else None,
                rows=sum(source.rows for source in files),
            )
        )
    return tasks


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


def _format_of(snapshot: Snapshot, sources: Sequence[EventFile]) -> Format:
    shown = snapshot.fs.display(snapshot.path)
    examples: dict[Format, EventFile] = {}
    for source in sources:
        examples.setdefault(source.format, source)
    if len(examples) > 1:
        listed = [f"{snapshot.display(source.file.path)} is {format_}" for format_, source in examples.items()]
        raise RefusedError(
            f"cannot compact {shown}",
            ", ".join(listed),
            "one file cannot hold both; let Hive compact it, which knows the format of each partition",
        )
    return sources[0].format


def _require_known_widths(snapshot: Snapshot, types: Sequence[OrcType], row: OrcType) -> None:
    """Refuse Parquet files of different types unless the table has the result's type: Hive converts each file."""
    result, table = dict(_leaves(row)), dict(_leaves(row_type_of(snapshot.table_columns)))
    for name, kind in (leaf for row_type in dict.fromkeys(types) for leaf in _leaves(row_type)):
        if result.get(name, kind) not in (kind, table.get(name)):
            raise RefusedError(
                f"cannot compact {snapshot.fs.display(snapshot.path)}",
                f"column {name} is {kind} in one Parquet file and {result[name]} in the newest, and the table"
                f" {f'has {table[name]}' if name in table else 'is unknown'}: Hive may convert the two differently",
                "name the table as its metastore has it, `hive:db.table`, or let Hive compact it",
            )


def _leaves(node: OrcType, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the name and kind of each column without children; in a list or map its position is the name."""
    if not node.children:
        yield name, node.kind
    for part, child in zip(node.names or map(str, range(len(node.children))), node.children, strict=True):
        yield from _leaves(child, f"{name}.{part.lower()}".lstrip("."))


def _bucket(source: EventFile) -> int:
    return max(source.file.bucket, 0)


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
