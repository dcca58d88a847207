"""`acidctl cat`: Print the rows that readers see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acidctl.base.errors import BadDataError, UsageProblem
from acidctl.cli.options import shared
from acidctl.cli.options.shared import EXPORT_FORMS, refuse_unused
from acidctl.cli.options.verb_command import Call, verb_command
from acidctl.cli.output.console import note, out_stream, put_json, put_line, warn, warn_of
from acidctl.cli.output.progress import progress
from acidctl.verbs.reading.cat import CatOptions, cat
from acidctl.wording import human_count, text_of

if TYPE_CHECKING:
    from acidctl.rows.read.visibility import Loss


@verb_command(
    "cat",
    CatOptions,
    place=shared.one_place("LOCATION|TABLE"),
    forms=EXPORT_FORMS,
    source=shared.snapshot_of("read_lock"),
    extras=(
        click.option("--count", is_flag=True, help="Print only the number of rows."),
        click.option(
            "--checksum",
            is_flag=True,
            help="Print only a checksum of the rows, which does not depend on their order or files.",
        ),
        shared.table_type_option,
        shared.limit_option,
        click.option("--skip-bad-files", is_flag=True, help="Skip what cannot be read; report it and fail at the end."),
    ),
    isolates="skip_bad_files",
)
def command(call: Call[CatOptions], *, count: bool, checksum: bool, limit: int | None, skip_bad_files: bool) -> None:
    """Print the rows of a LOCATION or a TABLE with all its partitions, deletes applied, as a reader of the snapshot
    would return them.

    Without --snapshot every write id on disk counts as committed. The rows come file by file: base, originals, then
    deltas in Hive's order. Partition columns come last; they are numbers or dates if all their values are spelled so.

    Conditions are SQL: = <> < <= > >= IN BETWEEN LIKE IS NULL AND OR NOT, with numbers, 'text', dates and timestamps.
    """
    from acidctl.cli.rows.rows_out import begin_document, write_rows

    options = call.options
    if count and (options.columns is not None or options.row_id):
        raise UsageProblem("--count prints one number", "", "leave --columns and --row-id out")
    if count:
        refuse_unused("--count", "output")
    if checksum:
        refuse_unused("--checksum", "output", "count", "row_id", "limit", "skip_bad_files")
    begin_document("" if count or checksum else call.output)
    losses: list[Loss] = []
    scan = cat(call.selection, options, losses.append if skip_bad_files else None, with_ids=checksum)
    for text in dict.fromkeys(map(text_of, scan.notes)):
        note(text)
    if isinstance(options.at, int) and scan.newest < options.at:
        note(f"write id {options.at} is beyond the newest one here, {scan.newest}: these are the rows of now")
    warn_of(scan.warnings)
    if count:
        rows = 0
        with progress("counting rows") as bar:
            for part in scan.counts():
                rows += part
                bar.advance(part)
        put_line(str(rows if limit is None else min(rows, limit)), is_answer=True)
    elif checksum:
        from acidctl.compaction.proof.values import row_digest

        digest = row_digest(scan)
        record = {"rows": digest.rows, "values": digest.values, "rowIds": digest.row_ids, "columns": digest.columns}
        put_json(record, lines=False)
    else:
        write_rows(scan.batches_as_read(limit), call.output, scan.output_type)
    if losses:
        _fail_for_losses(losses)


def _fail_for_losses(losses: list[Loss]) -> None:
    out_stream().flush()
    files: dict[tuple[str, bool], list[Loss]] = {}
    for loss in losses:
        files.setdefault((loss.path, loss.deletes), []).append(loss)
    for (path, deletes), parts in files.items():
        is_unknown = any(part.rows is None for part in parts)
        number = "an unknown number of" if is_unknown else str(sum(part.rows or 0 for part in parts))
        what = f"{number} delete events are not applied: deleted rows may show"
        if not deletes:
            what = "it cannot be read, and its rows are not shown" if is_unknown else f"{number} rows are not shown"
        warn(f"skipped {path}: {what} ({parts[0].error})")
    raise BadDataError(
        f"{human_count(len(files), 'file')} could not be read, wholly or in part",
        "what is printed is incomplete",
        "restore the files named above",
    )
