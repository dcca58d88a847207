"""What `acidctl diff` does: compare two snapshots of a table, and write the rows that differ."""

from __future__ import annotations

from collections.abc import Sequence

import click
import pyarrow as pa

from acidctl.cli.options.shared import ROW_FORMS, refuse_unused
from acidctl.cli.output.console import note, put_json, warn_of
from acidctl.cli.rows.work.rows_out import begin_document, form_of, write_rows
from acidctl.errors import NotFoundError, UsageProblem
from acidctl.location.lists import SnapshotLists
from acidctl.orc.types import arrow_type
from acidctl.rows.past.diff import Difference, keyed_type, pair_by_key, table_difference
from acidctl.rows.scan.arrow_rows import one_table
from acidctl.rows.scan.table import table_at
from acidctl.wording import text_of


def work(
    *,
    location: str,
    start: int,
    end: int | None,
    key: str | None,
    row_id: bool,
    columns: list[str] | None,
    count: bool,
    lists: SnapshotLists,
    storage: dict[str, str],
    output: str,
    to_file: str | None,
) -> None:
    """Print the differences as asked."""
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
    table = table_at(location, storage, lists)
    found = table_difference(table, start, end, columns, row_id=row_id)
    for text in map(text_of, found.notes):
        note(text)
    warn_of(found.warnings)
    if count:
        gone, new = found.count()
        put_json({"disappeared": gone, "appeared": new, "snapshotSource": found.source.record}, lines=True)
    elif keys:
        _write_pairs(found, keys, output, to_file)
    else:
        types = found.listed_type
        write_rows(found.listed(), output, types, pa.schema(list(arrow_type(types))), to_file)


def _write_pairs(found: Difference, keys: Sequence[str], output: str, to_file: str | None) -> None:
    spelled = {name.lower(): name for name in reversed(found.schema.names)}
    for name in keys:
        if name.lower() not in spelled:
            raise NotFoundError(f"no column {name!r} for --key", f"there are {', '.join(found.schema.names)}")
    gone, new = (one_table(list(batches), found.schema) for batches in (found.gone(), found.new()))
    types = keyed_type(found.output_type)
    try:
        batches = list(pair_by_key(gone, new, [spelled[name.lower()] for name in keys], found.output_type))
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowInvalid) as error:
        what = f"--key {','.join(keys)} cannot be compared"
        raise UsageProblem(what, str(error), "name columns of simple types") from error
    write_rows(batches, output, types, pa.schema(list(arrow_type(types))), to_file)
