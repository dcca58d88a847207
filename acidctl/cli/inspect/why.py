"""`acidctl why`: Explain a directory's state, and what cleaning waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from acidctl.base.errors import AcidctlError, UsageProblem
from acidctl.cli.options import shared
from acidctl.cli.options.local_completion import complete_entries
from acidctl.cli.options.param_types import LOCATION

if TYPE_CHECKING:
    from acidctl.location.snapshot_resolver import SnapshotResolver


@shared.command(
    "why",
    "acidctl why /warehouse/sales.db/orders",
    "acidctl why orders delta_0000003_0000003_0000",
    "acidctl why --snapshot 'txns=900:880:880:$sales.orders:12:9:9:7' orders base_0000010",
    "acidctl why -o json orders | jq '.[].proofs[] | select(.cleaning.may == \"kept-back\") | .cleaning.next'",
)
@click.argument("location", metavar="LOCATION", type=LOCATION)
@click.argument("names", nargs=-1, metavar="[NAME...]", shell_complete=complete_entries)
@shared.reading_options("table", "json", "jsonl", default="table", more=())
@shared.runs(pages=True)
def command(
    *, location: str, names: tuple[str, ...], resolver: SnapshotResolver, storage: dict[str, str], output: str
) -> int:
    """Explain the state of every directory of LOCATION, or in more detail of those that are named.

    It says which base is read and why no other, what takes a directory's place, which write id, transaction or missing
    history blocks it, and whether cleaning may take it, or what must happen first. A snapshot that is refused for "not
    enough history" is explained, too.

    NAME is a directory or a file of the location; its numbers may be written without zeros.
    """
    from acidctl.cli.inspect.proof_lines import LocationProof  # noqa: PLC0415 - --help does without
    from acidctl.cli.output.console import Records, note  # noqa: PLC0415 - as above
    from acidctl.cli.report.outcomes import RunReporter  # noqa: PLC0415 - as above
    from acidctl.location.find import find  # noqa: PLC0415 - as above
    from acidctl.rows.scan.odd_layout import odd_layout  # noqa: PLC0415 - as above
    from acidctl.wording import text_of  # noqa: PLC0415 - as above

    visits = RunReporter()
    records = Records(output)
    seen, below = 0, ""
    for found in find((location,), storage, resolver, visits.observer):
        if names and not found.is_given:
            below = below or found.shown
            continue
        try:
            snapshot = visits.readable(found).snapshot(readers=True)
            report = LocationProof(snapshot, names)
        except AcidctlError as error:
            if found.is_given:
                raise
            visits.failed(found.shown, error)
            continue
        visits.remember(map(text_of, snapshot.state.notes) if output == "table" else (), odd_layout(snapshot))
        if output == "table":
            report.print(blank=seen > 0)
        else:
            records.put(report.record())
        seen += 1
        if names:
            break
    if below and not seen:
        raise UsageProblem(
            f"{location} is not a location", f"{below} is one below it", "give the one that holds the NAME"
        )
    if output == "table" and not seen and not visits.status:
        note("no table was found there")
    visits.tell_notes()
    visits.tell_gone()
    return visits.status
