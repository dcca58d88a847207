"""Compaction of insert-only tables (format sections 8.5 and 11): files of the same bucket are put together.

There are no synthetic columns and no deletes: a file counts wholly when its directory is current, so a compaction is
nothing but concatenation.  Its directories get no ``_orc_acid_version``.  A base without a visibility id does get
``_metadata_acid``: the rules that choose a base (section 6.2) do not ask what kind of table it is, and without the
mark they would take the base for an INSERT OVERWRITE - valid although older write ids are open, absent without an
error for readers whose snapshot does not see its write id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acidctl.acid.compaction_kind import CompactionKind
from acidctl.compaction.concat.orc import write_orc
from acidctl.compaction.concat.parquet import write_parquet
from acidctl.compaction.concat.text import require_plain_lines, write_text
from acidctl.compaction.merge.differing import refuse_differing
from acidctl.compaction.merge.row_type import output_row_type
from acidctl.compaction.output_settings import Writing, calendar_of, inputs_of
from acidctl.compaction.tasks import BucketResult, ConcatTask, Input
from acidctl.errors import RefusedError
from acidctl.location.declared import Declared
from acidctl.location.snapshot import Snapshot
from acidctl.orc.byte_source import ByteSource
from acidctl.orc.hive_types import row_type_of
from acidctl.orc.types import OrcType
from acidctl.orc.write.bloom import bloom_ids
from acidctl.rows.convert.matching import merge_row_types
from acidctl.rows.foreign.format import Format, read_any_tail
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
    """The tasks of one location, one a bucket number.

    Args:
        kind: chooses the size of stripes.
        sources: the files to be put together, in read order, none with ACID columns; those whose name has no number
            go to bucket 0.
        attempts: absolute; where the outputs go.
        writing: with settings for ORC of the user's choice no stripe is copied.

    Raises:
        RefusedError: the files are of several formats, or text that cannot be put together; or there are settings of
            ORC for files of another format.
    """
    if not sources:
        return []
    format_ = _format_of(snapshot, sources)
    if format_ is Format.TEXT:
        require_plain_lines(snapshot, sources)
    by_age = sorted(sources, key=lambda source: source.file.max_write_id)
    # Hive writes empty files without columns, too.
    types = [source.row_type for source in by_age if source.rows] or [by_age[-1].row_type]
    # Parquet and text have conversions of their own, and say themselves what they cannot do.
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
        own = [source for source in sources if _bucket(source) == bucket]
        filled = [source for source in own if source.rows]
        tasks.append(
            ConcatTask(
                storage=snapshot.fs.spec,
                bucket=bucket,
                sources=inputs_of(own),
                attempts=attempts,
                format=format_,
                row=row,
                settings=settings,
                calendar=calendar_of(filled),
                verify=writing.verify,
                reader=writing.reader,
                weight=sum(source.file.size for source in own),
                may_copy=not writing.overrides,
                declared=snapshot.declared if format_ is Format.TEXT else None,
                rows=sum(source.rows for source in own),
            )
        )
    return tasks


def run_concat(task: ConcatTask) -> BucketResult:
    """Write the rows of one bucket to one file, and prove it; no file when there are no rows.

    Raises:
        BadDataError: an input cannot be read.
        RefusedError: the inputs cannot be put together without a change of meaning.
        VerifyError: what was written is not what was read.
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
    found = read_any_tail(ByteSource(fs, item.path, item.length), declared)
    return EventFile(fs, item.file, item.path, item.length, found.tail, item.synthetic, found.format, declared)


def _format_of(snapshot: Snapshot, sources: Sequence[EventFile]) -> Format:
    """The format of all files."""
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
    """Refuse Parquet files of different types, unless the table has the type of the result: Hive converts each file."""
    result, table = dict(_leaves(row)), dict(_leaves(row_type_of(snapshot.table_columns)))
    for name, kind in (leaf for own in dict.fromkeys(types) for leaf in _leaves(own)):
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
