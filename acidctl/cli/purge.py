"""`acidctl purge`: delete the trash of earlier cleaning runs for good."""

from __future__ import annotations

import sys

import click

from acidctl.cli.options import examples, locations_argument, storage_options


@click.command("purge", epilog=examples("acidctl purge --dry-run /warehouse/sales.db", "acidctl purge --yes orders"))
@locations_argument()
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be deleted and stop.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@storage_options
def command(locations: tuple[str, ...], dry_run: bool, yes: bool, storage: dict[str, str]) -> None:
    """Delete what cleaning runs moved to the trash of every location at or below LOCATION. This cannot be undone."""
    from acidctl.cleaning.trash import list_runs, purge
    from acidctl.cli.locations import SnapshotLists, find
    from acidctl.cli.output import human_bytes, human_count, safe
    from acidctl.errors import RefusedError

    found = [(f.fs, run) for f in find(locations, storage, SnapshotLists()) for run in list_runs(f.fs, f.location.path)]
    for fs, run in found:
        entries = human_count(len(run.names), "entry", "entries")
        what = f"{entries}, {human_bytes(run.bytes)}" if run.is_complete else "incomplete: interrupted"
        click.echo(f"{safe(fs.display(run.path))}: {what}")
    if not found:
        click.echo("the trash is empty")
    if not found or dry_run:
        return
    count = human_count(len(found), "cleaning run")
    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise RefusedError(f"{count} would be deleted for good", "there is no terminal to ask at", "give --yes")
        if not click.confirm(f"Delete {count} for good?", err=True):
            raise RefusedError("nothing was deleted", "it was not confirmed")
    for fs, run in found:
        purge(fs, [run])
    click.echo(f"{count} deleted, {human_bytes(sum(run.bytes for _, run in found))}")
