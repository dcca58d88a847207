"""`acidctl cat`: the rows that a reader would see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acidctl.cli.inspect.rows_out import EXPORT_FORMS
from acidctl.cli.options.places import DIRECTORY, NEW_FILE
from acidctl.cli.options.shared import (
    WHOLE_FILE,
    columns_option,
    examples,
    limit_option,
    output_option,
    snapshot_options,
    storage_options,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from acidctl.location.lists import SnapshotLists
    from acidctl.location.snapshot import Snapshot
    from acidctl.rows.read.visibility import Loss


@click.command(
    "cat",
    epilog=examples(
        "acidctl cat orders --limit 10",
        "acidctl cat orders --partition day=2024-02-29 --columns id,address.city --where 'id > 100'",
        "acidctl cat orders --deleted --row-id --where 'ROW__ID.writeid = 12'",
        "acidctl cat orders --at 11 --count",
        "acidctl cat --write-ids 'sales.orders:12:9:9:7' -o parquet --out orders.parquet orders",
    ),
)
@click.argument("location", metavar="LOCATION|TABLE", type=DIRECTORY)
@click.option("--row-id", is_flag=True, help="Put ROW__ID first: writeid, bucketid, rowid.")
@columns_option
@click.option(
    "--where",
    metavar="CONDITION",
    help="Only rows that meet a condition in SQL.",
)
@click.option(
    "--partition", "partitions", multiple=True, metavar="KEY=VALUE", help="Only partitions of this value. Repeatable."
)
@click.option(
    "--at", type=click.IntRange(min=0), metavar="WRITE_ID", help="The rows when this write id was the newest."
)
@click.option("--deleted", is_flag=True, help="The rows that deletes and updates removed, not those that are left.")
@click.option("--count", is_flag=True, help="Print the number of rows only.")
@limit_option
@snapshot_options
@storage_options
@output_option(*EXPORT_FORMS, default="jsonl")
@click.option("--out", type=NEW_FILE, metavar="PATH", help=WHOLE_FILE)
@click.option("--to", type=NEW_FILE, metavar="PATH", hidden=True, help="What --out was called.")
@click.option("--skip-bad-files", is_flag=True, help="Go on without what cannot be read; say so, and fail, at the end.")
def command(
    location: str,
    row_id: bool,
    columns: list[str] | None,
    where: str | None,
    partitions: tuple[str, ...],
    at: int | None,
    deleted: bool,
    count: bool,
    limit: int | None,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
    out: str | None,
    to: str | None,
    skip_bad_files: bool,
) -> None:
    """Print the rows of a LOCATION or a TABLE with all its partitions, deletes applied, as a reader of the snapshot
    would return them.

    Without --write-ids every write id on disk counts as committed. The rows come file by file: base, originals, then
    deltas in Hive's order. Partition columns come last; they are numbers or dates if all their values are spelled so.

    Conditions are SQL: = <> < <= > >= IN BETWEEN LIKE IS NULL AND OR NOT, with numbers, 'text', dates and timestamps.
    """
    from acidctl.cli.inspect.rows_out import begin_document, form_of, write_rows
    from acidctl.cli.options.shared import refuse_unused
    from acidctl.cli.output.console import note, put_line
    from acidctl.cli.output.odd_layouts import tell
    from acidctl.errors import UsageProblem
    from acidctl.rows.scan.table import table_at
    from acidctl.wording import text_of

    if out is not None and to is not None:
        raise UsageProblem("--out and --to are one option", "", "leave --to out")
    out = to if out is None else out
    if count and (out is not None or columns is not None or row_id):
        raise UsageProblem("--count prints one number", "", "leave --out, --columns and --row-id out")
    if count:
        refuse_unused("--count", "output")
    output = form_of(output, out, EXPORT_FORMS)
    begin_document("" if count else output, out)
    wanted = _partition(partitions)
    losses: list[Loss] = []
    table = table_at(location, storage, lists)
    scan = table.scan(
        columns,
        where,
        at=at,
        row_id=row_id,
        deleted=deleted,
        partition=wanted,
        on_loss=losses.append if skip_bad_files else None,
    )
    for text in dict.fromkeys(text_of(one) for snapshot in scan.snapshots for one in snapshot.state.notes):
        note(text)
    newest = _newest(scan.snapshots)
    if at is not None and newest < at:
        note(f"write id {at} is beyond the newest one here, {newest}: these are the rows of now")
    tell(scan.warnings)
    if count:
        found = scan.count()
        put_line(str(found if limit is None else min(found, limit)))
    else:
        write_rows(scan.batches_as_read(limit), output, scan.output_type, scan.declared, out)
    if losses:
        _fail(losses)


def _newest(snapshots: Iterable[Snapshot]) -> int:
    """The greatest write id in the names of the directories, read or not; 0 without any."""
    directories = [v.directory for snapshot in snapshots for v in snapshot.state.verdicts if v.directory]
    return max((directory.max_write_id for directory in directories), default=0)


def _partition(given: Iterable[str]) -> dict[str, str | int | None]:
    """The values by key, unescaped as the names of directories are not."""
    wanted: dict[str, str | int | None] = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{item!r} is not KEY=VALUE", param_hint="--partition")
        if wanted.get(key, value) != value:
            raise click.BadParameter(f"{key} cannot be both {wanted[key]} and {value}", param_hint="--partition")
        wanted[key] = value
    return wanted


def _fail(losses: list[Loss]) -> None:
    """Name every file that was skipped, wholly or in part, and fail."""
    from acidctl.cli.output.console import out_stream, warn
    from acidctl.errors import BadDataError

    out_stream().flush()
    files: dict[tuple[str, bool], list[Loss]] = {}
    for loss in losses:
        files.setdefault((loss.path, loss.deletes), []).append(loss)
    for (path, deletes), parts in files.items():
        known = None if any(part.rows is None for part in parts) else sum(part.rows or 0 for part in parts)
        number = "an unknown number of" if known is None else str(known)
        what = f"{number} delete events are lost: deleted rows may show" if deletes else f"{number} rows are lost"
        warn(f"skipped {path}: {what} ({parts[0].error})")
    raise BadDataError(
        f"{len(files)} {'file' if len(files) == 1 else 'files'} could not be read, wholly or in part",
        "what is printed is incomplete",
        "restore the files named above",
    )
