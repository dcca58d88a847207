"""`acidctl cat`: Print the rows that readers see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.cli.options import shared
from acidctl.cli.options.local_completion import complete_partitions
from acidctl.cli.options.param_types import LOCATION, NEW_FILE, WRITE_ID
from acidctl.cli.options.shared import EXPORT_FORMS, is_default, refuse_unused
from acidctl.cli.output.console import note, out_stream, put_json, put_line, warn, warn_of
from acidctl.cli.output.progress import progress
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.wording import human_count, text_of

if TYPE_CHECKING:
    from acidctl.rows.read.visibility import Loss
    from acidctl.rows.scan.table import TableScan


@shared.command(
    "cat",
    "acidctl cat orders --limit 10",
    "acidctl cat orders --partition day=2024-02-29 --columns id,address.city --where 'id > 100'",
    "acidctl cat orders --deleted --row-id --where 'ROW__ID.writeid = 12'",
    "acidctl cat orders --at 11 --count",
    "acidctl cat orders --checksum > before.json",
    "acidctl cat -x --limit 1 orders",
    "acidctl cat --snapshot 'sales.orders:12:9:9:7' -o parquet --out orders.parquet orders",
)
@click.argument("location", metavar="LOCATION|TABLE", type=LOCATION)
@click.option("--row-id", is_flag=True, help="Put ROW__ID first: writeid, bucketid, rowid.")
@shared.columns_option
@click.option("--where", metavar="CONDITION", help="Only rows that meet a condition in SQL.")
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="KEY=VALUE",
    shell_complete=complete_partitions,
    help="Only partitions of this value. Repeatable.",
)
@click.option("--at", type=WRITE_ID, help="The rows when this write id was the newest.")
@click.option("--deleted", is_flag=True, help="Print the rows that deletes and updates removed instead.")
@click.option("--count", is_flag=True, help="Print only the number of rows.")
@click.option(
    "--checksum", is_flag=True, help="Print only a checksum of the rows, which does not depend on their order or files."
)
@shared.limit_option
@click.option(
    "-x/-X",
    "--record/--no-record",
    "record",
    default=None,
    help="With -o table: a line for every value (default: if rows are wider than the terminal).",
)
@shared.reading_options(*shared.EXPORT_FORMS, default="jsonl", more=("read_lock",))
@click.option("--out", type=NEW_FILE, metavar="PATH", help=shared.WHOLE_FILE)
@click.option("--skip-bad-files", is_flag=True, help="Skip what cannot be read; report it and fail at the end.")
@shared.runs(pages=True, isolates="skip_bad_files")
def command(
    *,
    location: str,
    row_id: bool,
    columns: list[str] | None,
    where: str | None,
    partitions: tuple[str, ...],
    at: int | None,
    deleted: bool,
    count: bool,
    checksum: bool,
    limit: int | None,
    record: bool | None,
    resolver: SnapshotResolver,
    storage: dict[str, str],
    output: str,
    out: str | None,
    skip_bad_files: bool,
) -> None:
    """Print the rows of a LOCATION or a TABLE with all its partitions, deletes applied, as a reader of the snapshot
    would return them.

    Without --snapshot every write id on disk counts as committed. The rows come file by file: base, originals, then
    deltas in Hive's order. Partition columns come last; they are numbers or dates if all their values are spelled so.

    Conditions are SQL: = <> < <= > >= IN BETWEEN LIKE IS NULL AND OR NOT, with numbers, 'text', dates and timestamps.
    """
    from acidctl.cli.rows.rows_out import begin_document, form_of, write_rows  # noqa: PLC0415 - --help does without
    from acidctl.rows.scan.table import table_at  # noqa: PLC0415 - --help does without

    if count and (out is not None or columns is not None or row_id):
        raise UsageProblem("--count prints one number", "", "leave --out, --columns and --row-id out")
    if count:
        refuse_unused("--count", "output")
    if checksum:
        refuse_unused("--checksum", "output", "count", "row_id", "limit", "record", "out", "skip_bad_files")
    if record and not count and out is None and is_default("output"):
        output = "table"
    output = form_of(output, out, EXPORT_FORMS)
    if count or output != "table":
        refuse_unused("--count" if count else f"-o {output}", "record")
    begin_document("" if count or checksum else output, out)
    wanted = _partition(partitions)
    losses: list[Loss] = []
    table = table_at(location, storage, resolver)
    scan = table.scan(
        columns,
        where,
        at=at,
        row_id=row_id or checksum,
        deleted=deleted,
        partition=wanted,
        on_loss=losses.append if skip_bad_files else None,
        skip_hint="--skip-bad-files (on_loss in Python) reads the rest",
    )
    for text in dict.fromkeys(map(text_of, scan.notes)):
        note(text)
    if at is not None and scan.newest < at:
        note(f"write id {at} is beyond the newest one here, {scan.newest}: these are the rows of now")
    warn_of(scan.warnings)
    if count:
        _put_count(scan, limit)
    elif checksum:
        _put_checksum(scan)
    else:
        write_rows(scan.batches_as_read(limit), output, scan.output_type, out, record=record)
    if losses:
        _fail_for_losses(losses)


def _put_count(scan: TableScan, limit: int | None) -> None:
    count = 0
    with progress("counting rows") as bar:
        for rows in scan.counts():
            count += rows
            bar.advance(rows)
    put_line(str(count if limit is None else min(count, limit)))


def _put_checksum(scan: TableScan) -> None:
    from acidctl.compaction.proof.values import row_digest  # noqa: PLC0415 - only for --checksum

    digest = row_digest(scan)
    record = {"rows": digest.rows, "values": digest.values, "rowIds": digest.row_ids, "columns": digest.columns}
    put_json(record, lines=False)


def _partition(given: Iterable[str]) -> dict[str, str | int | None]:
    """Return the wanted values by key, which are unescaped, unlike names of directories."""
    wanted: dict[str, str | int | None] = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{item!r} is not KEY=VALUE", param_hint="--partition")
        if wanted.get(key, value) != value:
            raise click.BadParameter(f"{key} cannot be both {wanted[key]} and {value}", param_hint="--partition")
        wanted[key] = value
    return wanted


def _fail_for_losses(losses: list[Loss]) -> None:
    out_stream().flush()
    files: dict[tuple[str, bool], list[Loss]] = {}
    for loss in losses:
        files.setdefault((loss.path, loss.deletes), []).append(loss)
    for (path, deletes), parts in files.items():
        is_unknown = any(part.rows is None for part in parts)
        number = "an unknown number of" if is_unknown else str(sum(part.rows or 0 for part in parts))
        what = f"{number} delete events are lost: deleted rows may show" if deletes else f"{number} rows are lost"
        warn(f"skipped {path}: {what} ({parts[0].error})")
    raise BadDataError(
        f"{human_count(len(files), 'file')} could not be read, wholly or in part",
        "what is printed is incomplete",
        "restore the files named above",
    )
