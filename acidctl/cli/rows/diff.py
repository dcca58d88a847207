"""`acidctl diff`: Print the rows that changed between two write ids."""

from __future__ import annotations

import click

from acidctl.base.errors import UsageProblem
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import LOCATION, NEW_FILE, WRITE_ID
from acidctl.cli.options.shared import ROW_FORMS, refuse_unused
from acidctl.cli.output.console import note, put_json, warn_of
from acidctl.location.snapshot_resolver import SnapshotResolver
from acidctl.wording import text_of


@shared.command(
    "diff",
    "acidctl diff orders --from 11 --to 12",
    "acidctl diff orders --from 11 --key id --columns id,status",
    "acidctl diff orders --from 11 --to 12 --count",
)
@click.argument("location", metavar="LOCATION|TABLE", type=LOCATION)
@click.option("--from", "start", type=WRITE_ID, required=True, help="Older write id.")
@click.option("--to", "end", type=WRITE_ID, help="Newer write id (default: newest).")
@click.option(
    "--key",
    metavar="COLUMNS",
    help="Key columns: a removed and an added row with the same key are shown as one update.",
)
@click.option("--row-id", is_flag=True, help="Put ROW__ID after the change.")
@shared.columns_option
@click.option("--count", is_flag=True, help="Print only the numbers of removed and added rows.")
@shared.reading_options(*shared.ROW_FORMS, default="jsonl", more=("read_lock",))
@click.option("--out", "to_file", type=NEW_FILE, metavar="PATH", help=shared.WHOLE_FILE)
@shared.runs(pages=True, isolates=False)
def command(
    *,
    location: str,
    start: int,
    end: int | None,
    key: str | None,
    row_id: bool,
    columns: list[str] | None,
    count: bool,
    resolver: SnapshotResolver,
    storage: dict[str, str],
    output: str,
    to_file: str | None,
) -> None:
    """Print the rows of a LOCATION or a TABLE that disappeared (-) and appeared (+) between two write ids, as
    `acidctl cat --at` would print them at either.

    An UPDATE takes away the old row and adds the new one. With --key the two are one line (~) with `old` and `new`, and
    all changed rows are held in memory. Status 10 once a compaction destroyed one of the snapshots.
    """
    from acidctl.cli.rows.rows_out import begin_document, form_of, write_rows  # noqa: PLC0415 - --help does without
    from acidctl.rows.past.diff import table_difference  # noqa: PLC0415 - --help does without
    from acidctl.rows.scan.table import table_at  # noqa: PLC0415 - --help does without

    if count and (key is not None or to_file is not None or columns is not None or row_id):
        raise UsageProblem("--count prints two numbers", "", "leave --key, --out, --columns and --row-id out")
    if count:
        refuse_unused("--count", "output")
    output = form_of(output, to_file, ROW_FORMS)
    begin_document("" if count else output, to_file)
    keys = [name.strip() for name in (key or "").split(",") if name.strip()]
    if key is not None and not keys:
        raise click.BadParameter("no column is named", param_hint="--key")
    if columns is not None:
        known = {name.lower() for name in columns}
        columns = [*(name for name in keys if name.lower() not in known), *columns]
    table = table_at(location, storage, resolver)
    found = table_difference(table, start, end, columns, row_id=row_id)
    for text in map(text_of, found.notes):
        note(text)
    warn_of(found.warnings)
    if count:
        gone, new = found.count()
        put_json({"disappeared": gone, "appeared": new, "snapshotSource": found.source.record}, lines=True)
    elif keys:
        write_rows(found.paired(keys), output, found.paired_type, to_file)
    else:
        write_rows(found.listed(), output, found.listed_type, to_file)
