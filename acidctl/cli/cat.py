"""`acidctl cat`: the rows that a reader would see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acidctl.cli.options import (
    DIRECTORY,
    columns_option,
    examples,
    limit_option,
    output_option,
    snapshot_options,
    storage_options,
)
from acidctl.cli.rows_out import ROW_FORMS

if TYPE_CHECKING:
    from acidctl.cli.locations import SnapshotLists


@click.command(
    "cat",
    epilog=examples(
        "acidctl cat orders --limit 10",
        "acidctl cat --row-id --columns id,value orders",
        "acidctl cat --write-ids 'sales.orders:12:9:9:7' -o parquet orders > orders.parquet",
    ),
)
@click.argument("location", metavar="LOCATION", type=DIRECTORY)
@click.option("--row-id", is_flag=True, help="Put ROW__ID first: writeid, bucketid, rowid.")
@columns_option
@limit_option
@snapshot_options
@storage_options
@output_option(*ROW_FORMS, default="jsonl")
def command(
    location: str,
    row_id: bool,
    columns: list[str] | None,
    limit: int | None,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
) -> None:
    """Print the rows of one LOCATION, deletes applied, as a reader of the snapshot would return them.

    Without --write-ids every write id on disk counts as committed. The rows come file by file: base, originals, then
    deltas in Hive's order.
    """
    from acidctl.cli.output import note
    from acidctl.cli.rows_out import limited, write_rows
    from acidctl.rows.scan import Scan
    from acidctl.storage.registry import open_location
    from acidctl.storage.snapshot import take_snapshot

    fs, path = open_location(location, storage)
    snapshot = take_snapshot(fs, path, lists.write_ids, lists.txns)
    scan = Scan(snapshot, columns, row_id=row_id)
    for text in snapshot.state.notes:
        note(text)
    write_rows(limited(scan.batches(), limit), output, scan.output_type, scan.schema)
