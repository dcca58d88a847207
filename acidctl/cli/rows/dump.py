"""`acidctl dump`: the events of ORC files with their synthetic columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, BadDataError, NotFoundError, UsageProblem
from acidctl.base.guardian import NOTES
from acidctl.base.nearest import did_you_mean
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import COUNT_OR_NONE, FILE
from acidctl.cli.output.console import note
from acidctl.cli.report.outcomes import RunReporter
from acidctl.location.walk import walk_locations
from acidctl.storage.registry import naming_near, open_location

if TYPE_CHECKING:
    import pyarrow as pa

    from acidctl.orc.types import OrcType
    from acidctl.rows.read.events import EventFile
    from acidctl.rows.scan.predicate import Predicate
    from acidctl.storage.port import FileSystem

DECODED = ("operationName", "bucketId", "statementId")


@shared.command(
    "dump",
    "acidctl dump delta_0000001_0000001_0000/bucket_00000",
    "acidctl dump --decode --where 'operation = 2 AND originalTransaction >= 10' orders",
    "acidctl dump --columns rowId,row.id -o csv base_0000003",
)
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR...", type=FILE)
@click.option("--decode", is_flag=True, help="Add the operation's name, and the bucket and statement id of `bucket`.")
@shared.columns_option
@click.option("--where", metavar="CONDITION", help="Only events whose synthetic columns meet a condition in SQL.")
@shared.limit_option
@click.option("--offset", type=COUNT_OR_NONE, default=0, help="Skip the first N rows.")
@shared.storage_options
@shared.output_option(*shared.ROW_FORMS, default="jsonl")
@shared.runs(pages=True, isolates=False)
def command(
    *,
    paths: tuple[str, ...],
    decode: bool,
    columns: list[str] | None,
    where: str | None,
    limit: int | None,
    offset: int,
    storage: dict[str, str],
    output: str,
) -> int:
    """Print every event of the files at FILE or below DIR, deleted and aborted ones included.

    The lines are those of `hive --orcfiledump -d`. Files without synthetic columns (originals, LOAD DATA) get those
    that readers would give them. What a reader would see is printed by `acidctl cat`.
    """
    from acidctl.cli.rows.rows_out import begin_document, write_rows  # noqa: PLC0415 - --help does without
    from acidctl.rows.read.files_at_path import event_files_at  # noqa: PLC0415 - --help does without
    from acidctl.rows.read.selection import limited  # noqa: PLC0415 - --help does without

    begin_document(output)
    visits = RunReporter()
    sources: list[EventFile] = []
    with NOTES.isolated():
        for path in paths:
            try:
                fs, inner = open_location(path, storage)
                for place in _places(fs, inner):
                    found = event_files_at(fs, place, lambda error: visits.failed("", error))
                    sources += found
                    if not found and not visits.status:
                        note(f"{fs.display(place)} holds no events")
            except AcidctlError as error:
                if len(paths) == 1:
                    raise
                visits.failed("", error)
    selection = _Selection(sources, columns, where, decode, lambda error: visits.failed("", error))
    batches = limited(selection.batches(None if limit is None else offset + limit), limit, offset)
    with NOTES.isolated() if len(sources) > 1 else nullcontext():
        write_rows(batches, output, selection.types, selection.schema)
    return visits.status


def _places(fs: FileSystem, path: str) -> list[str]:
    """Return the path itself, or for a partitioned table the paths of its partitions."""
    with naming_near(fs, path):
        if not fs.stat(path).is_dir:
            return [path]
    locations = [location for location, _ in walk_locations(fs, path)]
    tables = sorted({location.table for location in locations})
    if len(tables) > 1:
        raise UsageProblem(
            f"{fs.display(path)} holds several tables", f"there are {', '.join(tables[:5])}", "give one of them"
        )
    return [location.path for location in locations] if len(locations) > 1 else [path]


class _Selection:
    def __init__(
        self,
        sources: Sequence[EventFile],
        columns: list[str] | None,
        where: str | None,
        decode: bool,
        on_error: Callable[[AcidctlError], None],
    ) -> None:
        import pyarrow as pa  # noqa: PLC0415 - --help does without

        from acidctl.orc.types import OrcType, arrow_type, row_of  # noqa: PLC0415 - --help does without
        from acidctl.rows.convert.matching import merge_row_types  # noqa: PLC0415 - --help does without
        from acidctl.rows.read.events import ID_COLUMNS  # noqa: PLC0415 - --help does without

        self._sources, self._on_error = sources, on_error
        self._decode = decode
        rows = merge_row_types([source.row_type for source in sources] or [OrcType("struct")])
        names = [*ID_COLUMNS, *(DECODED if decode else ())]
        kinds = ["int", "bigint", "int", "bigint", "bigint", *(("string", "int", "int") if decode else ())]
        self._ids, self._row_fields = _chosen(columns, names, rows)
        self._wants_rows = self._row_fields is None or bool(self._row_fields)
        self._predicate = _predicate(where, names, kinds)
        self._rows = rows
        fields = [(name, OrcType(kinds[names.index(name)])) for name in self._ids]
        if self._wants_rows:
            kept = [(n, t) for n, t in rows.fields() if self._row_fields is None or n in self._row_fields]
            fields.append(("row", row_of(kept)))
        self.types: OrcType = row_of(fields)
        self.schema: pa.Schema = pa.schema(list(arrow_type(self.types)))

    def batches(self, wanted: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the events by stripe; a few `wanted` events are read without the rest of their stripe if possible."""
        from acidctl.rows.read.events import ids_batch  # noqa: PLC0415 - --help does without

        for number, source in enumerate(self._sources):
            try:
                few = None if number or self._predicate or not wanted else self._first(source, wanted)
                if few is not None:
                    yield few
                    return
                with source.open() as events:
                    for stripe in range(events.stripes):
                        batch = events.batch(stripe) if self._wants_rows else ids_batch(events.ids(stripe))
                        batch = _decoded(batch) if self._decode else batch
                        yield self._project(self._predicate.apply(batch) if self._predicate else batch, source)
            except BadDataError as error:
                if len(self._sources) == 1:
                    raise
                self._on_error(error)

    def _first(self, source: EventFile, wanted: int) -> pa.RecordBatch | None:
        from acidctl.rows.read.events import ids_batch, read_ids  # noqa: PLC0415 - --help does without

        with source.open() as events:
            few = events.first(wanted)
        if few is None:
            return None
        if not self._wants_rows:
            few = ids_batch(read_ids(few, source.fs.display(source.path)))
        return self._project(_decoded(few) if self._decode else few, source)

    def _project(self, batch: pa.RecordBatch, source: EventFile) -> pa.RecordBatch:
        import pyarrow as pa  # noqa: PLC0415 - --help does without

        from acidctl.rows.convert.conform import How, select_fields  # noqa: PLC0415 - --help does without
        from acidctl.rows.foreign.format import Format  # noqa: PLC0415 - --help does without

        arrays = [batch.column(name) for name in self._ids]
        names = list(self._ids)
        if self._wants_rows:
            rows = batch.column("row")
            if self._row_fields is not None:
                rows = select_fields(
                    rows,
                    source.row_type,
                    self._row_fields,
                    self._rows,
                    source.fs.display(source.path),
                    how=How(parquet=source.format is Format.PARQUET),
                )
            arrays.append(rows)
            names.append("row")
        return pa.RecordBatch.from_arrays(arrays, names=names)


def _chosen(columns: list[str] | None, names: Sequence[str], rows: OrcType) -> tuple[list[str], list[str] | None]:
    """Return the chosen synthetic columns and fields of `row`; None for all fields."""
    if columns is None:
        return list(names), None
    synthetic = {name.lower(): name for name in names}
    fields = {f"row.{name}".lower(): name for name in rows.names}
    ids: list[str] = []
    chosen: list[str] | None = []
    for column in columns:
        key = column.lower()
        if key in synthetic:
            ids.append(synthetic[key])
        elif key == "row":
            chosen = None
        elif key in fields:
            if chosen is not None:
                chosen.append(fields[key])
        else:
            known = [*synthetic.values(), "row", *(f"row.{name}" for name in rows.names)]
            what = f"no column {column!r} in these files"
            raise NotFoundError(what, f"there are {', '.join(known)}", did_you_mean(column, known))
    return ids, chosen


def _predicate(where: str | None, names: Sequence[str], kinds: Sequence[str]) -> Predicate | None:
    from acidctl.orc.types import OrcType  # noqa: PLC0415 - --help does without

    if where is None:
        return None
    from acidctl.rows.scan.condition import parse_condition  # noqa: PLC0415 - with sqlglot: only for a condition

    return parse_condition(where, OrcType("struct", children=tuple(map(OrcType, kinds)), names=tuple(names)))


def _decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with the decoded columns before `row`; they are -1 if the codec is unknown."""
    import numpy as np  # noqa: PLC0415 - --help does without
    import pyarrow as pa  # noqa: PLC0415 - --help does without

    from acidctl.rows.read.bucket_numbers import decode_all  # noqa: PLC0415 - --help does without

    parts = decode_all(batch.column("bucket").to_numpy(zero_copy_only=False))
    operation = batch.column("operation").to_numpy(zero_copy_only=False)
    names = pa.array(["INSERT", "UPDATE", "DELETE", "UNKNOWN"])
    place = np.where((operation >= 0) & (operation <= 2), operation, 3)
    columns = {name: batch.column(name) for name in batch.schema.names if name != "row"}
    columns |= {"operationName": names.take(pa.array(place)), "bucketId": pa.array(parts.bucket, pa.int32())}
    columns["statementId"] = pa.array(parts.statement, pa.int32())
    if "row" in batch.schema.names:
        columns["row"] = batch.column("row")
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
