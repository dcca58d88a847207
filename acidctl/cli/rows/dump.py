"""`acidctl dump`: Print the events of ORC files with synthetic columns."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError
from acidctl.base.guardian import NOTES
from acidctl.cli.options import shared
from acidctl.cli.options.param_types import FILE
from acidctl.cli.output.console import note
from acidctl.cli.report.outcomes import RunReporter
from acidctl.storage.registry import open_location

if TYPE_CHECKING:
    from acidctl.rows.read.events import EventFile


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
    storage: dict[str, str],
    output: str,
) -> int:
    """Print every event of the files at FILE or below DIR, deleted and aborted ones included.

    The lines are those of `hive --orcfiledump -d`. Files without synthetic columns (originals, LOAD DATA) get those
    that readers would give them. What a reader would see is printed by `acidctl cat`.
    """
    from acidctl.cli.rows.rows_out import begin_document, write_rows  # noqa: PLC0415 - --help does without
    from acidctl.rows.read.selection import limited  # noqa: PLC0415 - --help does without
    from acidctl.verbs.dump import EventDump, files_below  # noqa: PLC0415 - --help does without

    begin_document(output)
    visits = RunReporter()
    sources: list[EventFile] = []

    def failed(error: AcidctlError) -> None:
        visits.failed("", error)

    def empty(shown: str) -> None:
        if not visits.status:
            note(f"{shown} holds no events")

    with NOTES.isolated():
        for path in paths:
            try:
                sources += files_below(*open_location(path, storage), failed, empty)
            except AcidctlError as error:
                if len(paths) == 1:
                    raise
                failed(error)
    events = EventDump(sources, columns, where, decode=decode, on_error=failed)
    with NOTES.isolated() if len(sources) > 1 else nullcontext():
        write_rows(limited(events.batches(limit), limit), output, events.types)
    return visits.status
